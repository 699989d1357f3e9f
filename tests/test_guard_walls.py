"""Full throttle at walls of the bench's world, with the collision guard between.

Gate, mixing, bridge and world, without a process: much faster than real time.
"""

import math
import random
from dataclasses import dataclass, field

import msgspec
import pytest

from fpvcar import config, gate, mixing
from fpvcar.bench import scene
from fpvcar.bench.vl53l0x import REACH_M
from fpvcar.bench.world import TICK_S, Duties, World
from fpvcar.devices import hcsr04
from fpvcar.devices.fake_pins import FakePins
from fpvcar.devices.motors import Bridge
from fpvcar.guard import Guard
from fpvcar.wire import down
from tests.test_guard import BENCH, LIMITS, seen

WORLDS, WORLDS_SOAK = 12, 200
SENSOR_S = 0.031
REAR, ECHO_S_PER_M = 3, 2.0 / 343.0


@dataclass
class Drive:
    """One car, one wall."""

    seed: int
    profile: config.Profile
    now_s: float = 100.0
    hardest_mps: float = 0.0
    fastest_mps: float = 0.0
    decision: gate.Decision = field(init=False)
    turned_deg, throttle = 0.0, 0.0

    def __post_init__(self) -> None:
        dice = random.Random(self.seed)
        self.world = World(self.seed, place=scene.Layout((), scene.Ramp(0.5, 1.2)))
        start_m = dice.uniform(1.6, 4.0)
        x_m, y_m = scene.ROOM_X_M / 2 - 0.115 - start_m, dice.uniform(-0.9, 0.1)
        yaw_deg = self.turned_deg + dice.uniform(-12.0, 12.0)
        self.world.put(x_m, y_m, math.radians(yaw_deg))
        self.dice, self.guard = dice, Guard(self.profile.guard)
        drive = self.profile.motors.drive
        self.pins, self.slew = FakePins(), mixing.Slew()
        self.bridge = Bridge(drive, self.pins, self.now_s)
        self.latches = gate.Latches(arm=None)
        self.measured = seen(None, 0.0)
        self.measured_s, self.due_s = self.now_s, self.now_s

    def sense(self) -> None:
        """As the VL53L0X: 33 ms old at least, noisy, and blind beyond its reach."""
        if self.now_s < self.due_s:
            return
        range_m: float | None = self.world.ranges_m[0]
        assert range_m is not None
        if range_m > REACH_M:
            range_m = None
        else:
            noise_m = self.dice.gauss(0.0, max(0.002, 0.012 * range_m))
            range_m = max(0.001, range_m + noise_m)
        self.measured, self.measured_s = seen(range_m), self.now_s
        self.due_s = self.now_s + SENSOR_S

    def faulty(self, told: down.Range) -> down.Range:
        """As the guard gets it."""
        return told

    def step(self, throttle: float) -> None:
        self.now_s += TICK_S
        self.sense()
        told = msgspec.structs.replace(
            self.measured, age_s=self.now_s - self.measured_s + TICK_S
        )
        free = self.guard.look([self.faulty(told)], self.now_s, self.throttle)
        world = gate.World(0.01, None, 1.0, free)
        wish = gate.Wish(throttle, 0.0, self.now_s)
        self.decision = gate.decide(
            wish, self.latches, world, self.now_s, self.profile.gate
        )
        duties, self.slew = mixing.mix(
            self.decision.throttle, 0.0, self.profile.motors,
            self.world.battery.volts, self.slew, self.now_s,
        )  # fmt: skip
        self.throttle = self.decision.throttle
        self.bridge.drive(duties[0], self.now_s)
        drive = self.profile.motors.drive
        self.world.step(
            Duties(self.pins.duty(drive.forward), self.pins.duty(drive.reverse))
        )
        self.hardest_mps = max(self.hardest_mps, self.world.contact_mps)
        self.fastest_mps = max(self.fastest_mps, abs(self.world.speed_mps))


class Backing(Drive):
    """Backwards, by an HC-SR04 that is alone: its echo comes late, its median later."""

    turned_deg = 180.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.median, self.coming = hcsr04.Median(), (math.inf, 0.0)

    def sense(self) -> None:
        done_s, range_m = self.coming
        if self.now_s >= done_s:
            sample = hcsr04.from_width(round(range_m * ECHO_S_PER_M * 1e6), 20.0)
            middle = self.median.add(sample).range_m
            self.measured = down.Range("rear", 180.0, middle, 0.0)
            self.measured_s, self.coming = done_s, (math.inf, 0.0)
        if self.now_s >= self.due_s:
            self.due_s = self.now_s + hcsr04.CYCLE_S
            seen_m = min(self.world.ranges_m[REAR], 6.0) + self.dice.gauss(0.0, 0.003)
            self.coming = (self.now_s + ECHO_S_PER_M * seen_m, seen_m)


class Failing(Drive):
    """Its sensor fails again and again, once it has seen the wall: it does not answer,
    falls silent, or sees nothing once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fault, self.from_s, self.until_s, self.failed = 0, 0.0, math.inf, 0

    def faulty(self, told: down.Range) -> down.Range:
        if self.until_s == math.inf and told.range_m is not None:
            self.from_s = self.until_s = self.now_s
        if self.now_s >= self.until_s:
            self.fault = self.dice.randrange(4)
            lasts_s = self.dice.uniform(0.02, 2.0) if self.fault < 2 else 0.03
            good_s = self.dice.uniform(0.0, 1.0)
            self.from_s = self.now_s + good_s
            self.until_s = self.from_s + lasts_s
        if self.now_s < self.from_s or self.until_s == math.inf:
            return told
        self.failed += 1
        if self.fault == 0:
            return msgspec.structs.replace(told, state="nobody acknowledged")
        if self.fault == 1:
            return msgspec.structs.replace(told, age_s=1.0)
        return msgspec.structs.replace(told, range_m=None)


def at_a_wall(
    seed: int, guard: config.Guard = LIMITS, car: type[Drive] = Drive
) -> Drive:
    drive = car(seed, msgspec.structs.replace(BENCH, guard=guard))
    for _ in range(round(6.0 / TICK_S)):
        drive.step(-1.0 if car is Backing else 1.0)
    return drive


@pytest.mark.soak
@pytest.mark.parametrize(("car", "eye"), [(Drive, 0), (Backing, REAR)])
def test_no_wall_is_hit(soaking: bool, car: type[Drive], eye: int) -> None:
    """From full speed, driver's throttle never let go; what it does then is creep."""
    seeds = range(WORLDS_SOAK if soaking else WORLDS)
    runs = [at_a_wall(seed, car=car) for seed in seeds]
    hits = {run.seed: run.hardest_mps for run in runs if run.hardest_mps > 0.1}
    assert not hits
    assert max(run.fastest_mps for run in runs) > 1.2, "full speed was never reached"
    farthest_m = max(run.world.ranges_m[eye] for run in runs)
    assert farthest_m < 0.6, "it stopped far too early"


@pytest.mark.soak
def test_a_sensor_that_fails_on_the_way_lets_no_wall_be_hit(soaking: bool) -> None:
    seeds = range(WORLDS_SOAK if soaking else 2 * WORLDS)
    runs = [at_a_wall(seed, car=Failing) for seed in seeds]
    failed = [run.failed for run in runs if isinstance(run, Failing)]
    assert all(failed) and sum(failed) > 40 * len(runs)
    hits = {run.seed: run.hardest_mps for run in runs if run.hardest_mps > 0.1}
    assert not hits


def test_these_walls_are_hard() -> None:
    """The same drives with a guard that reckons with brakes which the car has not."""
    reckless = msgspec.structs.replace(LIMITS, brake_mps2=20.0, reaction_s=0.0)
    assert any(at_a_wall(seed, reckless).hardest_mps > 0.3 for seed in range(3))

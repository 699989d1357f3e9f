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
from fpvcar.devices.fake_pins import FakePins
from fpvcar.devices.motors import Bridge
from fpvcar.guard import Guard
from tests.test_guard import BENCH, LIMITS, seen

WORLDS, WORLDS_SOAK = 12, 200
SENSOR_S = 0.031


@dataclass
class Drive:
    """One car, one wall."""

    seed: int
    profile: config.Profile
    now_s: float = 100.0
    hardest_mps: float = 0.0
    fastest_mps: float = 0.0
    decision: gate.Decision = field(init=False)

    def __post_init__(self) -> None:
        dice = random.Random(self.seed)
        self.world = World(self.seed, place=scene.Layout((), scene.Ramp(0.5, 1.2)))
        start_m = dice.uniform(1.6, 4.0)
        self.world.put(scene.ROOM_X_M / 2 - 0.115 - start_m, dice.uniform(-0.9, 0.1),
                       math.radians(dice.uniform(-12.0, 12.0)))  # fmt: skip
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

    def step(self, throttle: float) -> None:
        self.now_s += TICK_S
        self.sense()
        told = msgspec.structs.replace(
            self.measured, age_s=self.now_s - self.measured_s + TICK_S
        )
        free = self.guard.look([told], self.now_s)
        world = gate.World(0.01, None, 1.0, free)
        wish = gate.Wish(throttle, 0.0, self.now_s)
        self.decision = gate.decide(
            wish, self.latches, world, self.now_s, self.profile.gate
        )
        duties, self.slew = mixing.mix(
            self.decision.throttle, 0.0, self.profile.motors,
            self.world.battery.volts, self.slew, self.now_s,
        )  # fmt: skip
        self.bridge.drive(duties[0], self.now_s)
        drive = self.profile.motors.drive
        self.world.step(
            Duties(self.pins.duty(drive.forward), self.pins.duty(drive.reverse))
        )
        self.hardest_mps = max(self.hardest_mps, self.world.contact_mps)
        self.fastest_mps = max(self.fastest_mps, self.world.speed_mps)


def at_a_wall(seed: int, guard: config.Guard = LIMITS) -> Drive:
    drive = Drive(seed, msgspec.structs.replace(BENCH, guard=guard))
    for _ in range(round(6.0 / TICK_S)):
        drive.step(1.0)
    return drive


@pytest.mark.soak
def test_no_wall_is_hit(soaking: bool) -> None:
    """From full speed, driver's throttle never let go; what it does then is creep."""
    runs = [at_a_wall(seed) for seed in range(WORLDS_SOAK if soaking else WORLDS)]
    hits = {run.seed: run.hardest_mps for run in runs if run.hardest_mps > 0.1}
    assert not hits
    assert max(run.fastest_mps for run in runs) > 1.2, "full speed was never reached"
    assert max(run.world.ranges_m[0] for run in runs) < 0.6, "it stopped far too early"


def test_these_walls_are_hard() -> None:
    """The same drives with a guard that reckons with brakes which the car has not."""
    reckless = msgspec.structs.replace(LIMITS, brake_mps2=20.0, reaction_s=0.0)
    assert any(at_a_wall(seed, reckless).hardest_mps > 0.3 for seed in range(3))

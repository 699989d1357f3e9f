"""The collision guard: alone, in the gate, and before walls in the bench's world."""

import math
import random
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvcar import config, gate, mixing, paths, wire
from fpvcar.bench import scene
from fpvcar.bench.vl53l0x import REACH_M
from fpvcar.bench.world import TICK_S, Duties, World
from fpvcar.devices.fake_pins import FakePins
from fpvcar.devices.motors import Bridge
from fpvcar.guard import Approach, Free, Guard, share

BENCH = config.load(paths.HARDWARE / "bench.toml")
LIMITS = msgspec.structs.replace(BENCH.guard, mode="limit")
WORLDS, WORLDS_SOAK = 12, 200
SENSOR_S = 0.031


def seen(range_m: float | None, age_s: float = 0.02, state: str = "ok") -> wire.Range:
    return wire.Range("front", 0.0, range_m, age_s, state)


# --- the pure part ---


def test_far_is_free_and_near_is_not() -> None:
    guard = Guard(LIMITS)
    assert guard.look([seen(None)], 1.0) == Free(1.0, 1.0)
    assert guard.look([seen(LIMITS.stop_m)], 2.0) == Free(0.0, 1.0)
    assert 0.0 < guard.look([seen(0.4)], 3.0).ahead < 1.0


def test_backwards_is_another_way() -> None:
    rear = wire.Range("rear", 180.0, 0.1, 0.02)
    assert Guard(LIMITS).look([rear], 1.0) == Free(1.0, 0.0)
    aside = wire.Range("left", 90.0, 0.1, 0.02)
    assert Guard(LIMITS).look([aside], 1.0) == Free(1.0, 1.0)


@pytest.mark.parametrize(
    "blind", [seen(None, 0.3), seen(2.0, state="does not answer"),
              wire.Range("front", 0.0, None, None, "starting")],
)  # fmt: skip
def test_a_sensor_that_says_nothing_is_not_nothing_there(blind: wire.Range) -> None:
    assert Guard(LIMITS).look([blind], 1.0).ahead == LIMITS.unseen_limit


ranges = some.floats(0.01, 4.0)
ages = some.floats(0.0, 0.2)
speeds = some.floats(0.0, 3.0)


@given(ranges, ranges, ages, speeds)
def test_nearer_is_never_faster(a_m: float, b_m: float, age_s: float, v: float) -> None:
    near, far = sorted((a_m, b_m))
    assert share(near, age_s, v, LIMITS) <= share(far, age_s, v, LIMITS)


@given(ranges, ages, speeds, speeds)
def test_faster_is_not_freer(range_m: float, age_s: float, a: float, b: float) -> None:
    slow, fast = sorted((a, b))
    assert share(range_m, age_s, fast, LIMITS) <= share(range_m, age_s, slow, LIMITS)


@given(ranges, ages, speeds)
def test_what_is_allowed_can_be_stopped(range_m: float, age_s: float, v: float) -> None:
    most_mps = max(v, share(range_m, age_s, v, LIMITS) * LIMITS.top_mps)
    if share(range_m, age_s, v, LIMITS) > 0.0:
        way_m = most_mps * (age_s + LIMITS.reaction_s)
        way_m += most_mps**2 / 2 / LIMITS.brake_mps2
        assert way_m <= range_m - LIMITS.stop_m + 1e-9


@given(some.floats(-2.0, 2.0), some.integers(3, 10))
def test_closing_speed_is_that_of_a_straight_line(mps: float, count: int) -> None:
    approach = Approach()
    for index in range(count):
        approach.add(2.0 - mps * index * 0.03, index * 0.03)
    assert approach.speed_mps() == pytest.approx(max(0.0, mps), abs=1e-6)


def test_a_target_that_went_away_has_no_speed() -> None:
    approach = Approach()
    for index in range(5):
        approach.add(1.0 - 0.1 * index, index * 0.03)
    assert approach.speed_mps() > 1.0
    approach.add(None, 0.2)
    approach.add(3.0, 0.23)
    assert approach.speed_mps() == 0.0


# --- in the gate ---


def decided(throttle: float, free: Free) -> gate.Decision:
    world = gate.World(0.01, None, 1.0, free)
    wish = gate.Wish(throttle, 0.5, 10.0)
    return gate.decide(wish, gate.Latches(arm=None), world, 10.0, BENCH.gate)


def test_the_gate_takes_the_smaller() -> None:
    ahead = decided(1.0, Free(0.4, 1.0))
    assert (ahead.throttle, ahead.steer, ahead.reason) == (0.4, 0.5, "guarded")
    back = decided(-1.0, Free(1.0, 0.25))
    assert (back.throttle, back.reason) == (-0.25, "guarded")
    assert decided(0.3, Free(0.4, 1.0)).reason == "driving"
    stands = decided(1.0, Free(0.0, 1.0))
    assert (stands.throttle, stands.reason) == (0.0, "guarded")
    assert decided(-1.0, Free(0.0, 1.0)).throttle == -1.0, "away from it is free"


# --- before walls ---


@dataclass
class Drive:
    """Full throttle at a wall: gate, mixing, bridge and world, without a process."""

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

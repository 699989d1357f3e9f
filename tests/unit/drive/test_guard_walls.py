"""Full throttle at walls and boxes of the bench's world, with the guard in between.

Gate, mixing, bridge and world, without a process: much faster than real time.
"""

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
from testkit.control import PlayedInputs, PlayedWheels
from testkit.pins.fake_pins import FakePins
from testkit.profiles import mx1508s
from testkit.world import inputs

from fpvbench.chips.vl53l0x import REACH_M
from fpvbench.world import scene
from fpvbench.world.process import TICK_S, World
from fpvcar import config
from fpvcar.config.sensors import CYCLE_S
from fpvcar.devices.chips import hcsr04
from fpvcar.devices.motors.bridge import motor_drivers
from fpvcar.drive.control import Control
from fpvcar.sensors import ultrasound
from fpvcar.sensors.battery import BATTERY_EVERY_S
from fpvcar.sensors.reading import LastReading
from fpvcar.wire import telemetry
from fpvcar.wire.wheels import Answer, Status, WheelsReason
from tests.unit.devices.test_hcsr04 import ECHO, Air, echo
from tests.unit.drive.test_guard import BENCH, LIMITS

WORLDS, WORLDS_SOAK = 12, 200
SENSOR_S = 0.031
WISH_S = 0.04
"""Interval of a page's wishes; between two wishes the gate runs when it is due."""
LATE_TICKS = 3
"""Age of the measurement that a VL53L0X reports now, in ticks."""
REAR, ECHO_US_PER_M, NO_ECHO_US = 3, 2e6 / 343.0, 38_000
RUN_UP_M, FULL_MPS, DRIVE_S = 2.2, 1.2, 6.0
WIDTH_M, SLANT_M = [-0.12 + 0.02 * number for number in range(13)], 0.1
"""Points across the car's way, and the most by which its sides may be nearer than the range of
its sensor."""


@dataclass
class Drive:
    """Single car before a single wall."""

    seed: int
    profile: config.Profile
    furnished: bool = False
    now_s: float = 100.0
    hardest_mps: float = 0.0
    fastest_mps: float = 0.0
    reading: LastReading = field(default_factory=lambda: LastReading("front", 0.0))
    eye_at, turned_deg, throttle_way = 0, 0.0, 1.0

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.world = self.in_a_room() if self.furnished else self.in_a_bare_room()
        self.pins = FakePins()
        self.bridge, _ = motor_drivers(self.profile, self.pins)
        self.control = Control(
            self.profile,
            PlayedWheels(self.send),
            PlayedInputs(lambda _: 0.01, lambda _: self.volts, self.ranges),
            asyncio.Event(),
            clock_ns=lambda: round(self.now_s * 1e9),
        )
        self.control.wheels_answer(Answer(Status.APPLIED, WheelsReason.NONE, 0, 0))
        self.due_s = self.volts_due_s = self.wish_due_s = self.now_s
        self.volts = self.world.battery.volts
        self.past_m = deque[float](maxlen=LATE_TICKS + 1)

    def in_a_bare_room(self) -> World:
        """Place the car before a wall, at the distance that full speed takes."""
        world = World(self.seed, place=scene.Layout((), scene.Ramp(0.5, 1.2)))
        start_m = self.dice.uniform(RUN_UP_M, 4.0)
        x_m, y_m = scene.ROOM_X_M / 2 - 0.115 - start_m, self.dice.uniform(-0.9, 0.1)
        yaw_deg = self.turned_deg + self.dice.uniform(-12.0, 12.0)
        world.put(x_m, y_m, math.radians(yaw_deg))
        return world

    def in_a_room(self) -> World:
        """Place the car at a seeded room's start. It is turned until its sensor points at the
        first obstacle in its way, far enough off, and past the ramp."""
        world = World(self.seed)
        aside = -math.copysign(1.0, scene.layout(self.seed).ramp.y)
        while True:
            yaw = aside * self.dice.uniform(-0.15, 0.6)
            nearest_m = min(self.looked_m(world, one_m, yaw) for one_m in WIDTH_M)
            ahead_m = self.looked_m(world, 0.0, yaw)
            if ahead_m >= RUN_UP_M and nearest_m > ahead_m - SLANT_M:
                world.hardest_mps = 0.0
                return world

    def looked_m(self, world: World, aside_m: float, yaw: float) -> float:
        """Return the range of the sensor if the car stands so far aside."""
        x_m = scene.START_X_M - math.sin(yaw) * aside_m
        y_m = scene.START_Y_M + math.cos(yaw) * aside_m
        world.put(x_m, y_m, yaw + math.radians(self.turned_deg))
        world.step(inputs())
        return world.ranges_m[self.eye_at]

    def at_the_end_wall(self) -> bool:
        """Return True if the car stands at the end wall, not before a box."""
        return self.world.pose[0] > scene.ROOM_X_M / 2 - 0.6

    def sense(self) -> None:
        """Model of a VL53L0X: one budget late, without the delay in its age; noisy, and blind
        beyond its reach."""
        self.past_m.append(self.world.ranges_m[0])
        if self.now_s < self.due_s:
            return
        range_m, seen_m = self.past_m[0], None
        if range_m <= REACH_M:
            noise_m = self.dice.gauss(0.0, max(0.002, 0.012 * range_m))
            seen_m = max(0.001, range_m + noise_m)
        self.reading.update(seen_m, "ok", self.now_s)
        self.due_s = self.now_s + SENSOR_S

    def faulty(self, measured: telemetry.Range) -> telemetry.Range:
        """Change a range before the guard receives it."""
        return measured

    def step(self, throttle: float) -> None:
        """Run one tick; the pins get its decision a tick later."""
        self.now_s += TICK_S
        self.sense()
        if self.now_s >= self.volts_due_s:
            self.volts = self.world.battery.volts
            self.volts_due_s = self.now_s + BATTERY_EVERY_S
        drive, _ = mx1508s(self.profile)
        now = inputs(self.pins.duty(drive.forward), self.pins.duty(drive.reverse))
        if self.now_s >= self.wish_due_s:
            if not self.control.driven():
                self.control.wish(0.0, 0.0, self.now_s)  # this wish arms the gate
            self.control.wish(throttle, 0.0, self.now_s)
            self.wish_due_s = self.now_s + WISH_S
        else:
            self.control.tick()
        self.bridge.tick(self.now_s)
        self.world.step(now)
        self.hardest_mps = self.world.hardest_mps
        self.fastest_mps = max(self.fastest_mps, abs(self.world.speed_mps))

    def ranges(self, now_s: float) -> Sequence[telemetry.Range]:
        """Return the ranges for the gate."""
        return [self.faulty(self.reading.status(now_s))]

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        """Apply the duties of the gate."""
        self.bridge.drive(duties[0], self.now_s)
        return True


class Backing(Drive):
    """Drive backwards with one HC-SR04 and its driver: its echo comes late, its median later."""

    eye_at, turned_deg, throttle_way = REAR, 180.0, -1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reading = LastReading("rear", 180.0)
        self.air = Air(self.echo)
        self.sensor = self.air.sensor()
        self.done_s, self.sample = math.inf, hcsr04.Sample(None, hcsr04.Status.FAR)

    def echo(self) -> Sequence[tuple[int, int, int]]:
        """Return the edges after a trigger now."""
        range_m = self.world.ranges_m[REAR] + self.dice.gauss(0.0, 0.003)
        return echo(round(min(range_m * ECHO_US_PER_M, NO_ECHO_US)))

    def sense(self) -> None:
        if self.now_s >= self.done_s:
            ultrasound.update(self.reading, self.sample, self.done_s)
            self.done_s = math.inf
        if self.now_s >= self.due_s:
            self.due_s = self.now_s + CYCLE_S
            self.air.now_us = round(self.now_s * 1e6)
            self.sample = self.sensor.measure()  # its clock runs ahead
            self.done_s = self.air.clock_s()


class Sticking(Backing):
    """Sensor whose echo repeatedly does not fall, once it has seen the wall: for a while, or
    until a trigger that it may not get before."""

    failed, holds = 0, False

    def echo(self) -> Sequence[tuple[int, int, int]]:
        if self.air.levels.get(ECHO):
            return [(5, ECHO, 0), *super().echo()] if self.holds else []
        sees = self.reading.range_m is not None and self.reading.range_m < 1.6
        if not sees or self.dice.random() < 0.8:
            return super().echo()
        self.failed += 1
        self.air.stuck_s = self.now_s + hcsr04.STUCK_S
        self.holds = self.dice.random() < 0.5
        return echo(1 << 31 if self.holds else self.dice.randrange(40_000, 2_000_000))


class Failing(Drive):
    """Sensor that fails repeatedly, once it has seen the wall: it does not answer, falls silent,
    or sees no target once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fault, self.from_s, self.until_s, self.failed = 0, 0.0, math.inf, 0

    def faulty(self, measured: telemetry.Range) -> telemetry.Range:
        if self.until_s == math.inf and measured.range_m is not None:
            self.from_s = self.until_s = self.now_s
        if self.now_s >= self.until_s:
            self.fault = self.dice.randrange(4)
            lasts_s = self.dice.uniform(0.02, 2.0) if self.fault < 2 else 0.03
            good_s = self.dice.uniform(0.0, 1.0)
            self.from_s = self.now_s + good_s
            self.until_s = self.from_s + lasts_s
        if self.now_s < self.from_s or self.until_s == math.inf:
            return measured
        self.failed += 1
        if self.fault == 0:
            return msgspec.structs.replace(measured, state="nobody acknowledged")
        if self.fault == 1:
            return msgspec.structs.replace(measured, age_s=1.0)
        return msgspec.structs.replace(measured, range_m=None)


def at_a_wall(
    seed: int, guard: config.Guard = LIMITS, car: type[Drive] = Drive, furnished: bool = False
) -> Drive:
    drive = car(seed, msgspec.structs.replace(BENCH, guard=guard), furnished)
    for _ in range(round(DRIVE_S / TICK_S)):
        drive.step(car.throttle_way)
    return drive


@pytest.mark.soak
@pytest.mark.parametrize("furnished", [False, True])
@pytest.mark.parametrize("car", [Drive, Backing])
def test_guarded_drive_hits_no_obstacle_at_speed(
    soaking: bool, car: type[Drive], furnished: bool
) -> None:
    """Drive from full speed with the throttle never released; creeping contact is allowed.

    Straight ahead only: a sensor of the bench is one ray from the bumper's middle. The guard cannot
    detect an obstacle at a corner of the car, nor a kerb below the ray on the ramp's slope.
    """
    began_s = time.monotonic()
    seeds = range(WORLDS_SOAK if soaking else WORLDS)
    runs = [at_a_wall(seed, car=car, furnished=furnished) for seed in seeds]
    hits = {run.seed: run.hardest_mps for run in runs if run.hardest_mps > 0.1}
    assert not hits
    slow = {run.seed: run.fastest_mps for run in runs if run.fastest_mps <= FULL_MPS}
    assert not slow, "full speed was not reached"
    farthest_m = max(run.world.ranges_m[car.eye_at] for run in runs)
    assert farthest_m < 0.6, "it stopped far too early"
    at_boxes = [run for run in runs if not run.at_the_end_wall()]
    assert len(at_boxes) > len(runs) / 2 if furnished else not at_boxes
    if soaking:
        assert time.monotonic() - began_s < DRIVE_S * len(runs), "slower than real time"


@pytest.mark.soak
@pytest.mark.parametrize(("car", "faults"), [(Failing, 30), (Sticking, 3)])
def test_failing_sensor_lets_no_wall_be_hit(
    soaking: bool, car: type[Failing | Sticking], faults: int
) -> None:
    seeds = range(WORLDS_SOAK if soaking else 2 * WORLDS)
    runs = [at_a_wall(seed, car=car) for seed in seeds]
    failed = [run.failed for run in runs if isinstance(run, car)]
    assert all(failed) and sum(failed) > faults * len(runs)
    hits = {run.seed: run.hardest_mps for run in runs if run.hardest_mps > 0.1}
    assert not hits


@pytest.mark.parametrize("furnished", [False, True])
def test_reckless_guard_hits_the_wall(furnished: bool) -> None:
    """The same drives with a guard that assumes brakes stronger than the car's."""
    reckless = msgspec.structs.replace(LIMITS, brake_mps2=20.0, reaction_s=0.0)
    runs = [at_a_wall(seed, reckless, furnished=furnished) for seed in range(3)]
    assert any(run.hardest_mps > 0.3 for run in runs)

"""Table rows for servos that do not steer: `tilt` has `center_on_stop`, `pan` has not.

After each cause tilt turns to its rest at its own speed, and pan stays. Where `run` or `wheels` is
left, it does so while the failed part is still down; otherwise the restarted part does.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from fpvbench import soc as chip
from fpvbench.world.bridge import aimed_deg
from fpvcar.config import AimServo, profiles
from fpvcar.runtime import paths
from testkit.driver import Driver, free, set_off, sit_down
from testkit.harness import PinWatch, wait_for
from testkit.stops import causes, hat_causes
from testkit.stops.ground import Ground, Scene
from testkit.stops.stopping import Cause

PROFILE = paths.HARDWARE / "pan-tilt.toml"
PAN_DEG, TILT_DEG = 40.0, 45.0
LEAP_DEG = 30.0
"""Largest change between two polls: a busy machine polls late, and a leap to the rest is larger."""
RESTS_S, STAYS_S, TURNS_S, TRIES = 20.0, 0.3, 5.0, 5
COMMON = ("--set=car.name = 'Plague'", f"--profile={PROFILE}")
CARS: dict[str, tuple[str, ...]] = {
    "pigpiod": (),
    "kernel PWM": ("--pins=kernel", '--set=pins.backend = "linux"', "--set=pins.pwm = [12, 13]"),
    "PCA9685": (
        "--set=servos = {}",
        "--set=servos.pan = {channel = 0, most_deg = 70}",
        "--set=servos.tilt = {channel = 15, most_deg = 45, speed_deg_s = 90, "
        "center_on_stop = true}",
    ),
}


@dataclass(frozen=True)
class Row:
    """Cause of a stop, and the part that centres the servo.

    `at_once`: a survivor does, before the failed part is mended. `run_ends`: the next `run` begins
    with all servos at their rest.
    """

    cause: Cause[Scene]
    at_once: bool = True
    run_ends: bool = False


def _guarded(name: str, at_once: bool = True) -> Row:
    (cause,) = (cause for cause in hat_causes.CAUSES if cause.name == name)
    return Row(cause, at_once)


ROWS = (
    Row(causes.row("only heartbeats")),
    Row(causes.row("e-stop by a watcher")),
    Row(causes.row("camera hangs")),
    Row(causes.row("run stopped")),
    Row(causes.row("run killed"), run_ends=True),
    Row(causes.row("wheels killed"), at_once=False),
    Row(causes.row("wheels ended"), at_once=False),
)
CHIP_ROWS = (*ROWS, Row(causes.row("wheels stopped"), at_once=False))
PIGPIOD_ROWS = (
    *CHIP_ROWS,
    Row(causes.row("pigpiod killed"), at_once=False),
    Row(causes.row("pigpiod hangs"), at_once=False),
)
KERNEL_ROWS = (*ROWS, _guarded("wheels stopped", at_once=False), _guarded("guardian killed"))


class Angles:
    """Angles of servos by their pulses, polled; `leaps` are changes that are too large."""

    def __init__(self, soc: chip.Soc, servos: dict[str, AimServo]) -> None:
        self._soc, self._servos, self._ends = soc, servos, False
        self.now = dict.fromkeys(servos, 0.0)
        self.leaps: list[tuple[str, float, float]] = []
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def _poll(self) -> None:
        seen: dict[str, float] = {}
        while not self._ends:
            for name, servo in self._servos.items():
                deg = aimed_deg(self._soc, servo)
                if deg is None:
                    continue  # without pulses it stays
                if abs(deg - seen.get(name, deg)) > LEAP_DEG:
                    self.leaps.append((name, seen[name], deg))
                self.now[name] = seen[name] = deg
            time.sleep(0.001)

    @contextmanager
    def polled(self) -> Iterator[None]:
        """Poll until the context ends."""
        self._thread.start()
        try:
            yield
        finally:
            self._ends = True
            self._thread.join()

    def reach(self, within_s: float, **wanted: float) -> None:
        """Wait for these angles."""
        wait_for(
            lambda: all(abs(self.now[name] - deg) < 1.0 for name, deg in wanted.items()),
            f"expected {wanted}, have {self.now}",
            within_s,
        )


def look(driver: Driver, angles: Angles, watch: PinWatch) -> None:
    """Turn pan and tilt to PAN_DEG and TILT_DEG while the car drives; again if a busy machine had
    stopped it."""
    for _ in range(TRIES):
        free(driver)
        set_off(driver, watch)
        driver.say(kind="look", to={"pan": PAN_DEG, "tilt": TILT_DEG}, seen=driver.seen)
        with suppress(AssertionError):
            angles.reach(TURNS_S, pan=PAN_DEG, tilt=TILT_DEG)
            assert watch.now.driving
            return
    raise AssertionError(f"the camera does not turn in a driving car: {angles.now}")


def run_row(ground: Ground, options: tuple[str, ...], row: Row) -> None:
    """Drive with the camera turned, let the cause happen, and check both servos."""
    bench, cause = ground.bench, row.cause
    lines = [line.removeprefix("--set=") for line in options if line.startswith("--set=")]
    angles = Angles(bench.soc, profiles.load(PROFILE, lines).servos)
    driver = ground.driver(cause.way)
    with driver, angles.polled():
        sit_down(driver)
        scene = Scene(ground, driver)
        with bench.watch() as watch:
            look(driver, angles, watch)
            _fail(scene, row, angles, watch)
    assert angles.leaps == [], angles.leaps


def _fail(scene: Scene, row: Row, angles: Angles, watch: PinWatch) -> None:
    row.cause.fail(scene)
    try:
        wait_for(lambda: not watch.now.driving, f"{row.cause.name}: the car drives on")
        if row.at_once:
            angles.reach(RESTS_S, tilt=0.0)
    finally:
        row.cause.mend(scene)
    angles.reach(RESTS_S, tilt=0.0, pan=0.0 if row.run_ends else PAN_DEG)
    time.sleep(STAYS_S)
    angles.reach(0.1, tilt=0.0, pan=0.0 if row.run_ends else PAN_DEG)

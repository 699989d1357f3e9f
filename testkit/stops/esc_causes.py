"""Table rows for an RC car: its ESC on pigpiod, on the kernel's PWM, and on a PCA9685.

A car stops at neutral, or `esc_loss_s` after the last pulse. Each run also judges the pulses
(pulses.py), except after failures that leave no process to send neutral.
"""

import time
from dataclasses import replace
from pathlib import Path

from fpvbench import soc as chip
from fpvbench.world.bridge import Wiring
from fpvcar.config import Profile, profiles
from fpvcar.hil.stop_causes import NOTICED_S, PINS_S
from fpvcar.runtime import paths
from testkit.harness import PinWatch, RunningBench
from testkit.stops import causes, hat_causes, linux_causes
from testkit.stops.ground import Scene
from testkit.stops.pulses import PulseTrace, stop_faults
from testkit.stops.stopping import Cause

LOSS_S = 0.15
"""Loss time of the emulated ESC."""
ESC = (
    f"motors.drive.esc_loss_s = {LOSS_S}",
    "motors.drive.limit = 0.5",
    "motors.drive.slew_per_s = 4",
)
PIGPIOD = (
    "motors.drive = {}",
    'motors.drive.driver = "esc"',
    "motors.drive.signal = 17",
    "motors.steer = {}",
    'motors.steer.driver = "servo"',
    "motors.steer.signal = 24",
    *ESC,
)
KERNEL = (
    *PIGPIOD,
    'pins.backend = "linux"',
    "pins.pwm = [12, 13]",
    "motors.drive.signal = 12",
    "motors.steer.signal = 13",
    "buttons.green.button = 17",
    "lights.rear = [27]",
)
HAT = (
    "motors.drive = {}",
    'motors.drive.driver = "hat-esc"',
    "motors.drive.channel = 0",
    "motors.steer = {}",
    'motors.steer.driver = "hat-servo"',
    "motors.steer.channel = 1",
    *ESC,
)
HAT_OE = (*HAT, f"pca9685.oe = {hat_causes.OE}")
HAT_GUARDIAN = (*HAT, "motors.drive.unguarded = true")


def options(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options of a bench with these lines of the profile."""
    kernel = ("--pins=kernel",) if lines is KERNEL else ()
    return (*kernel, *(f"--set={line}" for line in lines))


class EscWatch(PinWatch):
    """Watch on the pulses of the ESC: driving until neutral, or until the loss time is over."""

    def __init__(self, soc: chip.Soc, profile: Profile) -> None:
        motors = profile.motors
        assert motors.esc is not None
        self._esc = motors.esc
        self._wiring = Wiring(motors, profile.pca9685.oe, profile.hat_hz())
        self._last, self._seen_s = 0.0, 0.0
        self.pulses = PulseTrace(polled=True)
        super().__init__(soc, ())

    def duties(self) -> tuple[float, ...]:
        """Return the throttle as the inputs of an MX1508, so that the same checks fit all rows."""
        pulse_us, now_s = self._wiring.pulse_us(self._esc, self._soc), time.monotonic()
        self.pulses.note(pulse_us)
        if pulse_us:
            off_us = round(pulse_us - self._esc.neutral_us)
            self._last, self._seen_s = off_us / 500.0 if abs(off_us) > 15 else 0.0, now_s
        elif now_s - self._seen_s >= self._esc.esc_loss_s:
            self._last = 0.0
        return max(self._last, 0.0), max(-self._last, 0.0), 0.0, 0.0

    def faults(self) -> list[str]:
        return stop_faults(self.pulses.all, self._esc.neutral_us)


class EscBench(RunningBench):
    """Bench with a watch on its ESC."""

    def __init__(self, home: Path, *options: str, env: dict[str, str] | None = None) -> None:
        super().__init__(home, *options, env=env)
        lines = [one.removeprefix("--set=") for one in options if one.startswith("--set=")]
        self.profile = profiles.load(paths.HARDWARE / "bench.toml", lines)

    def watch(self) -> EscWatch:
        """Return a watch on the ESC's pulses."""
        return EscWatch(self.soc, self.profile)


def _silent(cause: Cause[Scene], limit_s: float) -> Cause[Scene]:
    """Return a row whose pulses end at once: the ESC must stop by itself."""
    return replace(cause, limit_s=limit_s + LOSS_S, silent=True)


def _of(name: str, rows: tuple[Cause[Scene], ...]) -> Cause[Scene]:
    (cause,) = (cause for cause in rows if cause.name == name)
    return cause


_COMMON = ("finger lifts", "only heartbeats", "run killed", "run stopped", "e-stop by a watcher")
PIGPIOD_CAUSES: tuple[Cause[Scene], ...] = (
    *map(causes.row, _COMMON),
    causes.row("wheels killed"),
    causes.row("wheels ended"),
    causes.row("wheels stopped"),
    _silent(causes.row("pigpiod killed"), PINS_S),
    _silent(causes.row("pigpiod hangs"), PINS_S),
)
_GUARDED = (
    "wheels killed",
    "wheels stopped",
    "wheels' loop blocked",
    "guardian killed",
    "guardian hangs",
)
_BY_GUARDIAN = tuple(_of(name, hat_causes.CAUSES) for name in _GUARDED)
KERNEL_CAUSES: tuple[Cause[Scene], ...] = (
    *map(causes.row, _COMMON),
    causes.row("wheels ended"),
    *_BY_GUARDIAN,
    replace(linux_causes.BOTH_KILLED, silent=True),
    _silent(linux_causes.PWM_FAILS, PINS_S),
)
GUARDIAN_CAUSES: tuple[Cause[Scene], ...] = (
    *map(causes.row, _COMMON),
    causes.row("wheels ended"),
    *_BY_GUARDIAN,
)
OE_CAUSES: tuple[Cause[Scene], ...] = (
    *GUARDIAN_CAUSES,
    _silent(_of("I2C error, OE wired", hat_causes.CAUSES), NOTICED_S),
)
"""OE cuts a pulse short: one stub, then silence."""
CARS = {
    "pigpiod": (PIGPIOD, PIGPIOD_CAUSES),
    "kernel PWM": (KERNEL, KERNEL_CAUSES),
    "PCA9685 with OE": (HAT_OE, OE_CAUSES),
    "PCA9685 by guardian": (HAT_GUARDIAN, GUARDIAN_CAUSES),
}

"""Simulated pins with the rules and a history of the real ones, for tests.

Outside events are methods too: `cut`, `hang`, `power_on`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fpvcar.config import Profile
from fpvcar.devices.motors.bridge import MotorBoard, motor_drivers
from fpvcar.devices.pins import PinsFault, PinsLost, PinsSilent
from fpvcar.wheels.pins_off_client import MotorAccess


@dataclass(frozen=True)
class Level:
    """State of a pin: high for `duty` of the time, steady or by PWM."""

    duty: float
    pwm: bool


class FakePins:
    """User pins 2 to 27; `history` has (gpio, duty) for every change, in order.

    `watch(pins)` is called after every call that changed something.
    """

    def __init__(self, watch: Callable[["FakePins"], None] = lambda pins: None) -> None:
        self.levels: dict[int, Level] = {}
        self.frequency_hz: dict[int, int] = {}
        self.history: list[tuple[int, float]] = []
        self.fault: PinsSilent | PinsLost | None = None
        self.calls = 0
        self._watch = watch

    def cut(self) -> None:
        """Simulate the death of the daemon."""
        self.fault = PinsLost("write: connection lost")

    def hang(self) -> None:
        """Simulate a daemon that hangs."""
        self.fault = PinsSilent("write")

    def duty(self, gpio: int) -> float:
        """Return the share of the time for which the pin is high; 0 for an input."""
        return self.levels[gpio].duty if gpio in self.levels else 0.0

    def write(self, gpio: int, level: int) -> None:
        """Make the pin a steady output and stop its PWM."""
        self._permit(gpio)
        self._set({gpio: Level(float(level), pwm=False)})

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switch steady outputs at once; refuse pins that the chip would ignore."""
        for gpio in gpios:
            self._permit(gpio)
            if gpio not in self.levels or self.levels[gpio].pwm:
                raise AssertionError(f"GPIO {gpio} is no steady output")
        self._set({gpio: Level(float(level), pwm=False) for gpio in gpios})

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Set the frequency of the pin's PWM."""
        self._permit(gpio)
        self.frequency_hz[gpio] = hz

    def pwm(self, gpio: int, duty: float) -> None:
        """Start a PWM; its frequency must have been set."""
        self._permit(gpio)
        if gpio not in self.frequency_hz or not 0.0 <= duty <= 1.0:
            raise AssertionError(f"PWM {duty} on GPIO {gpio} without a frequency")
        self._set({gpio: Level(duty, pwm=True)})

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Send servo pulses, 50 a second."""
        self._permit(gpio)
        if not 500 <= pulse_us <= 2500:
            raise AssertionError(f"a pulse of {pulse_us} us on GPIO {gpio}")
        self._set({gpio: Level(pulse_us / 20_000, pwm=True)})

    def _permit(self, gpio: int) -> None:
        self.calls += 1
        if self.fault is not None:
            raise self.fault
        if not 2 <= gpio <= 27:
            raise PinsLost(f"GPIO {gpio}: no permission to update GPIO")

    def _set(self, levels: dict[int, Level]) -> None:
        for gpio, level in levels.items():
            if self.levels.get(gpio) != level:
                self.history.append((gpio, level.duty))
        self.levels.update(levels)
        self._watch(self)


class FakeDeadMan:
    """Simulation of the stored script, which trips 220 ms after the last feed.

    Time stands still until `pass_to`.
    """

    TICK_S, PATIENCE_TICKS = 0.02, 9

    def __init__(self, pins: FakePins, gpios: Sequence[int], now_s: float) -> None:
        self.removed = False
        self.running = True
        self.feedings = self.rests = 0
        self._pins, self._gpios = pins, gpios
        self._tripped, self._fed, self._left = True, False, 0
        self._next_s = now_s + self.TICK_S

    def feed(self) -> None:
        """Postpone the stop from the next tick on."""
        self._answer()
        self.feedings += 1
        self._fed = True

    def awake(self) -> bool:
        """Return True once a tick has noticed the feed."""
        self._answer()
        if not self.running:
            raise PinsLost("the dead man's script does not run")
        return not self._tripped

    def rest(self) -> None:
        """Count the call; the stored script does nothing either."""
        self._answer()
        self.rests += 1

    def remove(self) -> None:
        """Remove the script; its ticks end."""
        self._answer()
        self.removed = True

    def pass_to(self, now_s: float) -> None:
        """Run the script until this time."""
        while self.running and not self.removed and self._next_s <= now_s:
            self._next_s += self.TICK_S
            self._tick()

    def _tick(self) -> None:
        if self._fed:
            self._fed, self._tripped = False, False
            self._left = self.PATIENCE_TICKS
            return
        self._left -= 1
        if self._left < 0:
            self._tripped, self._left = True, 0
            fault, self._pins.fault = self._pins.fault, None
            pins = self._pins
            steady = [gpio for gpio in self._gpios if not pins.levels[gpio].pwm]
            pins.write_together(steady, 0)  # a brake: all pins at once
            for gpio in self._gpios:
                pins.write(gpio, 0)
            pins.fault = fault

    def _answer(self) -> None:
        if self._pins.fault is not None:
            raise self._pins.fault


class PlayedAccess(MotorAccess):
    """Ways to the motors, played by functions of a test."""

    def __init__(
        self,
        connect: Callable[[], MotorBoard],
        call_helper: Callable[[], object] = lambda: None,
        release_pins: Callable[[], str] = lambda: "",
    ) -> None:
        self._connect, self._call_helper, self._release_pins = connect, call_helper, release_pins

    def connect(self) -> MotorBoard:
        return self._connect()

    def release_pins(self) -> str:
        return self._release_pins()

    def call_helper(self) -> None:
        self._call_helper()


class FakeBoard:
    """Motors of one car on fake pins."""

    def __init__(self, profile: Profile, pins: FakePins, now_s: float) -> None:
        self._pins, self._gpios = pins, profile.motor_pins()
        for gpio in self._gpios:
            pins.write(gpio, 0)
        self.dead_man = FakeDeadMan(pins, self._gpios, now_s)
        self.drivers = motor_drivers(profile, pins)
        self.closed = False

    def close(self) -> None:
        """Switch everything off and remove the dead man, unless the pins do not answer."""
        self.closed = True
        with suppress(PinsFault):
            levels = self._pins.levels  # empty after the loss of the daemon
            steady = [one for one in self._gpios if one in levels]
            steady = [one for one in steady if not levels[one].pwm]
            self._pins.write_together(steady, 0)
            for gpio in self._gpios:
                self._pins.write(gpio, 0)
            self.dead_man.remove()

"""Interfaces of pins, their edges and the motors behind them, independent of the back end."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fpvcar.runtime.workers import DeviceLost

HOLD_S, CYCLE_S = 0.1, 0.025
"""Time of neutral pulses before an ESC gets none: more than three periods, after the one under
way; and a period, for the last pulse to end."""


class PinsFault(DeviceLost):
    """Raised when pins do not obey. The owner closes its connection and opens a new one."""


class PinsSilent(PinsFault):
    """Raised after a time-out: the daemon hangs, and its DMA may keep a motor running."""


class PinsLost(PinsFault):
    """Raised when the daemon is gone, refused a call, or answered out of step."""


class PinsRefused(PinsLost):
    """Raised when the daemon refused a call; it is in step and goes on."""


class Pins(Protocol):
    """Output pins by BCM number. Every method raises PinsSilent or PinsLost."""

    def write(self, gpio: int, level: int) -> None:
        """Make the pin a steady output and stop its PWM."""

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switch several pins in the same instant.

        Only for pins that are steady outputs already: it neither sets a mode nor stops a PWM.
        """

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Set the pin's PWM frequency to the nearest available one."""

    def pwm(self, gpio: int, duty: float) -> None:
        """Drive the pin high for `duty` (0 to 1) of the time."""

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Send pulses of this length (500 to 2500), about 50 per second; 0 ends them with a whole
        one."""


class IoPins(Pins, Protocol):
    """Pins that can be read as well. Every method raises PinsSilent or PinsLost."""

    def input_pull_up(self, gpio: int, steady_us: int) -> None:
        """Make the pin an input with pull-up whose edges count after `steady_us` of
        stability; wait that long before reading its level."""

    def input_pull_down(self, gpio: int) -> None:
        """Make the pin an input with pull-down; every edge counts."""

    def trigger(self, gpio: int, length_us: int, after_s: float = 0.0) -> None:
        """Pull the pin high for `length_us` (1 to 100), `after_s` from now. May
        return before; a later call raises a refusal."""

    def check(self) -> None:
        """Return if the pins can still be reached; raise otherwise."""

    def close(self) -> None:
        """End the connection; the pins keep their state. Never raises."""


class Edge(NamedTuple):
    """Change of a pin: tick in us (32 bits), pin, new level."""

    tick_us: int
    gpio: int
    level: int


class Edges(Protocol):
    """Changes of some input pins. `read` raises PinsFault."""

    def read(self, timeout_s: float, changes: int = 1) -> Sequence[Edge]:
        """Return changes; wait up to `timeout_s` for `changes` of them, or for the
        first if the back end cannot count. [] means no change."""

    def level(self, gpio: int) -> int:
        """Return the pin's level after the last edge."""

    def fileno(self) -> int:
        """Return a descriptor for select, readable when `read` has data."""

    def close(self) -> None:
        """Stop listening for edges. Never raises."""


class DeadMan(Protocol):
    """Switch that turns the motors off unless it is fed. Raises as `Pins` does."""

    def feed(self) -> None:
        """Postpone the stop by the dead man's patience."""

    def awake(self) -> bool:
        """Return True once the feeding has taken effect; before that it may still stop."""

    def rest(self) -> None:
        """Report that the motors stand: silence is allowed until the next feeding."""

    def remove(self) -> None:
        """Remove it: the motors stand and will not be driven."""

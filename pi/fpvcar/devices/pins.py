"""A chip's pins, their edges and the motors behind them, whatever drives them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fpvcar.threads import Lost


class PinsFault(Lost):
    """The pins did not do as told. Whoever holds them lets go and connects anew."""


class PinsSilent(PinsFault):
    """No answer in time: the daemon hangs, and its DMA may keep a motor running."""


class PinsLost(PinsFault):
    """The daemon is gone, refused a call, or answered out of step."""


class PinsRefused(PinsLost):
    """The daemon answered a call with an error; it is in step, and goes on."""


class Pins(Protocol):
    """Output pins by BCM number. Every method raises PinsSilent or PinsLost."""

    def write(self, gpio: int, level: int) -> None:
        """Makes the pin a steady output; stops its PWM."""

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switches several pins in the same instant.

        Only for pins that are steady outputs already: it neither sets a mode nor
        stops a PWM.
        """

    def set_frequency(self, gpio: int, hz: int) -> None:
        """The pin's PWM frequency (the nearest there is)."""

    def pwm(self, gpio: int, duty: float) -> None:
        """Makes the pin high for `duty` (0 to 1) of the time."""

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Sends pulses of that length (500 to 2500), some 50 a second."""


class IoPins(Pins, Protocol):
    """Pins that are read, too. Every method raises PinsSilent or PinsLost."""

    def listen(self, gpio: int, steady_us: int) -> None:
        """Makes the pin an input with pull-up whose edges count once they have held
        for `steady_us`; wait so long before you look at its level."""

    def hear(self, gpio: int) -> None:
        """Makes the pin an input with pull-down, whose every edge counts."""

    def trigger(self, gpio: int, length_us: int, after_s: float = 0.0) -> None:
        """Pulls the pin high for so long (1 to 100), `after_s` from now; may return
        before. One of the next calls raises a refusal."""

    def check(self) -> None:
        """Returns if the pins can still be reached."""

    def close(self) -> None:
        """Ends the connection; the pins stay as they are. Never raises."""


class Edge(NamedTuple):
    """A pin that changed: when (a tick of us, 32 bits), which, to what."""

    tick_us: int
    gpio: int
    level: int


class Edges(Protocol):
    """Changes of some input pins. `read` raises PinsFault."""

    def read(self, timeout_s: float, changes: int = 1) -> Sequence[Edge]:
        """What has changed; waits so long for so many changes, or, where it cannot, for
        the first one; [] is nothing."""

    def level(self, gpio: int) -> int:
        """The pin's level after the last edge."""


class OpenEdges(Edges, Protocol):
    """What holds a connection open."""

    def fileno(self) -> int:
        """For select: readable where `read` has something."""

    def close(self) -> None:
        """Hears nothing from now on. Never raises."""


class DeadMan(Protocol):
    """What turns the motors off when nobody feeds it. Raises as `Pins` does."""

    def feed(self) -> None:
        """Puts the stop off."""

    def awake(self) -> bool:
        """True once it has noticed the feeding; before that it may still stop."""

    def rest(self) -> None:
        """The motors stand; whoever feeds it may be silent until the next feeding."""

    def remove(self) -> None:
        """Takes it away: the motors stand and nobody will drive them."""


class MotorDriver(Protocol):
    """One motor. `drive` and `tick` raise PinsFault."""

    @property
    def due_s(self) -> float | None:
        """When `tick` has something to do, if nothing else happens."""

    def drive(self, duty: float, now_s: float) -> None:
        """Wants `duty` (-1..1) from now on; 0 is a stop. Repeat it at will."""

    def tick(self, now_s: float) -> None:
        """Does what is due by now."""


class MotorBoard(Protocol):
    """The motors of one car, switched off, and who stops them when we die.

    A back end without a dead man does not fit, on purpose.
    """

    @property
    def drivers(self) -> Sequence[MotorDriver]:
        """The drive motor's, then the steering's; or the left one's, then the right."""

    @property
    def dead_man(self) -> DeadMan:
        """The dead man, armed."""

    def close(self) -> None:
        """Switches all motors off, then removes the dead man and ends the connection.

        The dead man stays where the pins do not answer: it switches them off. Never
        raises; waits only for pins that have answered so far.
        """

"""What each motor's bridge does with the levels of its pins, chip by chip. Pure."""

from collections.abc import Callable
from typing import NamedTuple

from fpvcar.bench.soc import Soc
from fpvcar.config import AnyMotor, L298n, Motors, Mx1508


class Bridge(NamedTuple):
    """One H-bridge over a PWM period, as shares of the time.

    `drive` is forward minus reverse (-1..1), `brake` the winding shorted, `coast` the
    bridge off (high-Z). PWMs of one chip start together, so inputs overlap.
    """

    drive: float = 0.0
    brake: float = 0.0
    coast: float = 1.0


class Bridges(NamedTuple):
    """Both motors of a car."""

    drive: Bridge = Bridge()
    steer: Bridge = Bridge()


class Losses(NamedTuple):
    """What a bridge takes from the motor's voltage: `drop_v`, and by its resistance."""

    ohm: float = 1.6
    """MX1508: both switches of the path together; it drops 1.6 V/A."""
    drop_v: float = 0.0


def mx1508(forward: float, reverse: float) -> Bridge:
    """1/0 forward, 0/1 reverse, 1/1 brake, 0/0 high-Z. Duties 0 to 1."""
    both = min(forward, reverse)
    return Bridge(forward - reverse, both, 1.0 - max(forward, reverse))


def l298n(enable: float, forward: float, reverse: float) -> Bridge:
    """Off without the enable; with it, unequal inputs drive and equal ones brake."""
    drive = min(forward, enable) - min(reverse, enable)
    return Bridge(drive, enable - abs(drive), 1.0 - enable)


class Chip(NamedTuple):
    """`bridge` takes the duties of the pins in the order of the motor's `pins`."""

    bridge: Callable[..., Bridge]
    losses: Losses


CHIPS: dict[type[AnyMotor], Chip] = {
    Mx1508: Chip(mx1508, Losses()),
    # bipolar: typically 1.8 V at 1 A (data sheet), most of it whatever the current
    L298n: Chip(l298n, Losses(ohm=0.8, drop_v=1.0)),
}


class Wiring:
    """Which pins feed which bridge, by the profile; `invert` swaps a motor's leads."""

    def __init__(self, motors: Motors) -> None:
        self._motors = (motors.drive, motors.steer)

    @property
    def losses(self) -> tuple[Losses, Losses]:
        """The drive motor's bridge's, and the steering's."""
        drive, steer = (CHIPS[type(motor)].losses for motor in self._motors)
        return drive, steer

    def bridges(self, soc: Soc) -> Bridges:
        """What the pins make them do now."""
        return Bridges(*(_bridge(motor, soc) for motor in self._motors))


def _bridge(motor: AnyMotor, soc: Soc) -> Bridge:
    duties = (min(soc.pin[gpio].duty(), 1.0) for gpio in motor.pins())
    state = CHIPS[type(motor)].bridge(*duties)
    return state._replace(drive=-state.drive) if motor.invert else state

"""The steps of a calibration: what the page is to wish while a finger is down, what
follows from what is seen and said. Pure: time is in what they see.

    page: finger down -> drive {wish of the step} -> gate, mixing, wheels, as ever
    car:  Seen, 50 times a second -> the step -> found values -> kept, if somebody says

While a step lasts the car drives by `trial`, values over those that are kept.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from fpvcar.calibration.values import Value
from fpvcar.config import DcMotor, Motors
from fpvcar.wire.telemetry import Range


class Seen(NamedTuple):
    """The car at a moment: what the gate lets through, what the pins are told."""

    now_s: float
    throttle: float
    steer: float
    duties: tuple[float, ...]
    ranges: Sequence[Range] = ()
    volts: float | None = None

    @property
    def moves(self) -> bool:
        """Is a motor driven?"""
        return any(self.duties)


class Wish(NamedTuple):
    """What the page sends while the finger is down; + steer is left."""

    throttle: float = 0.0
    steer: float = 0.0


class Refused(ValueError):
    """What was said does not fit this step: value, limit, next step."""


class Step(Protocol):
    """One step. `found` is what could be kept now; `phase` a word for the page."""

    trial: dict[str, Value]
    found: dict[str, Value]
    phase: str

    def wish(self, limit: float, volts: float) -> Wish:
        """What to wish now; `limit` is the car's speed limit."""

    def see(self, seen: Seen) -> None:
        """Takes what the car does."""

    def say(self, word: str, figures: Sequence[float]) -> None:
        """Takes what a person says. Raises Refused."""

    def figures(self) -> dict[str, Any]:
        """For the page, beside `phase` and `found`."""


class Failed:
    """Stands in for a step that raised an error: it moves nothing and finds nothing."""

    def __init__(self, fault: Exception) -> None:
        self.trial, self.found = dict[str, Value](), dict[str, Value]()
        self.phase = "failed"
        self._fault = f"{type(fault).__name__}: {fault}"

    def wish(self, limit: float, volts: float) -> Wish:
        """Neutral."""
        return Wish()

    def see(self, seen: Seen) -> None:
        """Ignore the car."""

    def say(self, word: str, figures: Sequence[float]) -> None:
        """Raises Refused."""
        raise Refused(f"the step failed ({self._fault}): go back and begin it again")

    def figures(self) -> dict[str, Any]:
        """Reason of the failure."""
        return {"fault": self._fault}


class Held:
    """For how long a motor has been driven, and for how long the car has stood."""

    def __init__(self) -> None:
        self.held_s = self.rest_s = 0.0
        self._since_s: float | None = None
        self._moved = False

    def see(self, seen: Seen) -> None:
        """Takes what the car does."""
        if self._since_s is None or seen.moves != self._moved:
            self._since_s, self._moved = seen.now_s, seen.moves
        for_s = seen.now_s - self._since_s
        self.held_s, self.rest_s = (for_s, 0.0) if seen.moves else (0.0, for_s)


def wish_for(
    motors: Motors, name: str, share: float, limit: float
) -> tuple[Wish, dict[str, Value]]:
    """The wish that turns one motor alone at this share of its full (-1..1), and the
    trial that it needs.

    The speed limit, which takes its share of throttle only, is reckoned in: above it
    the wish is what the limit lets through.
    """
    limit = max(limit, 0.01)
    if motors.differential:
        half = share / 2.0
        side = -half if name == "left" else half
        throttle = min(max(half / limit, -1.0), 1.0)
        return Wish(throttle, side), {"motors.turn": 1.0}
    if name == "steer":
        return Wish(0.0, share), {}
    return Wish(min(max(share / limit, -1.0), 1.0), 0.0), {}


def dc(motors: Motors, name: str) -> DcMotor:
    """The motor of this name. Raises Refused for a servo, or none."""
    for one, motor in zip(motors.names, motors.pair, strict=True):
        if one == name and isinstance(motor, DcMotor):
            return motor
    has = ", ".join(
        one
        for one, motor in zip(motors.names, motors.pair, strict=True)
        if isinstance(motor, DcMotor)
    )
    raise Refused(f'motor "{name[:20]}": expected one of {has}')

"""Steps of a calibration: the wish for the page, and the results from sensors and people.

    page: finger down -> drive {wish of the step} -> gate, mixing, wheels, as in driving
    car:  CarState, 50 times a second -> the step -> found values -> kept, on a person's request

During a step the car drives by `trial`: values on top of the kept ones. Pure: `CarState` contains
the time.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from fpvcar.calibration.values import Value
from fpvcar.config import DcMotor, Motors
from fpvcar.runtime.texts import Phrase, Refusal
from fpvcar.wire.telemetry import Battery, Range

STEP_FAILED = Phrase("step_failed", "The step failed ({reason}): go back and begin it again.")


class CarState(NamedTuple):
    """State of the car at a moment: the gate's setpoint and the duties sent to the pins."""

    now_s: float
    throttle: float
    steer: float
    duties: tuple[float, ...]
    ranges: Sequence[Range] = ()
    volts: float | None = None
    battery: Battery | None = None
    held: bool = False
    """Whether a stop holds the car."""

    @property
    def moves(self) -> bool:
        """Whether any motor has a duty now."""
        return any(self.duties)


class Wish(NamedTuple):
    """Wish that the page sends while the finger is down; + steer is left."""

    throttle: float = 0.0
    steer: float = 0.0


class Step(ABC):
    """Base of a step. `found` has the values that could be kept now, `trial` those that apply
    meanwhile; `phase` is a word for the page."""

    def __init__(self, phase: str) -> None:
        self.trial, self.found = dict[str, Value](), dict[str, Value]()
        self.phase = phase

    def wish(self, limit: float, volts: float) -> Wish:
        """Return the current wish, here neutral; `limit` is the car's speed limit."""
        return Wish()

    def update(self, car: CarState) -> None:  # noqa: B027  # some steps only ask
        """Process the state of the car."""

    @abstractmethod
    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process a person's input. Raises ValueError."""

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Return figures for the page, in addition to `phase` and `found`."""


class FailedStep(Step):
    """Replacement for a step that raised an error: moves nothing and finds nothing."""

    def __init__(self, fault: Exception) -> None:
        super().__init__("failed")
        self._fault = f"{type(fault).__name__}: {fault}"

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Raise ValueError with the step's error."""
        raise Refusal(STEP_FAILED(reason=self._fault))

    def figures(self) -> dict[str, Any]:
        """Return the reason of the failure for the page."""
        return {"fault": self._fault}


class DriveTimer:
    """Timer for continuous driving of a motor and for continuous rest of the car."""

    def __init__(self) -> None:
        self.held_s = self.rest_s = 0.0
        self._since_s: float | None = None
        self._moved = False

    def update(self, car: CarState) -> None:
        """Process the state of the car."""
        if self._since_s is None or car.moves != self._moved:
            self._since_s, self._moved = car.now_s, car.moves
        for_s = car.now_s - self._since_s
        self.held_s, self.rest_s = (for_s, 0.0) if car.moves else (0.0, for_s)


def wish_for(
    motors: Motors, name: str, share: float, limit: float
) -> tuple[Wish, dict[str, Value]]:
    """Return the wish that turns one motor alone at this share of its full (-1..1), and the
    trial values that it needs.

    The speed limit scales throttle only and is compensated here; a wish beyond the limit is cut to
    it.
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
    """Return the DC motor of this name. Raises ValueError for a servo or an unknown name."""
    for motor_name, motor in zip(motors.names, motors.pair, strict=True):
        if motor_name == name and isinstance(motor, DcMotor):
            return motor
    names = ", ".join(
        motor_name
        for motor_name, motor in zip(motors.names, motors.pair, strict=True)
        if isinstance(motor, DcMotor)
    )
    raise ValueError(f'motor "{name[:20]}": expected one of {names}')

"""Interface between checks and rigs; the bench is one rig, a real car another.

check ---> rig.driver()    a page that drives
      ---> rig.scope()     records the motors' pins
      ---> rig.edges(...)  edges of extra pins, through the car's pins back end
      ---> rig.signal(...) ends or stops one of the car's processes
      ---> rig.light(...)  switches the LED in front of the camera
      ---> rig.glass()     a browser that shows the car's picture and reports brightness
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from signal import Signals
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fpvcar.config import Profile
from fpvcar.devices.pins import Edges, IoPins
from fpvcar.hil.driver import Driver
from fpvcar.hil.pin_recorder import Scope
from fpvcar.hil.results import Limit, Measured, RigKind

if TYPE_CHECKING:
    from fpvcar.hil.browser_probe import BrowserProbe  # imports this module


class MissingPart(Exception):
    """Raised when the rig lacks a part that a check needs; the text names it."""


class CheckFailed(Exception):
    """Raised when a check fails without a figure to report."""


class InvalidMeasurement(Exception):
    """Raised for a meaningless measurement: the car stood before the failure."""


class SeenPicture(NamedTuple):
    """Picture seen by a rig: times of display and capture by CLOCK_MONOTONIC in ns,
    and the brightness of its cells as counted by spot.py."""

    seen_ns: int
    captured_ns: int
    cells: Sequence[float]


class Rig(Protocol):
    """A running car and the parts wired to it."""

    where: RigKind
    profile: Profile
    port: int

    def lacks(self, part: str) -> str:
        """Return the reason why a part (see PARTS) is missing; "" if it is there."""

    def driver(self) -> Driver:
        """Return the page. Only one may be open at a time."""

    def scope(self) -> AbstractContextManager[Scope]:
        """Record the motors' pins until the context ends."""

    def pins(self) -> AbstractContextManager[IoPins]:
        """Open extra pins through the car's back end. Raises PinsFault."""

    def edges(self, gpios: Sequence[int]) -> AbstractContextManager[Edges]:
        """Read the edges of pins made inputs with pull-down. Raises PinsFault."""

    def signal(self, unit: str, number: Signals) -> int:
        """Send a signal to a unit or to "camera"; return CLOCK_MONOTONIC in ns just before."""

    def waited_s(self) -> Callable[[], float]:
        """Return a counter of the time the bench waits for a core from now on."""

    def close_contact(self, closed: bool) -> None:
        """Close or open the contact of the first button."""

    def range_m(self, sensor: str) -> float:
        """Return the true distance between a VL53L0X and its target."""

    def amps(self) -> float:
        """Return the true current through the INA219."""

    def light(self, lit: bool) -> int:
        """Switch the LED in front of the camera; return CLOCK_MONOTONIC in ns just before."""

    def glass(self) -> AbstractContextManager["BrowserProbe"]:
        """Open a browser that shows the car's pictures. Raises MissingPart or CheckFailed."""

    def rest(self) -> None:
        """Release every pin that the suite drives."""


PARTS = {
    "loops": "inputs wired to the motor pins (rig.loops)",
    "out": "a free pin wired to another one (rig.out, rig.back)",
    "processes": "the right to end the car's processes",
    "pin daemon": "pigpiod, with inputs read by another back end",
    "camera": "a camera",
    "echo": "an input at the echo of an HC-SR04 (rig.echo)",
    "contact": "a relay or pin at a button (rig.contact)",
    "target": "a target in front of a VL53L0X (rig.target_m)",
    "load": "a known load behind the INA219 (rig.load_a)",
    "flash": "an LED in front of the camera (rig.led)",
    "photodiode": "a light sensor on the screen of a browser (rig.photodiode)",
    "browser": "a browser: Chromium on the bench, else opened by a person (--browser)",
    "radio": "a driver on Wi-Fi",
    "metal": "a real Raspberry Pi",
}
"""Parts that a check may need."""


@dataclass(frozen=True)
class Check:
    """Statement about the car, with its measurement.

    `act` returns one measurement in the limit's unit. It raises MissingPart, CheckFailed or
    InvalidMeasurement. `metal`: only a real Pi can confirm the statement; without `act` a person
    must, following `by_hand`.
    """

    name: str
    group: str
    proves: str
    limit: Limit
    needs: tuple[str, ...] = ()
    act: Callable[[Rig], Measured] | None = None
    metal: bool = False
    by_hand: str = ""

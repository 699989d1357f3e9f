"""What a check is, and what it is given: a rig, which the bench is, and which metal is.

check ---> rig.driver()    a page that drives
      ---> rig.scope()     looks at the motors' pins
      ---> rig.edges(...)  hears pins of its own, over the car's pins back end
      ---> rig.signal(...) ends or stops one of the car's processes
      ---> rig.light(...)  switches the LED before the camera
      ---> rig.glass()     a browser that shows the car's picture, and says how bright
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from signal import Signals
from typing import NamedTuple, Protocol

from fpvcar.config import Profile
from fpvcar.devices.pins import IoPins, OpenEdges
from fpvcar.hil.driver import Driver
from fpvcar.hil.results import Limit, Measured, Where
from fpvcar.hil.scope import Scope


class NotHere(Exception):
    """The rig lacks what a check needs; the text names it."""


class Failed(Exception):
    """A check saw something that it can give no figure for."""


class Spoilt(Exception):
    """A measurement that says nothing: the car stood before anything failed."""


class Seen(NamedTuple):
    """One picture: when it was seen and when it was captured, by CLOCK_MONOTONIC in ns;
    its brightness, cell by cell, as spot.py counts them."""

    seen_ns: int
    captured_ns: int
    cells: Sequence[float]


class Shown(Protocol):
    """What a browser shows: glass.Glass."""

    def pictures(self) -> Iterator[Seen]:
        """Each as it is shown. Failed."""


class Rig(Protocol):
    """A car that runs, and what is wired to it."""

    where: Where
    profile: Profile
    port: int

    def lacks(self, part: str) -> str:
        """Why a part (see PARTS) is not there; "" if it is."""

    def driver(self) -> Driver:
        """The page: only one at a time."""

    def scope(self) -> AbstractContextManager[Scope]:
        """Looks at the motors' pins."""

    def pins(self) -> AbstractContextManager[IoPins]:
        """Pins of the suite's own, by the back end that the car uses. PinsFault."""

    def edges(self, gpios: Sequence[int]) -> AbstractContextManager[OpenEdges]:
        """Hears pins that are inputs with pull-down. PinsFault."""

    def signal(self, unit: str, number: Signals) -> int:
        """To a unit of the car, or to "camera"; CLOCK_MONOTONIC in ns just before."""

    def waited_s(self) -> Callable[[], float]:
        """From now on: for how long the bench has waited for a core."""

    def close_contact(self, closed: bool) -> None:
        """Of the first button."""

    def range_m(self, sensor: str) -> float:
        """How far from a VL53L0X its target truly is."""

    def amps(self) -> float:
        """What truly flows through the INA219."""

    def light(self, lit: bool) -> int:
        """The LED before the camera; CLOCK_MONOTONIC in ns just before."""

    def glass(self) -> AbstractContextManager[Shown]:
        """A browser that shows the car's pictures. NotHere, Failed."""

    def rest(self) -> None:
        """All that the suite drives is let go."""


PARTS = {
    "loops": "pins that hear the motors' pins (rig.loops)",
    "out": "a free pin wired to another one (rig.out, rig.back)",
    "processes": "the right to end the car's processes",
    "pin daemon": "pigpiod, watched by something that does not hang on it",
    "camera": "a camera",
    "echo": "a pin that hears the echo of an HC-SR04 (rig.echo)",
    "contact": "a relay, or a pin, at a button (rig.contact)",
    "target": "a target before a VL53L0X (rig.target_m)",
    "load": "a known load behind the INA219 (rig.load_a)",
    "flash": "an LED before the camera (rig.led)",
    "browser": "a browser: a Chromium beside the bench, else a person's (--browser)",
    "radio": "a driver who comes over Wi-Fi",
    "metal": "a real Raspberry Pi",
}
"""What a check may need."""


@dataclass(frozen=True)
class Check:
    """One statement about the car, and how it is measured.

    `act` returns one measurement, in the limit's unit. It raises NotHere, Failed or
    Spoilt. `metal`: only a real Pi can confirm it; without `act` a person has to,
    as `by_hand` says.
    """

    name: str
    group: str
    proves: str
    limit: Limit
    needs: tuple[str, ...] = ()
    act: Callable[[Rig], Measured] | None = None
    metal: bool = False
    by_hand: str = ""

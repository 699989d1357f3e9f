"""Interface between checks and rigs, with their shared part: extra pins through the car's own back
end. The bench is one rig, a real car another.

check ---> rig.driver()    a page that drives
      ---> rig.scope()     records the motors' pins
      ---> rig.edges(...)  edges of extra pins, through the car's pins back end
      ---> rig.signal(...) ends or stops one of the car's processes
      ---> rig.light(...)  switches the LED in front of the camera
      ---> rig.glass()     a browser that shows the car's picture and reports brightness
"""

import contextlib
import socket
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from signal import Signals

from fpvcar.config import Profile
from fpvcar.config.checks import looped
from fpvcar.devices import backends
from fpvcar.devices.pins import Edges, IoPins, PinsFault
from fpvcar.hil import browsers
from fpvcar.hil.browser_probe import BrowserProbe
from fpvcar.hil.driver import Driver
from fpvcar.hil.pin_recorder import Scope
from fpvcar.hil.results import RigKind
from fpvcar.hil.rig import CheckFailed, MissingPart

HEADLESS_S, PERSON_S = 30.0, 120.0
"""Seconds a page may take to show its first picture."""


class Rig(ABC):
    """A running car and the parts wired to it: pins of a profile, and the pages of its car."""

    where: RigKind
    host = "localhost"
    """Address under which a browser reaches this computer."""
    listens = "127.0.0.1"

    def __init__(self, profile: Profile, port: int, person: bool) -> None:
        """`person`: a person opens a browser on request."""
        self.profile, self.port, self.person = profile, port, person
        self._client = uuid.uuid4().hex
        self._own: IoPins | None = None
        self._glass_port = 0

    def driver(self) -> Driver:
        """Return a page with a constant client id, so that it gets its seat back."""
        return Driver(self.port, self._client)

    @contextlib.contextmanager
    def pins(self, by: Profile | None = None) -> Iterator[IoPins]:
        """Open extra pins, through the back end of `by` if given. Raises PinsFault."""
        with contextlib.closing(backends.open_pins(by or self.profile)) as pins:
            yield pins

    @contextlib.contextmanager
    def edges(self, gpios: Sequence[int], by: Profile | None = None) -> Iterator[Edges]:
        """Read the edges of pins made inputs with pull-down. Raises PinsFault."""
        with self.pins(by) as pins:
            for gpio in gpios:
                pins.input_pull_down(gpio)
            edges = backends.open_edges(by or self.profile, pins, gpios)
            with contextlib.closing(edges):
                yield edges

    def write(self, gpio: int, level: int) -> None:
        """Hold a pin until `rest`; the kernel releases a pin when its file is closed."""
        if self._own is None:
            self._own = backends.open_pins(self.profile)
        self._own.write(gpio, level)

    def light(self, lit: bool) -> int:
        """Switch the LED on the pin rig.led."""
        assert self.profile.rig.led is not None
        # opening the pin takes a while, so it happens before the time is taken
        self.write(self.profile.rig.led, 0)
        now_ns = time.monotonic_ns()
        self.write(self.profile.rig.led, int(lit))
        return now_ns

    def rest(self) -> None:
        """Switch the LED off and release all pins."""
        own, self._own = self._own, None
        if own is None:
            return
        with contextlib.suppress(PinsFault), contextlib.closing(own):
            if self.profile.rig.led is not None:
                own.write(self.profile.rig.led, 0)

    @contextlib.contextmanager
    def glass(self) -> Iterator[BrowserProbe]:
        """Open a browser at the car's page /hil; it reports to a port of its own."""
        invites = self.person and not self._glass_port
        self._glass_port = self._glass_port or free_port()
        address = f"http://{self.host}:{self.port}/hil?port={self._glass_port}"
        if invites:
            print(browsers.invitation(address), flush=True)
        opened = contextlib.nullcontext() if self.person else browsers.headless(address)
        with BrowserProbe(self.listens, self._glass_port) as glass, opened:
            if glass.opened(PERSON_S if self.person else HEADLESS_S):
                yield glass
            elif self.person:
                raise MissingPart(f"no browser opened {address} within {PERSON_S:g} s")
            else:
                raise CheckFailed(f"the browser showed no picture within {HEADLESS_S:g} s")

    @abstractmethod
    def lacks(self, part: str) -> str:
        """Return the reason why a part (see PARTS) is missing; "" if it is there."""

    @abstractmethod
    def scope(self) -> AbstractContextManager[Scope]:
        """Record the motors' pins until the context ends."""

    @abstractmethod
    def signal(self, unit: str, number: Signals) -> int:
        """Send a signal to a unit or to "camera"; return CLOCK_MONOTONIC in ns just before."""

    @abstractmethod
    def waited_s(self) -> Callable[[], float]:
        """Return a counter of the time the bench waits for a core from now on."""

    @abstractmethod
    def close_contact(self, closed: bool) -> None:
        """Close or open the contact of the first button."""

    @abstractmethod
    def range_m(self, sensor: str) -> float:
        """Return the true distance between a VL53L0X and its target."""

    @abstractmethod
    def amps(self) -> float:
        """Return the true current through the INA219."""

    def unwired(self, part: str) -> str:
        """Return the reason why a part is missing from the profile; "" if it is there."""
        rig, profile = self.profile.rig, self.profile
        missing = {
            "loops": len(rig.loops) != len(looped(profile)),
            "servo": rig.servo is None or not profile.servos,
            "out": rig.out is None or rig.back is None,
            "echo": rig.echo is None or not profile.sensors.ultrasound,
            "contact": rig.contact is None or self.contact is None,
            "target": not profile.sensors.tof,
            "load": profile.battery.address is None,
            "flash": rig.led is None,
            "photodiode": rig.photodiode is None,
            "pin daemon": backends.pins_backend(profile) == "linux",
            "camera": profile.camera.source == "none" and not profile.camera.command,
        }
        needed = {
            "loops": "rig.loops lacks a pin for each output of the motors",
            "servo": "no pin rig.servo at a servo of [servos]",
            "out": "no pins rig.out and rig.back",
            "echo": "no pin rig.echo at the echo of an HC-SR04",
            "contact": "no relay or pin rig.contact at the first button",
            "target": "no VL53L0X (sensors.tof)",
            "load": "no INA219 (battery.address)",
            "flash": "no LED on a pin rig.led",
            "photodiode": "no light sensor on a pin rig.photodiode",
            "pin daemon": "no pigpiod: the kernel drives the pins",
            "camera": "no camera (camera.source)",
        }
        return needed[part] if missing.get(part, False) else ""

    @property
    def contact(self) -> int | None:
        """Return the GPIO of the first button."""
        buttons = iter(self.profile.buttons.values())
        return next((button.button for button in buttons if button.button is not None), None)


def free_port() -> int:
    """Return a free port; the page keeps using the same one."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])

"""What bench and metal have in common: pins of the suite, by the car's own back end."""

import contextlib
import socket
import time
import uuid
from collections.abc import Iterator, Sequence

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.devices.pins import IoPins, OpenEdges, PinsFault
from fpvcar.hil import browsers
from fpvcar.hil.driver import Driver
from fpvcar.hil.glass import Glass
from fpvcar.hil.rig import Failed, NotHere

HEADLESS_S, PERSON_S = 30.0, 120.0
"""How long a page may take until it shows a picture."""


class Wired:
    """The pins of a profile, and the pages of its car."""

    host = "localhost"
    """By which a browser reaches this computer."""
    listens = "127.0.0.1"

    def __init__(self, profile: Profile, port: int, person: bool) -> None:
        """`person`: somebody opens a browser when told to."""
        self.profile, self.port, self.person = profile, port, person
        self._client = uuid.uuid4().hex
        self._own: IoPins | None = None
        self._glass_port = 0

    def driver(self) -> Driver:
        """The page, always the same: its seat waits for it."""
        return Driver(self.port, self._client)

    @contextlib.contextmanager
    def pins(self, by: Profile | None = None) -> Iterator[IoPins]:
        """A connection of the suite's own, `by` another back end than the car's where
        it is given. Raises PinsFault."""
        with contextlib.closing(backends.open_pins(by or self.profile)) as pins:
            yield pins

    @contextlib.contextmanager
    def edges(
        self, gpios: Sequence[int], by: Profile | None = None
    ) -> Iterator[OpenEdges]:  # fmt: skip
        """Hears pins that are made inputs with pull-down. Raises PinsFault."""
        with self.pins(by) as pins:
            for gpio in gpios:
                pins.hear(gpio)
            heard = backends.open_edges(by or self.profile, pins, gpios)
            with contextlib.closing(heard):
                yield heard

    def write(self, gpio: int, level: int) -> None:
        """Holds a pin of the suite's own until `rest`: the kernel takes it back from
        whoever closes it."""
        if self._own is None:
            self._own = backends.open_pins(self.profile)
        self._own.write(gpio, level)

    def light(self, lit: bool) -> int:
        """By the pin rig.led."""
        assert self.profile.rig.led is not None
        self.write(self.profile.rig.led, 0)  # it is open now: that takes a while
        now_ns = time.monotonic_ns()
        self.write(self.profile.rig.led, int(lit))
        return now_ns

    def rest(self) -> None:
        """The LED is dark, nothing holds a pin."""
        own, self._own = self._own, None
        if own is None:
            return
        with contextlib.suppress(PinsFault), contextlib.closing(own):
            if self.profile.rig.led is not None:
                own.write(self.profile.rig.led, 0)

    @contextlib.contextmanager
    def glass(self) -> Iterator[Glass]:
        """A browser at the car's page /hil, which is heard on a port of its own."""
        invites = self.person and not self._glass_port
        self._glass_port = self._glass_port or free_port()
        address = f"http://{self.host}:{self.port}/hil?port={self._glass_port}"
        if invites:
            print(browsers.invitation(address), flush=True)
        opened = contextlib.nullcontext() if self.person else browsers.headless(address)
        with Glass(self.listens, self._glass_port) as glass, opened:
            if glass.opened(PERSON_S if self.person else HEADLESS_S):
                yield glass
            elif self.person:
                raise NotHere(f"no browser has opened {address} for {PERSON_S:g} s")
            else:
                raise Failed(f"the browser shows no picture for {HEADLESS_S:g} s")

    def unwired(self, part: str) -> str:
        """Why a part is not there, as far as the profile knows; "" if it is."""
        rig, profile = self.profile.rig, self.profile
        missing = {
            "loops": len(rig.loops) != len(profile.motor_pins()),
            "out": rig.out is None or rig.back is None,
            "echo": rig.echo is None or not profile.sensors.ultrasound,
            "contact": rig.contact is None or self.contact is None,
            "target": not profile.sensors.tof,
            "load": profile.battery.address is None,
            "flash": rig.led is None,
            "camera": profile.camera.source == "none" and not profile.camera.command,
        }
        needed = {
            "loops": "no pin of rig.loops for each pin of the motors",
            "out": "no pins rig.out and rig.back",
            "echo": "no pin rig.echo at an HC-SR04's echo",
            "contact": "no relay or pin rig.contact at the first button",
            "target": "no VL53L0X (sensors.tof)",
            "load": "no INA219 (battery.address)",
            "flash": "no LED on a pin rig.led",
            "camera": "no camera (camera.source)",
        }
        return needed[part] if missing.get(part, False) else ""

    @property
    def contact(self) -> int | None:
        """The GPIO of the first button."""
        buttons = iter(self.profile.buttons.values())
        return next((one.button for one in buttons if one.button is not None), None)


def free_port() -> int:
    """One that the system gives away; the same page finds it again and again."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])

"""What bench and metal have in common: pins of the suite, by the car's own back end."""

import contextlib
import uuid
from collections.abc import Iterator, Sequence

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.devices.pins import IoPins, OpenEdges
from fpvcar.hil.driver import Driver


class Wired:
    """The pins of a profile, and the page of its car."""

    def __init__(self, profile: Profile, port: int) -> None:
        self.profile, self.port = profile, port
        self._client = uuid.uuid4().hex

    def driver(self) -> Driver:
        """The page, always the same: its seat waits for it."""
        return Driver(self.port, self._client)

    @contextlib.contextmanager
    def pins(self) -> Iterator[IoPins]:
        """A connection of the suite's own. Raises PinsFault."""
        with contextlib.closing(backends.open_pins(self.profile)) as pins:
            yield pins

    @contextlib.contextmanager
    def edges(self, gpios: Sequence[int]) -> Iterator[OpenEdges]:
        """Hears pins that are made inputs with pull-down. Raises PinsFault."""
        with self.pins() as pins:
            for gpio in gpios:
                pins.hear(gpio)
            heard = backends.open_edges(self.profile, pins, gpios)
            with contextlib.closing(heard):
                yield heard

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
            "camera": profile.camera.source == "none" and not profile.camera.command,
        }
        needed = {
            "loops": "no pin of rig.loops for each pin of the motors",
            "out": "no pins rig.out and rig.back",
            "echo": "no pin rig.echo at an HC-SR04's echo",
            "contact": "no relay or pin rig.contact at the first button",
            "target": "no VL53L0X (sensors.tof)",
            "load": "no INA219 (battery.address)",
            "camera": "no camera (camera.source)",
        }
        return needed[part] if missing.get(part, False) else ""

    @property
    def contact(self) -> int | None:
        """The GPIO of the first button."""
        buttons = iter(self.profile.buttons.values())
        return next((one.button for one in buttons if one.button is not None), None)

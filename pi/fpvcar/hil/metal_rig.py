"""A real Pi as a rig: the car's units run, and extra pins listen to its pins.

The listening pins use the car's own back end. With pigpiod the motors' pins are read
through the kernel, which still works after pigpiod has died.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from fpvcar.config import Profile
from fpvcar.config.raspberry_pi_os import MODEL
from fpvcar.devices import backends
from fpvcar.devices.pins import PinsFault
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.pin_recorder import EdgeDuties, EdgeWidth, EscDuties, Scope
from fpvcar.hil.results import RigKind
from fpvcar.hil.rig import MissingPart
from fpvcar.http import addresses

UNITS = {"run": "fpvcar", "wheels": "fpvcar-wheels", "pigpiod": "pigpiod"}
SLOWEST_HZ = 100
PidOf = Callable[[str], int]


def unit_pid(unit: str) -> int:
    """Return the main process of a car's unit. Raises MissingPart."""
    argv = ["systemctl", "show", "-P", "MainPID", f"{UNITS[unit]}.service"]
    try:
        output = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as fault:
        raise MissingPart(f"no unit {UNITS[unit]}: {fault}") from None
    if not (pid := int(output.strip() or 0)):
        raise MissingPart(f"{UNITS[unit]} is not running: systemctl start {UNITS[unit]}")
    return pid


class MetalRig(Rig):
    """A car on this computer, with the pins of its profile's [rig]."""

    where: RigKind = "metal"
    listens = ""

    def __init__(
        self,
        profile: Profile,
        port: int,
        pid_of: PidOf = unit_pid,
        root: Path = Path("/"),
        person: bool = False,
    ) -> None:
        super().__init__(profile, port, person)
        self.host = addresses.lan_address()
        self._pid_of, self._metal = pid_of, (root / MODEL).exists()
        self._linux = backends.pins_backend(profile) == "linux"
        pins = msgspec.structs.replace(profile.pins, backend="linux")
        self._by_kernel = msgspec.structs.replace(profile, pins=pins)

    def lacks(self, part: str) -> str:
        """Return the reason why a part is missing."""
        rig = self.profile.rig
        absent = {
            "processes": "" if os.geteuid() == 0 else "not root: sudo fpvcar hil",
            "pin daemon": ""
            if self._linux or self._metal
            else "the check ends pigpiod, which reads the pins",
            "browser": "" if self.person else "no browser: hil --browser",
            "photodiode": "" if self.person else "no page below the light sensor: hil --browser",
            "target": "" if rig.target_m else "no rig.target_m (distance of the target)",
            "load": "" if rig.load_a else "no rig.load_a (current of the load)",
            "radio": "no radio: the driver uses the loopback of this computer",
            "metal": "" if self._metal else "this is no Raspberry Pi",
        }
        return absent.get(part) or self.unwired(part)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Scope]:
        """Record the motors' pins through the pins wired to them. On a Pi the kernel timestamps the
        edges: two motors at 800 Hz, as in rig.toml, give 3,200 edges a second."""
        loops = self.profile.rig.loops
        hz = min(getattr(motor, "pwm_hz", SLOWEST_HZ) for motor in self.profile.motors.pair)
        slowest = min(hz, SLOWEST_HZ) if self._linux else hz
        profile = self._by_kernel if self._metal else self.profile
        with self.edges(loops, profile) as edges:
            esc = profile.motors.esc
            poll = (
                EdgeDuties(edges, loops, 1.0 / slowest)
                if esc is None
                else EscDuties(EdgeWidth(edges, loops[0]), esc)
            )
            with Scope(poll) as scope:
                yield scope

    def signal(self, unit: str, number: signal.Signals) -> int:
        """Send a signal to a unit's main process; "camera" means the children of `run`."""
        pids = [self._pid_of("run" if unit == "camera" else unit)]
        if unit == "camera":
            below = Path(f"/proc/{pids[0]}/task/{pids[0]}/children")
            pids = [
                pid
                for pid in map(int, below.read_text().split())
                if b"camera" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
            if not pids:
                raise MissingPart("no camera process below `run`")
        now_ns = time.monotonic_ns()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return now_ns

    def waited_s(self) -> Callable[[], float]:
        """Return zero: on metal a busy processor is a fault of the car."""
        return lambda: 0.0

    def close_contact(self, closed: bool) -> None:
        """Pull the button's pin low, through a relay or 1 kΩ."""
        assert self.profile.rig.contact is not None
        self.write(self.profile.rig.contact, 0 if closed else 1)

    def range_m(self, sensor: str) -> float:
        """Return the measured distance of the target from the profile."""
        assert self.profile.rig.target_m is not None
        return self.profile.rig.target_m

    def amps(self) -> float:
        """Return the measured current of the load from the profile."""
        assert self.profile.rig.load_a is not None
        return self.profile.rig.load_a

    def rest(self) -> None:
        """Switch the LED off and open the contact."""
        if self._own is not None and self.profile.rig.contact is not None:
            with contextlib.suppress(PinsFault):
                self.close_contact(False)
        super().rest()

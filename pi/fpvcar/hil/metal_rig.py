"""A real Pi as a rig: the car's units run, and pins of their own hear its pins.

What hears is the back end that the car uses: where that is pigpiod, nothing here sees
what becomes of the pins when it dies, and says so.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.devices.pins import IoPins, PinsFault
from fpvcar.hil.results import Where
from fpvcar.hil.rig import Flash, NotHere
from fpvcar.hil.scope import EdgeDuties, Scope
from fpvcar.hil.wired import Wired
from fpvcar.system import MODEL

UNITS = {"run": "fpvcar", "wheels": "fpvcar-wheels", "pigpiod": "pigpiod"}
SLOWEST_HZ = 100
LIT_BY = 8.0
"""So many steps of 256 a picture is brighter, on average, once the LED is on."""
PidOf = Callable[[str], int]


def unit_pid(unit: str) -> int:
    """The main process of one of the car's units. Raises NotHere."""
    argv = ["systemctl", "show", "-P", "MainPID", f"{UNITS[unit]}.service"]
    try:
        said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as fault:
        raise NotHere(f"no unit {UNITS[unit]}: {fault}") from None
    if not (pid := int(said.strip() or 0)):
        raise NotHere(f"{UNITS[unit]} does not run: systemctl start {UNITS[unit]}")
    return pid


class MetalRig(Wired):
    """A car on this very computer, with the pins of its profile's [rig]."""

    where: Where = "metal"

    def __init__(
        self, profile: Profile, port: int, pid_of: PidOf = unit_pid,
        root: Path = Path("/"),
    ) -> None:  # fmt: skip
        super().__init__(profile, port)
        self._pid_of, self._root = pid_of, root
        self._own: IoPins | None = None
        self._linux = backends.pins_backend(profile) == "linux"

    def lacks(self, part: str) -> str:
        """Why a part is not there."""
        rig = self.profile.rig
        absent = {
            "processes": "" if os.geteuid() == 0 else "not root: sudo fpvcar hil",
            "pin daemon": "the pins are heard through pigpiod, which this ends"
            if not self._linux else "no pigpiod: the kernel has the pins",
            "target": "" if rig.target_m else "no rig.target_m: how far is the target?",
            "load": "" if rig.load_a else "no rig.load_a: what does the load draw?",
            "flash": "" if rig.led is not None else "no LED on a pin rig.led",
            "radio": "no radio: the driver comes over this computer's loopback",
            "metal": "" if (self._root / MODEL).exists() else "this is no Raspberry Pi",
        }  # fmt: skip
        return absent.get(part) or self.unwired(part)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Scope]:
        """By the pins that hear the motors' ones."""
        loops = self.profile.rig.loops
        hz = min(getattr(one, "pwm_hz", SLOWEST_HZ) for one in self.profile.motors.pair)
        slowest = min(hz, SLOWEST_HZ) if self._linux else hz
        with self.edges(loops) as heard:
            with Scope(EdgeDuties(heard, loops, 1.0 / slowest)) as scope:
                yield scope

    def signal(self, unit: str, number: signal.Signals) -> int:
        """To a unit's main process; "camera": to the children of `run`."""
        pids = [self._pid_of("run" if unit == "camera" else unit)]
        if unit == "camera":
            below = Path(f"/proc/{pids[0]}/task/{pids[0]}/children")
            pids = [
                pid for pid in map(int, below.read_text().split())
                if b"camera" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]  # fmt: skip
            if not pids:
                raise NotHere("no camera's process below `run`")
        now_ns = time.monotonic_ns()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return now_ns

    def _write(self, gpio: int, level: int) -> None:
        """Holds a pin of the suite's own until `rest`: the kernel takes it back from
        whoever closes it."""
        if self._own is None:
            self._own = backends.open_pins(self.profile)
        self._own.write(gpio, level)

    def close_contact(self, closed: bool) -> None:
        """Pulls the button's pin low, by a relay or through 1 kΩ."""
        assert self.profile.rig.contact is not None
        self._write(self.profile.rig.contact, 0 if closed else 1)

    def range_m(self, sensor: str) -> float:
        """As somebody measured it."""
        assert self.profile.rig.target_m is not None
        return self.profile.rig.target_m

    def amps(self) -> float:
        """As somebody measured it."""
        assert self.profile.rig.load_a is not None
        return self.profile.rig.load_a

    def flash(self, before: Any) -> Flash:
        """The LED, which was dark in the picture `before`."""
        assert self.profile.rig.led is not None
        dark, at_ns = float(before.mean()), time.monotonic_ns()
        self._write(self.profile.rig.led, 1)
        return Flash(at_ns, lambda luma: float(luma.mean()) > dark + LIT_BY)

    def rest(self) -> None:
        """LED dark, contact open."""
        if self._own is None:
            return
        own, self._own = self._own, None
        with contextlib.suppress(PinsFault), contextlib.closing(own):
            for gpio, level in (
                (self.profile.rig.led, 0),
                (self.profile.rig.contact, 1),
            ):
                if gpio is not None:
                    own.write(gpio, level)

"""A VM that is a car, with the packages installed and emulated hardware running."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
import websockets
from testkit.cameras.video_source import encode
from testkit.debs import build
from testkit.vm.image import Recipe, image
from testkit.vm.machine import Machine, Vm
from testkit.vm.modules import module

from fpvcar.hil.stop_causes import BLOCKED_S, CLOSED_S, NOTICED_S, PINS_S, TWO_FAULTS_S
from fpvcar.runtime.units import SECOND_NS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TRIXIE = Recipe(HERE, "trixie")
LONG_S = 900.0
"""Work of a few seconds in a VM may take minutes on a busy host."""
BOTH_KILLED, PWM_BROKEN = "both killed", "PWM broken"
"""`wheels` and its guardian are killed; the PWM takes no write."""
LIMITS_S = {
    "run killed": CLOSED_S,
    "run hung": BLOCKED_S,
    "run restarted": NOTICED_S,
    "wheels killed": NOTICED_S,
    "wheels hung": NOTICED_S,
    "wheels restarted": NOTICED_S,
    "pigpiod killed": PINS_S,
    "pigpiod hung": PINS_S,
    "pigpiod restarted": PINS_S,
    "run stopped": NOTICED_S,
    "wheels stopped": NOTICED_S,
    "pigpiod stopped": PINS_S,
    "helper hung": TWO_FAULTS_S,
    "camera killed": NOTICED_S,
    "guardian killed": NOTICED_S,
    "guardian hung": NOTICED_S,
    "whole car rebooted": NOTICED_S,
    BOTH_KILLED: TWO_FAULTS_S,
    PWM_BROKEN: PINS_S,
}
"""The design's limit for each cause. systemd itself needs some time to begin a restart."""
RECORDINGS = "/var/lib/fpvcar/recordings"
WHOLE = (
    f"for n in $(seq 60); do [ $(ls {RECORDINGS}/*.part | wc -l) -gt 1 ] || break;"
    f" sleep 1; done; fpvcar log verify {RECORDINGS}"
)
"""Open recordings are sealed, except for the one that is being written, and all recordings pass
the check."""
ENDS = """\
import sys
from pathlib import Path
from fpvcar.recordings import reader
for name in sys.argv[1:]:
    with reader.read(Path(name)) as recording:
        print(recording.end_ns)
"""
BOOT = "cat /proc/sys/kernel/random/boot_id"
WHEELS = "systemctl show --property=MainPID --value fpvcar-wheels"
CAMERA = "sh /share/tests/vm_units/camera.sh"
"""Gives the car its camera, and starts it."""
STOPS = pytest.StashKey[list["Stop"]]()
INSIDE = "cd /share && PYTHONPATH=/share python3 -m tests.vm_units.inside"


def bring(share: Path) -> None:
    """Put the packages, the tests' driver and the emulated hardware into the share."""
    ignore = shutil.ignore_patterns("__pycache__", "*.so")
    build(share)
    shutil.copytree(ROOT / "tests", share / "tests", ignore=ignore)
    there = Path(websockets.__file__).parent
    shutil.copytree(there, share / "websockets", ignore=ignore)
    units = encode(frames=45, aud=True, gop=15, noise=20)
    (share / "pictures.h264").write_bytes(b"".join(units))


@dataclass(frozen=True)
class Stop:
    """Result of one cause: when the motors were off, and when the car drove again by itself."""

    cause: str
    off_s: float
    whole_s: float | None
    pins: str

    @property
    def limit_s(self) -> float:
        """Return the time by which the motors must be off."""
        return LIMITS_S[self.cause]


class Car:
    """A VM in which the packages are installed and set up as in install.md."""

    def __init__(
        self, share: Path, disk: Path, recipe: Recipe = TRIXIE, steady: bool = True
    ) -> None:
        self.share, self.disk, self.recipe, self._steady = share, disk, recipe, steady
        self.pins = ""
        shutil.copyfile(image(recipe).root, disk)
        self.vm: Machine = self._boot()

    def _boot(self) -> Machine:
        recipe, disk = self.recipe, self.disk
        vm = Vm(self.share, cpus=1, recipe=recipe, disk=disk, steady=self._steady)
        return vm.__enter__()

    def install(self, pins: str = "pigpio", modules: Sequence[str] = ()) -> None:
        """Install and set up the packages. `pins` names the owner of the pins, and the script
        that emulates the hardware by these modules of the kernel."""
        self.pins = pins
        for name in modules:
            shutil.copy(module(name, TRIXIE), self.share)
        self.check("dpkg -i /share/fpvcar*.deb /share/python3-fpvcar*.deb")
        self.check(f"sh /share/tests/vm_units/{pins}.sh")
        self.check("fpvcar setup --board mx1508 --name Elbow --resistors")

    def check(self, command: str) -> str:
        return self.vm.check(command, LONG_S)

    def cut(self) -> None:
        """Cut the power and boot again."""
        self.vm.close()
        self.vm = self._boot()

    def cut_while_recording(self) -> Callable[[], float]:
        """Cut the power of a driven car after some seconds, and boot again. The result verifies
        all recordings, and returns the seconds that the cut one lost."""
        self.check("sleep 5")
        cut_ns = int(self.check("date +%s%N"))
        part = self.check(f"ls -t {RECORDINGS}/*.part").split()[0]
        self.cut()

        def lost_s() -> float:
            self.check(WHOLE)
            end_ns = int(self.check(f"python3 -c '{ENDS}' {part.removesuffix('.part')}"))
            return (cut_ns - end_ns) / SECOND_NS

        return lost_s

    def reboot(self) -> None:
        with self._rebooted():
            self.vm.run("systemctl reboot", LONG_S)

    @contextmanager
    def _rebooted(self) -> Iterator[None]:
        """Wait at the end of the block until the VM has rebooted. The block may start the
        reboot itself."""
        before = self.check(BOOT)
        yield
        until_s = time.monotonic() + LONG_S
        while self.vm.run(BOOT, LONG_S).stdout in ("", before):
            assert time.monotonic() < until_s
            time.sleep(1)

    def driven(self) -> AbstractContextManager[None]:
        """Drive the car during the block."""
        return self.doing("drive")

    @contextmanager
    def doing(self, verb: str) -> Iterator[None]:
        """Run inside.py with this verb during the block."""
        with self.vm.start("sh", "-c", f"{INSIDE} {verb}") as process:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == f"{verb}s\n".encode(), process.stderr.read()
            yield
            process.kill()

    def stop(self, cause: str) -> Stop:
        """Stop the car by a cause while it is driven, then drive it again; return the times."""
        rebooted = self._rebooted() if "rebooted" in cause else nullcontext()
        with rebooted:
            done = self.vm.run(f"{INSIDE} {cause!r}", LONG_S)
        assert done.stdout, done.stderr
        told = json.loads(done.stdout)
        assert "fault" not in told, told["fault"]
        return Stop(cause, told["off_s"], told["whole_s"], self.pins)


def assert_stops(car: Car, cause: str, config: pytest.Config) -> None:
    """Assert that the car stops in time; note it for the table at the end of the run."""
    stop = car.stop(cause)
    config.stash[STOPS].append(stop)
    assert stop.off_s <= stop.limit_s


@contextmanager
def booted(
    made: pytest.TempPathFactory, recipe: Recipe = TRIXIE, steady: bool = True
) -> Iterator[Car]:
    """Boot a car for a module's fixture, with nothing installed yet. `steady`: its clock is fit for
    measurements."""
    share = made.mktemp("car-share")
    bring(share)
    disk = share.parent / f"{share.name}.ext4"
    car = Car(share, disk, recipe, steady)
    try:
        yield car
    finally:
        car.vm.close()
        disk.unlink()

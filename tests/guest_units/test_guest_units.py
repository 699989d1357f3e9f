"""The packages and units of a car, installed, driven, failing, in a guest with systemd.

What that shows and what not: __init__.py, stand_ins.sh, inside.py.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import websockets

from fpvcar.units import SECOND_NS
from tests.guest.image import Recipe, image
from tests.guest.machine import Guest
from tests.rigs.video_source import encode

pytestmark = [
    pytest.mark.e2e, pytest.mark.guest, pytest.mark.soak, pytest.mark.long,
]  # fmt: skip
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TRIXIE = Recipe(HERE, "trixie")
LONG_S = 900.0
"""What takes a guest seconds may take its busy host minutes."""
LIMITS_S = {
    "run killed": 0.05,
    "run hung": 0.15,
    "run restarted": 0.30,
    "wheels killed": 0.30,
    "wheels hung": 0.30,
    "wheels restarted": 0.30,
    "pigpiod killed": 0.50,
    "pigpiod hung": 0.50,
    "pigpiod restarted": 0.50,
    "run stopped": 0.30,
    "wheels stopped": 0.30,
    "pigpiod stopped": 0.50,
    "helper hung": 1.00,
    "camera killed": 0.30,
}
"""The design's, for each cause; systemd itself needs some time to begin a restart."""
RECORDINGS = "/var/lib/fpvcar/recordings"
WHOLE = (
    f"systemctl stop fpvcar && fpvcar log verify {RECORDINGS} && systemctl start fpvcar"
)
"""No file is being written while they are judged."""
BOOT = "cat /proc/sys/kernel/random/boot_id"
ENDS = """\
import sys
from pathlib import Path
from fpvcar.recordings import reader
for name in sys.argv[1:]:
    with reader.read(Path(name)) as recording:
        print(recording.end_ns)
"""
INSIDE = "cd /share && PYTHONPATH=/share python3 -B -m tests.guest_units.inside"


def build(out: Path, tree: Path = ROOT) -> None:
    subprocess.run(
        [tree / "tools" / "deb.sh", out], check=True, capture_output=True,
        env={**os.environ, "BUILD": "all"},
    )  # fmt: skip


def bring(share: Path) -> None:
    """Packages, the tests' driver, and what plays the hardware."""
    ignore = shutil.ignore_patterns("__pycache__", "*.so")
    build(share)
    shutil.copytree(ROOT / "tests", share / "tests", ignore=ignore)
    there = Path(websockets.__file__).parent
    shutil.copytree(there, share / "websockets", ignore=ignore)
    units = encode(frames=45, aud=True, gop=15, noise=20)
    (share / "pictures.h264").write_bytes(b"".join(units))


class Car:
    """A guest in which the packages are installed and set up, as install.md says."""

    def __init__(self, share: Path, disk: Path) -> None:
        self.share, self.disk = share, disk
        shutil.copyfile(image(TRIXIE).root, disk)
        self.guest = self._boot()

    def _boot(self) -> Guest:
        guest = Guest(
            self.share, cpus=1, recipe=TRIXIE, disk=self.disk, steady=True
        )  # fmt: skip
        return guest.__enter__()

    def install(self) -> None:
        self.check("dpkg -i /share/fpvcar*.deb")
        self.check("sh /share/tests/guest_units/stand_ins.sh")
        self.check("fpvcar setup --board mx1508 --name Elbow")
        self.check("sh /share/tests/guest_units/camera.sh")

    def check(self, command: str) -> str:
        return self.guest.check(command, LONG_S)

    def cut(self) -> None:
        """The power goes, and comes again."""
        self.guest.close()
        self.guest = self._boot()

    def reboot(self) -> None:
        before = self.check(BOOT)
        self.guest.run("systemctl reboot")
        until_s = time.monotonic() + LONG_S
        while self.guest.run(BOOT, LONG_S).stdout in ("", before):
            assert time.monotonic() < until_s
            time.sleep(1)

    @contextmanager
    def driven(self) -> Iterator[None]:
        """Somebody drives in the meantime."""
        with self.guest.start("sh", "-c", f"{INSIDE} drive") as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == b"drives\n"
            yield
            driver.kill()

    def stops(self, cause: str) -> float:
        """Seconds from a cause to motors that are off; the car then drives again."""
        told = json.loads(self.check(f"{INSIDE} {cause!r}"))
        print(told)
        assert "fault" not in told, told["fault"]
        return float(told["off_s"])


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Car]:
    share = tmp_path_factory.mktemp("units-share")
    bring(share)
    disk = share.parent / f"{share.name}.ext4"
    made = Car(share, disk)
    try:
        made.install()
        yield made
    finally:
        made.guest.close()
        disk.unlink()


@pytest.mark.parametrize("cause", LIMITS_S)
def test_the_car_stops_in_time_and_comes_back_by_itself(car: Car, cause: str) -> None:
    assert car.stops(cause) <= LIMITS_S[cause]


def test_the_program_of_the_last_resort_never_failed(car: Car) -> None:
    """It ran at each end of wheels and pigpiod, and asked for by who found one mute."""
    said = car.check("journalctl --boot --output=cat")
    assert "pins-off: inputs now: GPIO" in said
    assert [line for line in said.splitlines() if "Traceback" in line] == []


def test_no_unit_was_refused_anything_that_it_needs(car: Car) -> None:
    said = car.check("journalctl --boot --output=cat")
    assert [line for line in said.splitlines() if "ermission denied" in line] == []


def test_a_reboot_stops_the_wheels_before_their_pins_and_drives_again(car: Car) -> None:
    with car.driven():
        car.reboot()
    before = car.check("journalctl --boot=-1 --output=cat")
    wheels, pins = "Stopped fpvcar-wheels.service", "Stopping pigpiod.service"
    assert before.rindex(wheels) < before.rindex(pins)
    assert car.stops("run killed") <= LIMITS_S["run killed"]
    car.check(WHOLE)


def test_a_power_cut_costs_a_second_of_recording_and_nothing_else(car: Car) -> None:
    keeps = "cd / && sha256sum etc/fpvcar/car.toml var/lib/fpvcar/*.*"
    kept = car.check(keeps)
    with car.driven():
        time.sleep(5)  # of the host's: some more of the guest's
        cut_ns = int(car.check("date +%s%N"))
        part = car.check(f"ls -t {RECORDINGS}/*.part").split()[0]
        car.cut()
    assert car.check(keeps) == kept
    assert car.stops("run killed") <= LIMITS_S["run killed"]
    car.check(WHOLE)
    end_ns = int(car.check(f"python3 -c '{ENDS}' {part.removesuffix('.part')}"))
    assert end_ns >= cut_ns - 2 * SECOND_NS


def changed(share: Path, version: str, broken: bool) -> None:
    """The package once more, newer; and `wheels` of a broken one ends at once."""
    (deb,) = share.glob("fpvcar_*.deb")
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made) / "tree"
        subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
        control = tree / "DEBIAN" / "control"
        text = re.sub("\nVersion: .*", f"\nVersion: {version}", control.read_text())
        control.write_text(text)
        if broken:
            main = tree / "usr/lib/python3/dist-packages/fpvcar/wheels/__main__.py"
            main.write_text("raise SystemExit(1)\n")
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree,
             share / f"{version}.deb"], check=True, capture_output=True,
        )  # fmt: skip


def test_a_better_version_stays_and_a_worse_one_goes_back(car: Car) -> None:
    for version in ("9.1", "9.2"):
        changed(car.share, version, broken=version == "9.2")
    with car.driven():
        car.check("dpkg -i /share/9.1.deb")
    assert car.stops("run killed") <= LIMITS_S["run killed"]
    car.check("dpkg -i /share/9.2.deb")
    car.check(
        "for n in $(seq 200); do systemctl is-active --quiet fpvcar-upgrade || break;"
        " sleep 1; done"
    )
    assert car.check("dpkg-query -W -f '${Version}' fpvcar") == "9.1"
    assert "going back" in car.check("journalctl --output=cat -u fpvcar-upgrade")
    assert car.stops("run killed") <= LIMITS_S["run killed"]


def test_removed_it_leaves_recordings_and_no_unit(car: Car) -> None:
    recorded = car.check(f"ls {RECORDINGS}").split()
    car.check("dpkg --remove fpvcar-bench fpvcar")
    assert recorded and set(recorded) <= set(car.check(f"ls {RECORDINGS}").split())
    assert car.check("systemctl list-unit-files --no-legend 'fpvcar*'") == ""
    assert car.guest.run("pgrep --full /usr/bin/fpvcar").stdout == ""


def test_purged_it_leaves_nothing_but_recordings(car: Car) -> None:
    """Whoever is not asked has said nothing: they stay."""
    recorded = car.check(f"ls {RECORDINGS}").split()
    car.check("DEBIAN_FRONTEND=noninteractive dpkg --purge fpvcar")
    assert set(recorded) <= set(car.check(f"ls {RECORDINGS}").split())
    left = car.check("find / -xdev -name '*fpvcar*' ! -path '/var/log/*'").split()
    assert left == ["/var/lib/fpvcar"]

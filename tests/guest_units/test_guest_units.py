"""The packages and units of a car, installed, driven, failing, in a guest with systemd.

What that shows and what not: __init__.py, stand_ins.sh, inside.py.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import websockets

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
}
"""The design's, for each cause; systemd itself needs some time to begin a restart."""
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
    for name in ("stand_ins.sh",):
        shutil.copy(HERE / name, share)


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """A guest in which the packages are installed and set up, as install.md says."""
    share = tmp_path_factory.mktemp("units-share")
    bring(share)
    disk = share.parent / f"{share.name}.ext4"
    shutil.copyfile(image(TRIXIE).root, disk)
    try:
        with Guest(share, cpus=1, recipe=TRIXIE, disk=disk, steady=True) as guest:
            guest.check("dpkg -i /share/fpvcar*.deb", LONG_S)
            guest.check("sh /share/stand_ins.sh", LONG_S)
            guest.run("fpvcar setup --board mx1508 --name Elbow", LONG_S)
            guest.check("sh /share/tests/guest_units/camera.sh", LONG_S)
            yield guest
    finally:
        disk.unlink()


@pytest.mark.parametrize("cause", LIMITS_S)
def test_the_car_stops_in_time_and_comes_back_by_itself(car: Guest, cause: str) -> None:
    told = json.loads(car.check(f"{INSIDE} {cause!r}", LONG_S))
    print(told)
    assert "fault" not in told, told["fault"]
    assert told["off_s"] <= LIMITS_S[cause]


def test_the_program_of_the_last_resort_never_failed(car: Guest) -> None:
    """It ran at each end of wheels and pigpiod, and asked for by who found one mute."""
    said = car.check("journalctl --boot --output=cat")
    assert "pins-off: inputs now: GPIO" in said
    assert [line for line in said.splitlines() if "Traceback" in line] == []


def test_no_unit_was_refused_anything_that_it_needs(car: Guest) -> None:
    said = car.check("journalctl --boot --output=cat")
    assert [line for line in said.splitlines() if "ermission denied" in line] == []


def test_removed_it_leaves_recordings_and_no_unit(car: Guest) -> None:
    recorded = car.check("ls /var/lib/fpvcar/recordings").split()
    car.check("dpkg --remove fpvcar-bench fpvcar", LONG_S)
    assert recorded and set(recorded) <= set(
        car.check("ls /var/lib/fpvcar/recordings").split()
    )
    units = car.check("systemctl list-unit-files --no-legend 'fpvcar*'")
    assert units == ""
    assert car.run("pgrep --full /usr/bin/fpvcar").stdout == ""

"""Sensors over a kernel's own devices: INA219 and VL53L0X on /dev/i2c-N, depth on V4L2.

What that shows and what not: inside_i2c.py, inside_video.py.
"""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from fpvcar import paths
from tests.guest.machine import Guest

pytestmark = [pytest.mark.e2e, pytest.mark.guest]
ROOT = Path(__file__).resolve().parents[2]
I2C = (
    "check_bytes_come_back_in_their_order", "check_two_who_hold_the_same_device",
    "check_nobody_at_an_address_is_said", "check_a_bus_that_is_not_there_is_said",
    "ina219", "vl53l0x", "strangers", "held", "forbidden",
)  # fmt: skip
VIDEO = ("frames", "looked_at", "refused", "busy", "again")


def bring(share: Path) -> None:
    """The drivers, smbus2 and what runs them: all of it plain Python."""
    ignore = shutil.ignore_patterns("__pycache__", "web", "hardware")
    shutil.copytree(paths._PACKAGE, share / "fpvcar", ignore=ignore)
    found = importlib.util.find_spec("smbus2")
    assert found and found.origin
    shutil.copytree(Path(found.origin).parent, share / "smbus2", ignore=ignore)
    for name in ("__init__.py", "rigs", "guest_sensors"):
        source, target = ROOT / "tests" / name, share / "tests" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignore)
        else:
            shutil.copy(source, target)


def printed(guest: Guest, script: str) -> dict[str, str]:
    """Runs a script in the guest; the verdict on each of its checks, by name."""
    said: dict[str, str] = json.loads(
        guest.check(f"cd /share && python3 -B -m tests.guest_sensors.{script}")
    )
    return said


@pytest.fixture(scope="module")
def drivers(share: Path) -> None:
    """They are in what the guest sees as /share."""
    bring(share)


@pytest.fixture(scope="module")
def i2c(guest: Guest, drivers: None) -> dict[str, str]:
    guest.check("modprobe i2c-dev && modprobe i2c-stub chip_addr=0x29,0x40,0x50")
    return printed(guest, "inside_i2c")


@pytest.fixture(scope="module")
def video(guest: Guest, drivers: None) -> dict[str, str]:
    guest.check("modprobe vivid n_devs=1 node_types=0x1")
    return printed(guest, "inside_video")


@pytest.mark.parametrize("name", I2C)
def test_i2c(i2c: dict[str, str], name: str) -> None:
    assert i2c[name] == "ok", i2c[name]


@pytest.mark.parametrize("name", VIDEO)
def test_video(video: dict[str, str], name: str) -> None:
    assert video[name] == "ok", video[name]


def test_nothing_else_was_checked(i2c: dict[str, str], video: dict[str, str]) -> None:
    assert sorted(i2c) == sorted(I2C) and sorted(video) == sorted(VIDEO)

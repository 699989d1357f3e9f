"""Sensors over a kernel's own devices: INA219 and VL53L0X on /dev/i2c-N, depth and a webcam on
V4L2.

For the limits of these tests see inside_i2c.py, inside_video.py and inside_webcam.py.
"""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from testkit.vm.image import PIPES
from testkit.vm.machine import Vm

from fpvcar.runtime import paths

pytestmark = [pytest.mark.e2e, pytest.mark.vm, pytest.mark.needs(PIPES)]
ROOT = Path(__file__).resolve().parents[2]
STUB = "modprobe i2c-dev && modprobe i2c-stub chip_addr=0x29,0x40,0x41,0x50,0x60"
I2C = (
    "check_bytes_come_back_in_their_order",
    "check_steps_are_done_in_their_order",
    "check_a_step_that_fails_is_said",
    "check_two_who_hold_the_same_device",
    "check_nobody_at_an_address_is_said",
    "check_a_bus_that_is_not_there_is_said",
    "ina219",
    "vl53l0x",
    "strangers",
    "held",
    "forbidden",
)
WEBCAM = ("formats", "newest", "controls", "encoded", "unplugged")
VIDEO = ("frames", "looked_at", "refused", "busy", "again")


def bring(share: Path) -> None:
    """Put the drivers, their libraries and the scripts that run them into the share.

    msgspec and PyAV are built for the Python of this host; the VM, of the same release, has the
    same Python.
    """
    ignore = shutil.ignore_patterns("__pycache__", "web", "hardware")
    for package in (paths._PACKAGE, paths._PACKAGE.parent / "fpvbench"):
        shutil.copytree(package, share / package.name, ignore=ignore)
    for name in ("smbus2", "msgspec", "av"):
        found = importlib.util.find_spec(name)
        assert found and found.origin
        folder = Path(found.origin).parent
        shutil.copytree(folder, share / name, ignore=ignore)
        if (libraries := folder.parent / f"{name}.libs").is_dir():
            shutil.copytree(libraries, share / libraries.name)
    shutil.copy(cpp_library(), share / "av.libs" / "libstdc++.so.6")
    for name in ("tests/__init__.py", "tests/vm_sensors", "testkit"):
        source, target = ROOT / name, share / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignore)
        else:
            shutil.copy(source, target)


def cpp_library() -> str:
    """Return the libstdc++ in use here: PyAV needs it, and the VM has none."""
    import av.video  # noqa: F401

    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in maps if "/libstdc++.so.6" in line)


def printed(vm: Vm, script: str) -> dict[str, str]:
    """Run a script in the VM; return the verdict on each of its checks, by name."""
    said: dict[str, str] = json.loads(
        vm.check(f"cd /share && python3 -B -m tests.vm_sensors.{script}")
    )
    return said


@pytest.fixture(scope="module")
def drivers(share: Path) -> None:
    """Put the drivers into the folder that the VM sees as /share."""
    bring(share)


@pytest.fixture(scope="module")
def i2c(vm: Vm, drivers: None) -> dict[str, str]:
    vm.check(STUB)
    return printed(vm, "inside_i2c")


@pytest.fixture(scope="module")
def video(vm: Vm, drivers: None) -> dict[str, str]:
    vm.check("modprobe vivid n_devs=1 node_types=0x1")
    return printed(vm, "inside_video")


@pytest.fixture(scope="module")
def webcam(vm: Vm, video: dict[str, str]) -> dict[str, str]:
    return printed(vm, "inside_webcam")


@pytest.mark.soak
@pytest.mark.long
def test_webcam(webcam: dict[str, str]) -> None:
    assert webcam == dict.fromkeys(WEBCAM, "ok")


@pytest.mark.parametrize("name", I2C)
def test_i2c(i2c: dict[str, str], name: str) -> None:
    assert i2c[name] == "ok", i2c[name]


@pytest.mark.parametrize("name", VIDEO)
def test_video(video: dict[str, str], name: str) -> None:
    assert video[name] == "ok", video[name]


def test_vm_ran_exactly_the_listed_checks(i2c: dict[str, str], video: dict[str, str]) -> None:
    assert sorted(i2c) == sorted(I2C) and sorted(video) == sorted(VIDEO)

"""The recipes of docs/recipes.md, each followed: its example is applied to a copy of the tree, its
files are counted and compared with the list, and the result is run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "tests" / "recipes"
PYTHON = (sys.executable, "-c")
TITLES = {
    "string": "A string on a page",
    "text": "A text of car or station",
    "language": "A language",
    "setting": "A setting on the page",
    "feature": "A feature with its own socket, page and setting",
    "range-sensor": "A range sensor",
    "motor-driver": "A motor driver",
    "profile-key": "A key of a profile",
    "doctor-finding": "A finding of `fpvcar doctor`",
    "station-verb": "A verb of `fpvstation`",
}
MOST = {
    "string": 2,
    "text": 1,
    "setting": 4,
    "feature": 4,
    "range-sensor": 5,
    "motor-driver": 4,
    "station-verb": 3,
}
"""Largest number of files that a recipe may edit."""
BENCH = """
from fpvcar.config import profiles
from fpvcar.runtime import paths
def bench(*lines):
    return profiles.load(paths.HARDWARE / "bench.toml", lines)
"""
NEW_SENSOR = (
    BENCH
    + """
from fpvbench import attached, soc
from fpvcar.devices.chips import tf_luna
from fpvcar.sensors.ranges import Ranges
from fpvcar.wiring import drawing, parts

profile = bench("sensors.tf_luna.left = {bearing_deg = 90}")
assert "left" in Ranges(profile).readings()
assert "tf-luna-left" in drawing.sheets(parts.plan_of(profile, "bench"))
*_, option = attached.options_of(profile)
bus, make = attached.i2c_device(option)
soc.create(path := __import__("pathlib").Path("soc"))
chip = soc.attach(path)
(device,) = make(chip)
assert (bus, device.address) == (1, 0x10)
chip.world.range_m[int(option.split(":")[1])] = 1.25

class Bus:
    def read(self, register, size):
        device.write(bytes([register]))
        return device.read(size)

assert tf_luna.read_m(Bus()) == 1.25
"""
)
NEW_DRIVER = (
    BENCH
    + """
from pathlib import Path
from fpvbench.world import bridge
from fpvcar.devices.motors.bridge import motor_drivers
from fpvcar.wiring import parts, tables
from testkit.pins.fake_pins import FakePins

text = (paths.HARDWARE / "mx1508.toml").read_text()
file = Path("drv8833.toml")
file.write_text(text.replace("forward = 17", "driver = 'drv8833'\\nforward = 17"))
profile = profiles.load(file)
pins = FakePins()
drive, _ = motor_drivers(profile, pins)
drive.drive(-0.5, 0.0)
assert pins.duty(17) == 0.0 and pins.duty(27) == 0.5
assert bridge.CHIPS[type(profile.motors.drive)].bridge(0.0, 0.5).drive == -0.5
wires = tables.wires(parts.plan_of(profile, "drv8833"))
assert "DRV8833" in wires and "MX1508" in wires
"""
)
NEW_TEXT = """
from fpvcar.sensors.computer import faults
from fpvcar.wire.telemetry import Health

(busy,) = faults(Health(load=7.5))
assert str(busy) == "the processor is busy: 7.5 programs wait" and busy.key == "busy"
"""
NEW_KEY = (
    BENCH
    + """
from fpvcar.buttons.lights import Indicators

lights = Indicators(bench("lights.hazard_s = 2.0").lights.hazard_s)
lights.follow(0.0, True, 0.0)
assert lights.sides(1.9) == (True, True) and lights.sides(2.1) == (False, False)
"""
)
NEW_VERB = """
from pathlib import Path
from fpvstation.__main__ import main
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

Path("store").mkdir()
Store(Folder(Path("store"))).open("")
assert main(["sum", "--store", "store"]) == 0
"""
NEW_FEATURE = """
import asyncio
from aiohttp.test_utils import TestClient, TestServer
from fpvcar.app import load
from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import COOKIE
from testkit.hub import House, server_of

async def main():
    house = House(feature=lambda core: load("laps.feature", core))
    more = {"devices": house.devices, "features": house.features}
    server = server_of(house.profile, house.hub, None, **more)
    async with TestClient(TestServer(server.application())) as client:
        page = await client.get("/laps")
        assert page.status == 200 and "laps/main.js" in await page.text()
        child = await client.ws_connect("/ws/laps")
        assert await child.receive_json() == {"kind": "laps", "goal": 10}
        await child.send_json({"kind": "goal", "laps": 3})
        assert (await child.receive_json())["code"] == "grown_up_only"
        device = house.devices.add("Mum", "10.0.0.1", Rights(True, True), __import__("time").time())
        cookie = f"{COOKIE}={house.devices.cookie(device)}"
        mum = await client.ws_connect("/ws/laps", headers={"Cookie": cookie})
        await mum.send_json({"kind": "goal", "laps": 3})
        assert (await child.receive_json())["goal"] == 3
    assert house.visitor("Ann").state.parts["laps"].goal == 3

asyncio.run(main())
"""
TEXTS = ("node", "--test", "tests/web/lang/languages.test.js")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
MODULE = (sys.executable, "-m")
RUN: dict[str, tuple[tuple[str, ...], ...]] = {
    "string": (TEXTS,),
    "text": ((*PYTHON, NEW_TEXT), (*MODULE, "tools.docs.page_texts"), TEXTS),
    "language": (TEXTS,),
    "setting": (
        (*MODULE, "tests.vectors.make"),
        (*MODULE, "tools.docs.wire_docs"),
        (*MODULE, "tools.docs.page_messages"),
        (*PYTEST, "tests/unit/wire/test_wire.py", "tests/unit/seat/test_rights.py"),
        ("node_modules/.bin/tsc", "--project", "tsconfig.json"),
        ("node", "--test", "tests/web/lib/wire.test.js"),
        TEXTS,
    ),
    "feature": (
        (*PYTHON, NEW_FEATURE),
        (*PYTEST, "tests/test_layers.py", "-k", "layers or feature"),
        ("node_modules/.bin/tsc", "--project", "tsconfig.json"),
    ),
    "range-sensor": ((*PYTHON, NEW_SENSOR), (*MODULE, "tools.docs.profile_docs")),
    "motor-driver": ((*PYTHON, NEW_DRIVER), (*MODULE, "tools.docs.profile_docs")),
    "profile-key": ((*PYTHON, NEW_KEY), (*MODULE, "tools.docs.profile_docs")),
    "doctor-finding": (
        (*PYTEST, "tests/unit/doctor/test_ill.py", "-k", "kernel or kinds"),
        (*MODULE, "tools.docs.doctor_docs"),
    ),
    "station-verb": ((*PYTHON, NEW_VERB),),
}
WRITTEN = {
    "text": ("tests/web/lang/sent.json", "the processor is busy"),
    "setting": ("docs/reference/wire.md", "hazard"),
    "range-sensor": ("docs/reference/profile.md", "tf_luna"),
    "motor-driver": ("docs/reference/profile.md", "drv8833"),
    "profile-key": ("docs/reference/profile.md", "hazard_s"),
    "doctor-finding": ("docs/troubleshooting.md", "the kernel ... is old"),
}
"""Generated file, and a text that `make docs` adds to it."""


def listed(name: str) -> list[str]:
    """Return the files of a recipe in the document; capitals stand for a name."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {TITLES[name]}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/.-]+)`", section, re.M)


def edited(name: str) -> list[str]:
    """Return the files of a recipe's patch."""
    text = (PATCHES / f"{name}.patch").read_text(encoding="utf-8")
    return re.findall(r"^\+\+\+ b/(\S+)$", text, re.M)


def test_recipes_have_examples() -> None:
    assert {path.stem for path in PATCHES.glob("*.patch")} == set(TITLES) == set(RUN)


@pytest.mark.parametrize("name", TITLES)
def test_example_edits_the_listed_files(name: str) -> None:
    patterns = [re.sub(r"\b[A-Z]+\b", r"[\\w-]+", file) for file in listed(name)]
    files = edited(name)
    unlisted = [file for file in files if not any(re.fullmatch(p, file) for p in patterns)]
    unused = [p for p in patterns if not any(re.fullmatch(p, file) for file in files)]
    assert (unlisted, unused) == ([], [])
    assert len(files) <= MOST.get(name, len(files))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tracked files that recipes need."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    copy = tmp_path / "tree"
    for name in names:
        if name and (ROOT / name).is_file() and not name.endswith((".png", ".svg")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    (copy / "node_modules").symlink_to(ROOT / "node_modules")
    return copy


@pytest.mark.parametrize("name", TITLES)
def test_example_works(name: str, tree: Path) -> None:
    search = os.pathsep.join(map(str, (tree / "pi", tree / "base-station", tree)))
    env = {**os.environ, "PYTHONPATH": search}
    for command in (("git", "apply", str(PATCHES / f"{name}.patch")), *RUN[name]):
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{command[:3]}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    if name in WRITTEN:
        file, text = WRITTEN[name]
        assert text in (tree / file).read_text(encoding="utf-8")
        assert text not in (ROOT / file).read_text(encoding="utf-8")

"""Electrical rules that the program can check: pages, profiles and drawings against one another."""

import re
from pathlib import Path

import pytest

from fpvcar.config import profiles
from fpvcar.config.checks import used_pins
from fpvcar.doctor.checks.sensors import NO_PICTURE
from fpvcar.runtime import paths
from tests.test_docs import PAGES, ROOT

POWER = ROOT / "hardware" / "power.md"
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.S)
GPIO_TEXT = re.compile(r"GPIO (\d+)(?: (to|and|or) (\d+))?")
DRIVER_KEY = re.compile(r"(?m)^(?:forward|reverse|enable) = (\d+)")
OTHER_KEY = re.compile(
    r"(?m)^(?:signal|oe|trigger|echo|power|button|led|head|rear|indicator_left|indicator_right"
    r"|recorder|code) = (\[[\d, ]*\]|\d+)"
)


def forbidden_gpios() -> tuple[set[int], set[int]]:
    """Return the GPIO that hardware/power.md forbids: to any part, and to a driver's input."""
    text = POWER.read_text(encoding="utf-8").partition("## Forbidden connections")[2]
    anything, inputs = set[int](), set[int]()
    for line in text.splitlines():
        cells = line.split("|")
        found = GPIO_TEXT.search(cells[1]) if len(cells) > 2 else None
        if found is not None:
            first, word, last = found.groups()
            both = range(int(first), int(last) + 1) if word == "to" else (int(first), int(last))
            (inputs if "driver" in cells[1] else anything).update(both)
    return anything, inputs


def test_power_page_lists_the_gpios_that_are_forbidden() -> None:
    assert forbidden_gpios() == ({0, 1, 7, 8, 14, 15}, set(range(9)))


@pytest.mark.parametrize("page", [page for page in PAGES if page != POWER], ids=lambda p: p.name)
def test_pages_use_no_gpio_that_the_power_page_forbids(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    anything, inputs = forbidden_gpios()
    toml = "\n".join(code for kind, code in FENCE.findall(text) if kind == "toml")
    for gpio in DRIVER_KEY.findall(toml):
        assert int(gpio) not in anything | inputs, gpio
    for value in OTHER_KEY.findall(toml):
        assert anything.isdisjoint(map(int, re.findall(r"\d+", value))), value
    for first, word, last in GPIO_TEXT.findall(FENCE.sub("", text)):
        if word != "to":  # a range states a rule
            assert anything.isdisjoint(map(int, filter(None, (first, last)))), first


@pytest.mark.parametrize("path", sorted(paths.HARDWARE.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_cars_use_no_gpio_that_the_power_page_forbids(path: Path) -> None:
    """The bench is emulated; the rig's loops need more pins than are free."""
    if path.stem not in ("bench", "rig"):
        profile = profiles.load(path)
        anything, inputs = forbidden_gpios()
        assert anything.isdisjoint(gpio for gpio, _ in used_pins(profile, ""))
        assert inputs.isdisjoint(profile.motor_pins())


def test_ribbon_of_each_board_is_in_the_assembly_and_in_the_finding() -> None:
    assembly = (ROOT / "hardware" / "assembly.md").read_text(encoding="utf-8")
    assert "cable of 22 pins" in " ".join(assembly.split())
    for text in (" ".join(assembly.split()), NO_PICTURE.mend):
        assert "contacts down" not in text
        for board in (
            "the HDMI socket on a Pi 3 or 4",
            "the Ethernet socket on a Pi 5",
            "the board on a Zero",
        ):
            assert board in text


@pytest.mark.parametrize(
    ("page", "rule"),
    [
        ("assembly", "1 kΩ from OE"),
        ("parts", "dropout of at most 0.5 V at 3 A"),
        ("parts", "White and blue ones need 3 V: 100 Ω"),
        ("parts", "7 to 12 V with its 5V jumper"),
        ("power", "less than 7 V or more than 12 V"),
        ("power", "gets 1.9 V"),
        ("power", "two channels on a Zero to 4: both inputs of one motor"),
        ("first-drive", "continuity range, which beeps"),
    ],
)
def test_hardware_page_states_the_rule(page: str, rule: str) -> None:
    text = (ROOT / "hardware" / f"{page}.md").read_text(encoding="utf-8")
    assert rule in " ".join(text.split())

"""Letting go of pins by the tools of Raspberry Pi OS, here played by scripts."""

from pathlib import Path

import pytest

from fpvcar import paths
from fpvcar.__main__ import main
from fpvcar.devices.linux import pinctrl


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def tool(folder: Path, name: str, ending: str = "") -> Path:
    script, calls = folder / name, folder / "said"
    script.write_text(f'#!/bin/sh\necho "{name} $*" >> {calls}\n{ending}\n')
    script.chmod(0o755)
    return calls


def test_pinctrl_is_preferred(tools: Path) -> None:
    tool(tools, "raspi-gpio")
    calls = tool(tools, "pinctrl")
    pinctrl.let_go((17, 27, 24))
    assert calls.read_text() == "pinctrl set 17,27,24 ip pd\n"


def test_older_images(tools: Path) -> None:
    calls = tool(tools, "raspi-gpio")
    pinctrl.let_go((17,))
    assert calls.read_text() == "raspi-gpio set 17 ip pd\n"


@pytest.mark.parametrize(
    ("profile", "pins"),
    [("bench.toml", "17,27,24,23"), ("l298n.toml", "18,17,27,25,24,23")],
)
def test_stop_lets_go_of_every_pin_that_moves_the_car(
    tools: Path, profile: str, pins: str
) -> None:
    calls = tool(tools, "pinctrl")
    assert main(["stop", f"--profile={paths.HARDWARE / profile}"]) == 0
    assert calls.read_text() == f"pinctrl set {pins} ip pd\n"


def test_without_either_tool_the_error_names_one(tools: Path) -> None:
    with pytest.raises(pinctrl.NoPinTool, match=r"17,27 not let go.*raspi-utils"):
        pinctrl.let_go((17, 27))


def test_failure_is_quoted(tools: Path) -> None:
    tool(tools, "pinctrl", "echo no such pin >&2; exit 3")
    with pytest.raises(pinctrl.NoPinTool, match="set 17 ip pd: no such pin"):
        pinctrl.let_go((17,))

"""Rig of real pins without a Pi: missing parts and receivers."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fpvcar.config import Profile, profiles
from fpvcar.config.raspberry_pi_os import MODEL
from fpvcar.devices import backends
from fpvcar.hil.checks import CHECKS
from fpvcar.hil.metal_rig import MetalRig
from fpvcar.runtime import paths

PIGPIO = profiles.load(paths.HARDWARE / "rig.toml", ('pins.backend = "pigpio"',))
LINUX = profiles.load(paths.HARDWARE / "rig.toml", ('pins.backend = "linux"',))


class Heard:
    """Pins that only record writes."""

    def __init__(self) -> None:
        self.written: list[tuple[int, int]] = []

    def write(self, gpio: int, level: int) -> None:
        self.written.append((gpio, level))

    def input_pull_down(self, gpio: int) -> None: ...
    def close(self) -> None: ...
    def read(self, timeout_s: float) -> list[Any]:
        return []

    def level(self, gpio: int) -> int:
        return 0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of back ends that were opened."""
    found: list[str] = []

    def open_pins(profile: Profile) -> Heard:
        found.append(profile.pins.backend)
        return Heard()

    def open_edges(profile: Profile, pins: Heard, gpios: Sequence[int]) -> Heard:
        found.append(profile.pins.backend)
        return pins

    monkeypatch.setattr(backends, "open_pins", open_pins)
    monkeypatch.setattr(backends, "open_edges", open_edges)
    return found


@pytest.fixture
def pi(tmp_path: Path) -> Path:
    """Make the root of a Raspberry Pi."""
    (tmp_path / MODEL).parent.mkdir(parents=True)
    (tmp_path / MODEL).write_text("Raspberry Pi Zero 2 W Rev 1.0")
    return tmp_path


@contextlib.contextmanager
def scope_of(rig: MetalRig) -> Iterator[None]:
    with rig.scope() as scope:
        assert not scope.driving
        yield


def test_scope_on_a_pi_reads_by_the_kernel_to_outlive_pigpiod(pi: Path, opened: list[str]) -> None:
    rig = MetalRig(PIGPIO, 8080, root=pi)
    assert rig.lacks("pin daemon") == ""
    with scope_of(rig):
        assert opened == ["linux", "linux"]
    with rig.edges((5,)):
        assert opened[2:] == ["pigpio", "pigpio"], "the other checks, as the car does"


def test_scope_off_a_pi_reads_by_pigpiod_and_cannot_end_it(
    tmp_path: Path, opened: list[str]
) -> None:
    rig = MetalRig(PIGPIO, 8080, root=tmp_path)
    assert rig.lacks("pin daemon") == "the check ends pigpiod, which reads the pins"
    with scope_of(rig):
        assert opened == ["pigpio", "pigpio"]


def test_linux_backend_has_no_pin_daemon(pi: Path) -> None:
    rig = MetalRig(LINUX, 8080, root=pi)
    assert rig.lacks("pin daemon") == "no pigpiod: the kernel drives the pins"


def test_killed_pigpiod_is_checked_on_metal_only(pi: Path) -> None:
    (check,) = (one for one in CHECKS if one.name == "metal-pigpiod-killed")
    assert check.metal and check.act is not None
    rig = MetalRig(PIGPIO, 8080, root=pi)
    needs = [one for one in check.needs if one != "processes"]  # needs root
    assert [rig.lacks(part) for part in needs] == [""] * len(needs)


def test_at_rest_the_led_is_dark(pi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins, led = Heard(), PIGPIO.rig.led
    monkeypatch.setattr(backends, "open_pins", lambda profile: pins)
    rig = MetalRig(PIGPIO, 8080, root=pi)
    rig.light(True)
    assert pins.written[-1] == (led, 1)
    rig.rest()
    assert pins.written[-1] == (led, 0)


def test_browser_check_needs_a_person(pi: Path) -> None:
    assert "hil --browser" in MetalRig(PIGPIO, 8080, root=pi).lacks("browser")
    assert "hil --browser" in MetalRig(PIGPIO, 8080, root=pi).lacks("photodiode")
    rig = MetalRig(PIGPIO, 8080, root=pi, person=True)
    assert rig.lacks("browser") == rig.lacks("photodiode") == ""
    wired = msgspec.structs.replace(PIGPIO.rig, photodiode=None)
    rig = MetalRig(msgspec.structs.replace(PIGPIO, rig=wired), 8080, root=pi, person=True)
    assert "rig.photodiode" in rig.lacks("photodiode")

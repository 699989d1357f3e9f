"""Latency from the LED to its picture: learning, measuring, failing."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fpvcar.config import Profile, profiles
from fpvcar.devices.pins import Edge
from fpvcar.hil.checks import camera
from fpvcar.hil.led_detector import COLUMNS, ROWS
from fpvcar.hil.pin_recorder import TICKS
from fpvcar.hil.rig import CheckFailed, SeenPicture
from fpvcar.runtime import paths

EVERY_NS, LATE_NS = 33_000_000, 100_000_000


class PlayedCamera:
    """Camera with a picture each 33 ms that shows the LED's state 100 ms ago."""

    profile = profiles.load(paths.HARDWARE / "rig.toml")

    def __init__(self, bright: float = 200.0, sticks: bool = False) -> None:
        self.now_ns, self.bright, self.sticks = 0, bright, sticks
        self.changes = [(-1, False)]

    def light(self, lit: bool) -> int:
        self.changes.append((self.now_ns, lit))
        return self.now_ns

    def waited_s(self) -> Callable[[], float]:
        return lambda: 0.25

    def pictures(self) -> Iterator[SeenPicture]:
        while True:
            self.now_ns += EVERY_NS
            taken_ns = self.now_ns - LATE_NS
            seen = [lit for at_ns, lit in self.changes if at_ns <= taken_ns]
            lit = any(seen) if self.sticks else bool(seen) and seen[-1]
            cells = [40.0] * (COLUMNS * ROWS)
            cells[33] += self.bright * lit
            yield SeenPicture(self.now_ns, taken_ns, cells)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def test_latency_is_from_led_on_to_the_first_lit_picture() -> None:
    rig: Any = PlayedCamera()
    measured = camera.flashed(rig, rig.pictures())
    assert measured.value == pytest.approx(0.132)  # 100 ms, at the next picture
    assert [lit for _, lit in rig.changes[1:]] == [False, True, False, True]
    assert measured.waited_s == 0.25, "the bench's, for who judges"


def test_picture_seconds_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.LATE_NS", 4_000_000_000)
    rig: Any = PlayedCamera()
    assert 4.0 < camera.flashed(rig, rig.pictures()).value < 4.04


@pytest.mark.parametrize(
    ("fault", "words"), [({"bright": 5.0}, "before the lens"), ({"sticks": True}, "stays bright")]
)
def test_led_out_of_sight_or_always_bright_fails_the_check(
    fault: dict[str, Any], words: str
) -> None:
    rig: Any = PlayedCamera(**fault)
    with pytest.raises(CheckFailed, match=words):
        camera.flashed(rig, rig.pictures())


def test_flash_without_a_lit_picture_fails_the_check() -> None:
    rig: Any = PlayedCamera()

    def then_dark() -> Iterator[SeenPicture]:
        for one in rig.pictures():
            dark = one._replace(cells=[40.0] * len(one.cells))
            yield dark if len(rig.changes) > 4 else one

    with pytest.raises(CheckFailed, match="the LED is not visible in 3 s"):
        camera.flashed(rig, then_dark())


class PlayedScreen:
    """Rig whose light sensor is DELAY_US late; `at_rest` is its level in the dark."""

    DELAY_US = 88_000

    def __init__(self, profile: Profile, at_rest: int = 0, sees: bool = True) -> None:
        self.profile, self.at_rest, self.sees = profile, at_rest, sees
        self.now_ns, self.flicker = 5_000_000_000, 0
        self.lit_ns: int | None = None

    def waited_s(self) -> Callable[[], float]:
        return lambda: 0.0

    @contextlib.contextmanager
    def edges(self, gpios: tuple[int, ...]) -> Iterator["PlayedScreen"]:
        assert gpios == (self.profile.rig.photodiode,)
        yield self

    def light(self, lit: bool) -> int:
        self.lit_ns = self.now_ns if lit else None
        return self.now_ns

    def level(self, gpio: int) -> int:
        return self.at_rest

    def read(self, timeout_s: float) -> list[Edge]:
        edge = Edge((self.now_ns // 1000 + self.DELAY_US) % TICKS, 4, 1 - self.at_rest)
        if self.flicker and self.lit_ns is None:
            self.flicker -= 1
            return [edge, edge._replace(level=self.at_rest)]
        if self.lit_ns is not None and self.sees:
            # read by a busy process, 12 ms later
            self.now_ns += self.DELAY_US * 1000 + 12_000_000
            return [edge]
        self.now_ns += round(timeout_s * 1e9)
        return []


@pytest.mark.parametrize("at_rest", [0, 1])
@pytest.mark.parametrize(("pins", "seconds"), [("linux", 0.088), ("pigpio", 0.1)])
def test_screen_latency_is_from_led_on_to_the_sensors_edge(
    pins: str, seconds: float, at_rest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel stamps the edge; with pigpiod its arrival counts."""
    profile = profiles.load(paths.HARDWARE / "rig.toml", (f'pins.backend = "{pins}"',))
    rig: Any = PlayedScreen(profile, at_rest)
    monkeypatch.setattr("time.monotonic_ns", lambda: rig.now_ns)
    assert camera._on_screen(rig).value == pytest.approx(seconds)


def test_missed_flash_and_flicker_fail_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profiles.load(paths.HARDWARE / "rig.toml", ('pins.backend = "linux"',))
    rig: Any = PlayedScreen(profile, sees=False)
    monkeypatch.setattr("time.monotonic_ns", lambda: rig.now_ns)
    monkeypatch.setattr("time.monotonic", lambda: rig.now_ns / 1e9)
    with pytest.raises(CheckFailed, match="missed a flash: show the car's page"):
        camera._on_screen(rig)
    rig = PlayedScreen(profile)
    rig.flicker = 2
    assert camera._on_screen(rig).value == pytest.approx(0.088), "the page had just opened"
    rig = PlayedScreen(profile)
    rig.flicker = 1 << 30
    monkeypatch.setattr("time.monotonic", iter(range(10)).__next__)
    with pytest.raises(CheckFailed, match="set the screen to full brightness"):
        camera._on_screen(rig)

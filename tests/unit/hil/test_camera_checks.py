"""Latency from the LED to its picture: learning, measuring, failing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fpvcar.config import profiles
from fpvcar.hil.checks import camera
from fpvcar.hil.led_detector import COLUMNS, ROWS
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


def test_led_out_of_sight_fails_the_check() -> None:
    rig: Any = PlayedCamera(bright=5.0)
    with pytest.raises(CheckFailed, match="before the lens"):
        camera.flashed(rig, rig.pictures())


def test_light_that_stays_bright_fails_the_check() -> None:
    rig: Any = PlayedCamera(sticks=True)
    with pytest.raises(CheckFailed, match="stays bright"):
        camera.flashed(rig, rig.pictures())


def test_flash_without_a_lit_picture_fails_the_check() -> None:
    rig: Any = PlayedCamera()

    def then_dark() -> Iterator[SeenPicture]:
        for one in rig.pictures():
            dark = one._replace(cells=[40.0] * len(one.cells))
            yield dark if len(rig.changes) > 4 else one

    with pytest.raises(CheckFailed, match="the LED is not visible in 3 s"):
        camera.flashed(rig, then_dark())

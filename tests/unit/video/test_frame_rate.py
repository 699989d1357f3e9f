"""Fall from 60 frames per second to 30, and back, with a clock in hand."""

import logging
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from testkit.cameras.video_source import PlayedCamera

from fpvcar import config
from fpvcar.runtime.texts import Text
from fpvcar.video import process
from fpvcar.video.bitrate import LinkReport
from fpvcar.video.camera import Camera
from fpvcar.video.frame_rate import (
    AGAIN_MOST_S,
    AGAIN_S,
    LASTING_S,
    STEADY_FPS,
    Cause,
    FallBack,
    FrameRate,
)
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Stream, Viewer
from fpvcar.wire.video import FPS_MOST

SLOW_LINK = LinkReport(delivered=400_000, burst=400_000, blocked_s=0.3, dropped=3)
GOOD_LINK = LinkReport(delivered=8e6, burst=8e6, blocked_s=0.0, dropped=0)


class Car(PlayedCamera):
    """Camera that obeys, its stream with a driver, and the conditions that a test chooses."""

    def __init__(self, fps: float = 60.0, **more: Any) -> None:
        super().__init__()
        self.now_s, self.most, self.asked = 100.0, 1000.0, FPS_MOST
        self.settings = msgspec.convert({"fps": fps, **more}, config.Camera)
        self.hot = False
        self.link: LinkReport | None = GOOD_LINK
        self.camera = Camera([], True)
        self.stream = Stream(self, clock_s=lambda: self.now_s)
        self.rate = FrameRate(self.stream, self.camera, lambda: self.settings, lambda: self.hot)
        self.driver: Viewer | None = self.stream.add_viewer(lambda: True)

    def set_fps(self, most: int) -> bool:
        self.asked = FPS_MOST if self.camera.keeps_rate else most
        return super().set_fps(most)

    def film(self, seconds: float) -> Text | None:
        """Film for some seconds; return the car's text."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += 1.0 / min(self.settings.fps, self.asked, self.most)
            unit = AccessUnit(False, int(self.now_s * 1e6), b"unit")
            self.stream.publish(unit)
            self.rate.take(unit)
            if self.driver and self.link:
                self.stream.report(self.driver, self.link)
                self.driver.wait_for_key()
        return self.camera.lowered_rate

    def until(self, fallen: bool, most_s: float = 1000.0) -> float:
        """Film until the camera's rate has fallen or risen; return the time that it took."""
        start_s = self.now_s
        while bool(self.film(0.5)) != fallen:
            assert self.now_s - start_s < most_s
        return self.now_s - start_s


@pytest.fixture
def car() -> Car:
    return Car()


def test_camera_that_keeps_its_rate_up_is_left_alone(car: Car) -> None:
    assert car.film(60.0) is None and car.rates == []


def test_heat_lowers_the_rate_at_once_and_calm_raises_it(
    car: Car, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fpvcar.camera")
    car.film(5.0)
    car.hot = True
    text = car.film(2.0)
    assert str(text) == (
        "30 instead of 60 frames per second: the processor is hot or slowed down; the car tries "
        "60 again by itself"
    )
    assert car.rates == [STEADY_FPS] and text is not None
    reason = text.values["reason"]
    assert isinstance(reason, Text) and reason.key == "rate_heat"
    car.film(60.0)
    car.hot = False
    assert AGAIN_S - 1.0 <= car.until(fallen=False) <= AGAIN_S + 2.0
    assert car.rates == [STEADY_FPS, FPS_MOST]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_camera_too_slow_for_its_rate_is_lowered(car: Car) -> None:
    car.film(5.0)
    car.most = 41.0
    assert car.film(3.0) is None, "one slow moment is no reason"
    assert "only 41 of 60 arrived" in str(car.film(5.0))
    assert car.rates == [STEADY_FPS]


def test_slow_moments_of_a_camera_do_not_lower_its_rate(car: Car) -> None:
    for _ in range(10):
        car.most = 20.0
        car.film(3.0)
        car.most = 1000.0
        car.film(3.0)
    assert car.rates == []


def test_start_of_the_camera_is_no_load(car: Car) -> None:
    for _ in range(10):
        car.camera.restarts += 1
        car.now_s += 2.0
        car.most = 30.0
        car.film(4.0)
        car.most = 1000.0
        assert car.film(2.0) is None


@pytest.mark.parametrize("why", ["night", "page", "unwatched", "command"])
def test_lower_rate_by_choice_is_no_load(why: str) -> None:
    settings: dict[str, Any] = {"night": {"night": True}, "command": {"command": ["mine"]}}
    car = Car(**settings.get(why, {}))
    assert car.driver is not None
    if why == "page":
        car.driver.fps_most = 25
    elif why == "unwatched":
        car.stream.remove(car.driver)
        car.driver = None
    car.most = 10.0
    assert car.film(60.0) is None and STEADY_FPS not in car.rates


def test_slow_link_to_the_driver_lowers_the_rate(car: Car) -> None:
    car.film(5.0)
    car.link = SLOW_LINK
    assert "the driver's link is slow" in str(car.film(6.0))
    car.link = GOOD_LINK
    assert car.until(fallen=False) >= AGAIN_S
    car.link = SLOW_LINK
    car.until(fallen=True)
    car.link = None  # the driver has left
    car.until(fallen=False)


def test_camera_of_30_never_falls() -> None:
    car = Car(30.0)
    car.hot, car.link, car.most = True, SLOW_LINK, 10.0
    assert car.film(60.0) is None and car.rates == []


def test_high_rate_that_fails_is_tried_ever_less_often(car: Car) -> None:
    pauses = []
    for _ in range(7):
        car.hot = True
        car.until(fallen=True)
        car.hot = False
        pauses.append(car.until(fallen=False))
    assert all(after > 1.5 * before for before, after in pairwise(pauses[:5]))
    assert pauses[-1] == pytest.approx(AGAIN_MOST_S, abs=3.0)
    car.film(AGAIN_MOST_S + 2.0)
    car.hot = True
    car.until(fallen=True)
    car.hot = False
    assert car.until(fallen=False) < AGAIN_S + 3.0, "the high rate had lasted"


def test_another_setting_begins_anew(car: Car) -> None:
    car.most = 41.0
    car.until(fallen=True)
    car.settings = msgspec.structs.replace(car.settings, fps=30.0)
    assert car.film(2.0) is None and car.rates[-1] == FPS_MOST
    car.hot, car.settings = True, msgspec.structs.replace(car.settings, fps=50.0)
    assert str(car.film(2.0)).startswith("30 instead of 50 frames")


def test_lower_rate_of_page_and_car_wins(car: Car) -> None:
    assert car.driver is not None
    car.hot = True
    car.film(3.0)
    car.driver.fps_most = 15
    car.film(3.0)
    assert car.rates == [STEADY_FPS, 15]
    car.driver.fps_most, car.hot = FPS_MOST, False
    car.film(3.0)
    assert car.rates == [STEADY_FPS, 15, STEADY_FPS]
    car.until(fallen=False)
    assert car.rates[-1] == FPS_MOST


def test_camera_that_cannot_change_its_rate_says_so(car: Car) -> None:
    car.camera.reported(f"{process.PREFIX}{process.FIXED_RATE}")
    car.hot = True
    assert "cannot change its rate while it runs, so choose 30" in str(car.film(3.0))
    car.hot = False
    car.until(fallen=False)
    car.camera.begin(car.now_s)
    assert not car.camera.keeps_rate, "the next program may be another one"


CAUSES = some.sets(some.sampled_from(list(LASTING_S)))
STEPS = some.lists(some.tuples(CAUSES, some.integers(1, 60)), max_size=60)


@given(STEPS)
def test_fall_has_a_cause_and_its_end_a_calm_time(steps: list[tuple[set[Cause], int]]) -> None:
    fall, now_s, calm_s = FallBack(), 0.0, 0.0
    present_s = dict.fromkeys(LASTING_S, 0.0)
    for present, seconds in steps:
        for _ in range(seconds):
            now_s += 1.0
            before, again_s = fall.cause, fall.again_s
            fall.update(now_s, present)
            calm_s = 0.0 if present else calm_s + 1.0
            present_s = {name: s + 1.0 if name in present else 0.0 for name, s in present_s.items()}
            lasts = {name for name, s in present_s.items() if s > LASTING_S[name]}
            assert AGAIN_S <= fall.again_s <= AGAIN_MOST_S
            if lasts:
                assert fall.cause in present and (before is None or fall.again_s == again_s)
            elif before is None:
                assert fall.cause is None
            elif calm_s > again_s:
                assert fall.cause is None
            elif calm_s < again_s:
                assert fall.cause == before


@given(
    some.lists(
        some.tuples(
            some.booleans(),
            some.sampled_from([10.0, 41.0, 1000.0]),
            some.sampled_from([GOOD_LINK, SLOW_LINK, None]),
            some.sampled_from([15.0, 30.0, 56.0, 60.0]),
            some.integers(1, 12),
        ),
        max_size=8,
    )
)
def test_rate_and_text_always_agree(
    steps: list[tuple[bool, float, LinkReport | None, float, int]],
) -> None:
    car = Car()
    for car.hot, car.most, car.link, fps, seconds in steps:
        car.settings = msgspec.structs.replace(car.settings, fps=fps)
        text = car.film(seconds + 1.5)
        assert bool(text) == (car.asked == STEADY_FPS)
        assert fps > STEADY_FPS or not text
        assert not car.hot or fps <= STEADY_FPS or text

"""The picture is current, or grey with its age; by both paths to the screen.

Tests without a clock are in test_decoders.py.
"""

import re
import signal
import time

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import opened, probe, until
from testkit.harness import STRIP, RunningBench, wait_for

from tests.e2e.video.glass import PATHS, goes_on, look_at, signal_all

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
OPTIONS = (STRIP,)
AGE_S = 1.0
"""Tolerance of the displayed age: the page's beat of 0.1 s, late on a busy machine."""
CURRENT_MS = 1000
"""A younger picture was taken after a pause of 1.5 s. `make benchmark` measures latency."""


def said_s(page: Page) -> float:
    """Return the age that is displayed on the picture."""
    found = re.search(r"([\d.]+)\ss old", page.inner_text("#age"))
    assert found, page.inner_text("#age")
    return float(found[1])


@PATHS
def test_frozen_camera_greys_picture_and_counts_its_age(
    page: Page, bench: RunningBench, path: str
) -> None:
    look_at(page, bench.url, path)
    cameras = bench.cameras()
    frozen_s = time.monotonic()
    signal_all(cameras, signal.SIGSTOP)
    try:
        until(page, "document.body.dataset.picture === 'old'")
        shown = "#picture" if path == "webcodecs" else "#picture-mse"
        look = f"getComputedStyle(document.querySelector('{shown}'))"
        assert "grayscale" in page.evaluate(f"{look}.filter")
        ages = []
        for _ in range(4):
            page.wait_for_timeout(250)
            before_s = time.monotonic() - frozen_s
            ages.append((before_s, said_s(page), time.monotonic() - frozen_s))
        (low, said, high), *_, (low_end, said_end, high_end) = ages
        # From capture to now: the last picture came before the camera stopped.
        assert said > low - AGE_S, ages
        assert low_end - high - AGE_S < said_end - said < high_end - low + AGE_S, ages
        counted = "Number(/[0-9.]+/.exec(document.getElementById('age').innerText)[0])"
        until(page, f"{counted} > {said + 0.4}")
    finally:
        signal_all(cameras, signal.SIGCONT)
    goes_on(page)
    assert page.locator("#age").is_hidden()


@PATHS
def test_picture_is_current_at_once_after_camera_freeze(
    page: Page, bench: RunningBench, path: str
) -> None:
    """The page skips old pictures: after a second and a half it shows a new one."""
    look_at(page, bench.url, path)
    cameras = bench.cameras()
    signal_all(cameras, signal.SIGSTOP)
    page.wait_for_timeout(1500)
    signal_all(cameras, signal.SIGCONT)
    until(page, "document.body.dataset.picture === 'live'")
    page.wait_for_timeout(300)
    assert probe(page, "video.latencyMs.at(-1)") < CURRENT_MS


@PATHS
def test_hidden_page_wakes_to_a_current_picture(
    browser: Browser, bench: RunningBench, path: str
) -> None:
    """A hidden page gets no video; shown again, it has a current picture at once."""
    context = browser.new_context()
    page = look_at(context.new_page(), bench.url, path)
    hide(page, True)
    wait_for(lambda: viewers(page) == 0, "video goes on to a hidden page")
    page.wait_for_timeout(1500)
    asleep = probe(page, "video.shown")
    assert hide(page, False) == "old", "as long as no picture has come"
    until(page, f"window.fpvcar.video.shown > {asleep}")
    goes_on(page)
    assert probe(page, "video.latencyMs.at(-1)") < CURRENT_MS
    context.close()


def hide(page: Page, hidden: bool) -> str:
    """Send the browser's event for a hidden or shown page, because a headless page is always
    visible. Return the page's description of its picture at that moment."""
    state = "hidden" if hidden else "visible"
    said: str = page.evaluate(
        f"Object.defineProperty(document, 'visibilityState', "
        f"{{value: '{state}', configurable: true}});"
        "document.dispatchEvent(new Event('visibilitychange'));"
        "document.body.dataset.picture"
    )
    return said


def viewers(page: Page) -> int:
    status = page.evaluate("fetch('/api/status').then((answer) => answer.json())")
    return len(status["video"])


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


@PATHS
def test_picture_moves_with_low_latency(page: Page, bench: RunningBench, path: str) -> None:
    opened(page, f"{bench.url}?path={path}")
    assert probe(page, "video.path") == path
    shown = probe(page, "video.shown")
    until(page, f"window.fpvcar.video.shown > {shown} + 60", 60.0)
    assert median(probe(page, "video.latencyMs")) < CURRENT_MS, "a queue builds up"

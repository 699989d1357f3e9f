"""Capture-to-screen latency of both video paths, with rendering, and of a server as shipped.

Rates are a third of a percent below 30 and 60, so that the phase between the camera and the
display's 60 Hz cycles every five seconds. At exactly 30 the phase would stay at its random initial
value, and two runs would differ by 16 ms.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page
from testkit.browsers.seat import until

from benchmarks.baselines.baseline import serving
from benchmarks.browser import glass
from benchmarks.rig import Settings, opened, running, say
from benchmarks.rows import Aim, Result, Row, row

FPS = 29.9
QUICK_FPS = 59.8
CANVAS, VIDEO = "#picture", "#picture-mse"
PLAIN_CAMERA = Path(__file__).parents[1] / "network" / "plain_camera.py"


def source(kind: str, fps: float, width: int = 640, height: int = 480) -> list[str]:
    """Return options of a bench with that camera."""
    return [
        f'--set=camera.source = "{kind}"',
        f"--set=camera.fps = {fps}",
        f"--set=camera.width = {width}",
        f"--set=camera.height = {height}",
    ]


def plain(fps: float, width: int = 640, height: int = 480) -> list[str]:
    """Return options of a bench with a plain camera: it accepts no requests for a key frame or
    another bitrate."""
    size = (f"--width={width}", f"--height={height}", f"--fps={fps}")
    return [f"--set=camera.command = {json.dumps([sys.executable, str(PLAIN_CAMERA), *size])}"]


def through(settings: Settings, browser: Browser, name: str, aim: Aim, camera: list[str]) -> Row:
    """Measure one row by WebCodecs."""
    say(f"video: {name}, {settings.seconds:.0f} s")
    with running(*camera) as bench, opened(browser, bench.url) as page:
        pictures, _ = glass.watch(page, CANVAS, settings.seconds)
        slower = page.evaluate("window.fpvcar.state.lowered_rate")
    return row("video", name, "ms", pictures.ages_ms, aim, slower)


def fallback(settings: Settings, browser: Browser) -> Iterator[Row]:
    """Measure Media Source Extensions: by the element's report, and by the paints."""
    name = f"path 640x480@{FPS}, MSE"
    say(f"video: {name}, {settings.seconds:.0f} s")
    with running(*source("strip", FPS)) as bench, opened(browser, f"{bench.url}?path=mse") as page:
        painted, presented = glass.watch(page, VIDEO, settings.seconds)
    if presented is None:
        raise RuntimeError("the browser does not say when a <video> shows a picture")
    yield row("video", f"{name}, as shown", "ms", presented.ages_ms, Aim(28, p99=45))
    gaps = row("video", f"{name}, between pictures", "ms", presented.gaps_ms)
    yield row("video", f"{name}, longest freeze", "ms", [gaps.worst], Aim(worst=150))
    yield row("video", f"{name}, as painted", "ms", painted.ages_ms)


@contextmanager
def visited(browser: Browser, url: str) -> Iterator[Page]:
    """Yield the page of a baseline when it shows a picture."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    try:
        page = context.new_page()
        page.goto(url, wait_until="commit")
        until(page, "document.querySelector('#picture')?.videoWidth", 20.0)
        yield page
    finally:
        context.close()


def shipped(settings: Settings) -> Iterator[Result]:
    """Measure the rival as shipped, with the same camera, browser and reader."""
    name, seconds = "aiortc, H.264", settings.seconds / 3
    say(f"video: {name}, {seconds:.0f} s")
    with settings.chromium() as browser, serving(FPS) as url, visited(browser, url) as page:
        page.wait_for_timeout(1000)
        pictures, _ = glass.watch(page, CANVAS, seconds)
    yield row("video", f"beside: {name}", "ms", pictures.ages_ms)


def rows(settings: Settings) -> Iterator[Result]:
    """Measure our paths that the comparison with the tuned rival leaves out."""
    with settings.chromium() as browser:
        yield through(
            settings,
            browser,
            f"path 640x480@{QUICK_FPS}, WebCodecs",
            Aim(13, p99=22),
            source("strip", QUICK_FPS),
        )
        yield from fallback(settings, browser)
        yield through(
            settings,
            browser,
            f"whole 640x480@{FPS}, rendering included",
            Aim(25, p99=40),
            source("stamped", FPS),
        )
        yield through(
            settings,
            browser,
            f"whole 640x480@{QUICK_FPS}, rendering included",
            Aim(),
            source("stamped", QUICK_FPS),
        )

"""Capture-to-screen latency of both video paths, with rendering, and of two baselines in turn.

Rates are a third of a percent below 30 and 60, so that the phase between the camera and the
display's 60 Hz cycles every five seconds. At exactly 30 the phase would stay at its random initial
value, and two runs would differ by 16 ms.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page
from tests.e2e.browser.seat import until

from benchmarks.baselines.baseline import serving
from benchmarks.browser import glass
from benchmarks.rig import Settings, opened, running, say
from benchmarks.rows import Aim, Result, Row, ratio, row

FPS = 29.9
QUICK_FPS = 59.8
CANVAS, VIDEO = "#picture", "#picture-mse"


def source(kind: str, fps: float, width: int = 640, height: int = 480) -> list[str]:
    """Return options of a bench with that camera."""
    return [
        f'--set=camera.source = "{kind}"',
        f"--set=camera.fps = {fps}",
        f"--set=camera.width = {width}",
        f"--set=camera.height = {height}",
    ]


def through(settings: Settings, browser: Browser, name: str, aim: Aim, camera: list[str]) -> Row:
    """Measure one row by WebCodecs."""
    say(f"video: {name}, {settings.seconds:.0f} s")
    with running(*camera) as bench, opened(browser, bench.url) as page:
        pictures, _ = glass.watch(page, CANVAS, settings.seconds)
    return row("video", name, "ms", pictures.ages_ms, aim)


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
        shows = "document.querySelector('#picture')"
        until(page, f"{shows}?.videoWidth || {shows}?.naturalWidth", 20.0)
        yield page
    finally:
        context.close()


def beside(
    settings: Settings, browser: Browser, name: str, module: str, path: str, share: float = 1.0
) -> Row:
    """Measure a baseline with the same camera, browser and reader."""
    seconds = settings.seconds * share
    say(f"video: {name}, {seconds:.0f} s")
    with serving(module, path, FPS) as url, visited(browser, url) as page:
        page.wait_for_timeout(1000)
        pictures, _ = glass.watch(page, CANVAS, seconds)
    return row("video", name, "ms", pictures.ages_ms)


def compared(settings: Settings, browser: Browser) -> Iterator[Row]:
    """Measure our paths and the baselines, in turn; rows that have no aim are for comparison."""
    ours = through(
        settings, browser, f"path 640x480@{FPS}, WebCodecs", Aim(13, p99=24), source("strip", FPS)
    )
    yield ours
    aiortc = beside(settings, browser, "beside: aiortc, H.264", "baseline_webrtc", "h264")
    yield aiortc
    vp8 = beside(settings, browser, "beside: aiortc, VP8", "baseline_webrtc", "vp8", 1 / 3)
    yield vp8
    recipe = beside(
        settings, browser, "beside: MJPEG, picamera's recipe", "baseline_mjpeg", "recipe"
    )
    yield recipe
    example = beside(
        settings, browser, "beside: MJPEG, picamera2's example", "baseline_mjpeg", "example", 1 / 3
    )
    yield example
    yield ratio("video", "ours / aiortc, H.264", ours, aiortc, Aim(0.45))
    yield ratio("video", "ours / aiortc, VP8", ours, vp8)
    yield ratio("video", "ours / MJPEG, picamera's recipe", ours, recipe, Aim(0.2))
    yield ratio("video", "ours / MJPEG, picamera2's example", ours, example)


def rows(settings: Settings) -> Iterator[Result]:
    """Measure all rows in one browser."""
    with settings.chromium() as browser:
        yield from compared(settings, browser)
        yield through(
            settings,
            browser,
            f"path 1280x720@{FPS}, WebCodecs",
            Aim(17, p99=30),
            source("strip", FPS, 1280, 720),
        )
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

"""Full page in Debian's Firefox: video path, age of pictures, and driving."""

import shutil
from collections.abc import Iterator

from testkit.harness import RunningBench, wait_for

from benchmarks.browser import glass
from benchmarks.browser.control import press_to_pin
from benchmarks.browser.video import CANVAS, FPS, VIDEO, source
from benchmarks.rdma.bidi import Tab, firefox
from benchmarks.rig import NOTE_PRESS, Settings, running, say
from benchmarks.rows import Note, Result, Row, row

PROGRAM = "firefox-esr"
TAKES_S = 20.0


def shown(tab: Tab, url: str) -> str:
    """Open the page; return its video path, or the reason of a missing picture."""
    tab.goto(url)
    try:
        wait_for(
            lambda: bool(tab.evaluate("window.fpvcar?.video.shown > 10")),
            "no picture",
            TAKES_S,
            0.1,
        )
    except AssertionError:
        fault = tab.evaluate("window.fpvcar?.video.fault")
        raise RuntimeError(f"shows no picture: {fault}") from None
    return str(tab.evaluate("window.fpvcar.video.path"))


def path(tab: Tab, bench: RunningBench, query: str, seconds: float) -> Iterator[Row]:
    """Yield the rows of one video path."""
    way = shown(tab, bench.url + query)
    name = f"path 640x480@{FPS}, {way}"
    say(f"firefox: {name}, {seconds:.0f} s")
    painted, presented = glass.watch(tab, VIDEO if way == "mse" else CANVAS, seconds)
    yield row("firefox", f"{name}, as painted", "ms", painted.ages_ms)
    if presented is not None:
        yield row("firefox", f"{name}, as shown", "ms", presented.ages_ms)
        gaps = presented.gaps_ms
        yield row("firefox", f"{name}, longest freeze", "ms", [max(gaps)])


def rows(settings: Settings) -> Iterator[Result]:
    """Measure both video paths, and a held key; or yield the reason why not."""
    program = shutil.which(PROGRAM)
    if program is None:
        yield Note("firefox", f"{PROGRAM} is not installed")
        return
    with running(*source("strip", FPS)) as bench, firefox(program) as tab:
        tab.add_init_script(NOTE_PRESS)
        try:
            yield from path(tab, bench, "", settings.seconds)
        except RuntimeError as fault:  # no H.264 without libavcodec
            yield Note("firefox", f"{PROGRAM} {tab.version} {fault}")
            return
        values = press_to_pin(tab, bench, settings.runs)
        yield row("firefox", "key press to pin", "ms", values, note=f"Firefox {tab.version}")
        yield from path(tab, bench, "?path=mse", settings.seconds / 2)

"""Key press to pin: alone, beside a viewer that reads no data, on a narrow link."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Page
from testkit.browsers.phone import on_the_lan, take_wheel
from testkit.driver import open_socket
from testkit.harness import RunningBench
from testkit.network.lan import Lan

from benchmarks.browser.control import press_ms
from benchmarks.browser.video import FPS, source
from benchmarks.rig import opened, running, say
from benchmarks.rows import Aim, Result, Row, row

VIDEO_BITRATE = 2_000_000
QUEUE_BYTES = 20_000
PRESSES = 30


def presses(
    page: Page, bench: RunningBench, name: str, aim: Aim | None, note: str = ""
) -> tuple[Row, Row]:
    """Return (press to pin, the page's round trip during the presses)."""
    say(f"links: {name}")
    values, trips = [], []
    with bench.watch() as watch:
        for _ in range(PRESSES):
            values.append(press_ms(page, watch))
            trips.append(float(page.evaluate("window.fpvcar.link.ms")))
    name = f"press to pin, {name}"
    return row("links", name, "ms", values, aim, note), row(
        "links", f"{name}: round trip", "ms", trips
    )


def under_load() -> Iterator[Result]:
    """Measure the three cases in turn on one bench, with the driver on another host."""
    aim = Aim(median=8, p99=20)
    with ExitStack() as stack:
        lan = stack.enter_context(Lan())
        bench = stack.enter_context(running("--host=0.0.0.0", *source("strip", FPS)))
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        browser = stack.enter_context(on_the_lan(lan, home, bench.port))
        page = stack.enter_context(opened(browser, f"http://{lan.near}:{bench.port}/"))
        take_wheel(page, bench)
        alone, alone_trip = presses(page, bench, "alone", aim, "guard off")
        yield from (alone, alone_trip)
        note = f"guard off; alone: {alone.median:.1f} / {alone.p99:.1f}"
        link = lan.connect(bench.port)
        with open_socket(
            bench.port, "/ws/video", max_queue=1, host=lan.near, link=link
        ):  # the viewer reads until its queue is full, and never again
            stalled, _ = presses(page, bench, "a viewer stalled", aim, note)
            yield stalled
        lan.narrow(VIDEO_BITRATE // 3, QUEUE_BYTES)
        full, full_trip = presses(page, bench, "own link full", aim, note)
        yield full
        trip = f"alone: {alone_trip.median:.1f} / {alone_trip.p99:.1f}"
        yield row("links", full_trip.name, "ms", full_trip.values, note=trip)

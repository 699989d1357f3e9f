"""Common start-up of all parts of the benchmark: a bench, a page, and its clocks."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page
from testkit.browsers.seat import until
from testkit.harness import RunningBench

NOTE_PRESS = """
addEventListener('keydown', (event) => {
  window.pressedAt = performance.timeOrigin + event.timeStamp;
}, true);
"""


@dataclass(frozen=True)
class Settings:
    """Parameters of the command line. `chromium` starts a browser: each part has its own, so
    that no part inherits state from another."""

    chromium: Callable[[], AbstractContextManager[Browser]]
    seconds: float
    runs: int


def say(text: str) -> None:
    """Show the current measurement; on a terminal the next one overwrites the line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)
    elif text:
        print(f"... {text}", file=sys.stderr, flush=True)


@contextmanager
def running(*options: str, kind: type[RunningBench] = RunningBench) -> Iterator[RunningBench]:
    """Run a bench within the context."""
    with tempfile.TemporaryDirectory() as home:
        bench = kind(Path(home), *options)
        try:
            yield bench.wait_ready()
        finally:
            bench.stop()


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    """Open a page, and yield it when it shows pictures."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.add_init_script(NOTE_PRESS)
    page = context.new_page()
    page.goto(url)
    until(page, "window.fpvcar?.video.shown > 10", 20.0)
    yield page
    context.close()


def wall_ahead_ms() -> float:
    """Return wall clock (the browser's) minus CLOCK_MONOTONIC (the car's), ms."""
    return (time.time() - time.monotonic()) * 1000.0

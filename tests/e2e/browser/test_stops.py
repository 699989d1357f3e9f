"""Faults under a browser that drives: the car stops in time, the page comes back.

More ways to stop, each five times, are in browser_causes.py.
"""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page
from testkit.browsers.seat import at_the_wheel, comes_back, go_on, holds, seated_over, stands, until
from testkit.harness import STRIP, PinWatch, RunningBench, wait_for
from testkit.network.proxy import Link

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
OPTIONS = (STRIP,)


def breaks(page: Page, watch: PinWatch, act: Callable[[], object]) -> None:
    """Drive, break a part, and assert that the car stops in time."""
    holds(page, watch, "ArrowUp")
    now_ns = time.monotonic_ns()
    act()
    stands(watch)
    assert watch.stopped_after_s(now_ns) <= 0.30


def test_stalled_link_stops_car_greys_picture_and_recovers(
    page: Page, bench: RunningBench, link: Link
) -> None:
    seated_over(page, link)
    with bench.watch() as watch:
        breaks(page, watch, link.stall)
        until(page, "document.body.innerText.match(/picture is .* old/)")
        assert "grayscale" in page.evaluate(
            "getComputedStyle(document.querySelector('#picture')).filter"
        )
        page.wait_for_timeout(1500)
        link.mend()
        comes_back(page)
        assert not watch.now.driving, "a key held through an outage drove on"
        page.keyboard.up("ArrowUp")
        go_on(page)
        holds(page, watch, "ArrowUp")
        page.keyboard.up("ArrowUp")
        stands(watch)
    assert not re.search(r"\bold\b", page.inner_text("body"))


def test_cut_link_stops_car_and_comes_back(page: Page, bench: RunningBench, link: Link) -> None:
    seated_over(page, link)
    with bench.watch() as watch:
        breaks(page, watch, link.cut)
        comes_back(page)
        assert not watch.now.driving, "a key held through an outage drove on"


def test_frozen_browser_stops_the_car(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    renderers = own_processes(b"--type=renderer")

    def signal_all(number: signal.Signals) -> None:
        for pid in renderers:
            os.kill(pid, number)

    with bench.watch() as watch:
        try:
            breaks(page, watch, lambda: signal_all(signal.SIGSTOP))
        finally:
            signal_all(signal.SIGCONT)
        page.keyboard.up("ArrowUp")
        comes_back(page)
        assert not watch.now.driving


def own_processes(word: bytes) -> list[int]:
    """Return our own descendants whose command line has a word; other browsers are left out."""
    parents, lines = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
            lines[int(name)] = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        parents[int(name)] = int(stat.rpartition(")")[2].split()[1])

    def ours(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    found = [pid for pid, line in lines.items() if word in line and ours(pid)]
    assert found, f"no process with {word!r}"
    return found


def test_leaving_page_sends_neutral_and_stops_the_car(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")
        said = len(bench.log())
        page.evaluate("dispatchEvent(new Event('pagehide'))")
        stands(watch)
        words = "that was silence, not neutral"
        wait_for(lambda: "fpvcar.gate: neutral" in bench.log()[said:], words)
        page.wait_for_timeout(300)
        assert not watch.now.driving, "a held key drove on"

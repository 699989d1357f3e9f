"""Pulling plugs under a browser: stalled and cut links, frozen browsers, dead parts."""

import os
import signal
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.e2e.harness import RunningBench, wait_for
from tests.e2e.proxy import Link
from tests.e2e.seat import at_the_wheel, go_on, holds, probe, stands, until

pytestmark = pytest.mark.e2e
MARGIN_S = 0.15


@pytest.fixture
def link(bench: RunningBench) -> Iterator[Link]:
    """The Wi-Fi."""
    with Link(bench.port) as made:
        yield made


def seated_over(page: Page, link: Link) -> Page:
    """At the wheel, over the link."""
    return at_the_wheel(page, f"http://localhost:{link.port}/")


def comes_back(page: Page) -> None:
    """A live picture and the wheel, without a reload."""
    until(
        page,
        "window.fpvcar.link.kind === 'up' && window.fpvcar.state.role === 'driver'",
        15.0,
    )
    shown = probe(page, "video.shown")
    until(page, f"window.fpvcar.video.shown > {shown} + 10", 15.0)


def test_a_stalled_link_stops_greys_and_comes_back(
    page: Page, bench: RunningBench, link: Link
) -> None:
    seated_over(page, link)
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")
        now_ns = time.monotonic_ns()
        link.stall()
        stands(watch)
        assert watch.stopped_after_s(now_ns) <= 0.30 + MARGIN_S
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
    assert "old" not in page.inner_text("body")


def test_a_cut_link_stops_and_comes_back(
    page: Page, bench: RunningBench, link: Link
) -> None:
    seated_over(page, link)
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")
        now_ns = time.monotonic_ns()
        link.cut()
        stands(watch)
        assert watch.stopped_after_s(now_ns) <= 0.30 + MARGIN_S
        page.keyboard.up("ArrowUp")
        comes_back(page)


def test_a_frozen_browser_stops_the_car(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")
        renderers = chromium_processes(b"--type=renderer")
        now_ns = time.monotonic_ns()
        for pid in renderers:
            os.kill(pid, signal.SIGSTOP)
        try:
            stands(watch)
            assert watch.stopped_after_s(now_ns) <= 0.30 + MARGIN_S
        finally:
            for pid in renderers:
                os.kill(pid, signal.SIGCONT)
        page.keyboard.up("ArrowUp")
        comes_back(page)
        assert not watch.now.driving


def chromium_processes(word: bytes) -> list[int]:
    """Chromium's processes whose command line has a word."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue
        if b"chromium" in line and word in line:
            found.append(int(name))
    assert found, f"no process with {word!r}"
    return found


@pytest.mark.parametrize("unit", ["run", "wheels", "pigpiod"])
def test_a_killed_part_comes_back_and_go_on_drives(
    page: Page, bench: RunningBench, unit: str
) -> None:
    at_the_wheel(page, bench.url)
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")
        bench.kill(unit)
        stands(watch)
        page.keyboard.up("ArrowUp")
        comes_back(page)
        go_on(page)
        holds(page, watch, "ArrowUp")
        page.keyboard.up("ArrowUp")
        stands(watch)


def test_a_lost_camera_is_said_in_words(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    for pid in bench.cameras():
        os.kill(pid, signal.SIGKILL)
    comes_back(page)
    go_on(page)


def test_the_picture_is_current_after_a_stall(
    page: Page, bench: RunningBench, link: Link
) -> None:
    seated_over(page, link)
    link.stall()
    page.wait_for_timeout(1500)
    link.mend()
    comes_back(page)
    wait_for(lambda: probe(page, "video.latencyMs.at(-1)") < 200, "old pictures")

"""The picture freezes honestly and comes back without a reload, both ways to the glass.

Cameras are killed and stopped, sizes change, decoders fail and swallow, pages sleep.
"""

import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from fpvcar.video import h264
from tests.e2e.harness import STRIP, RunningBench, started, wait_for
from tests.e2e.seat import opened, probe, until
from tests.rigs.video_source import encode

pytestmark = pytest.mark.e2e
OPTIONS = (STRIP,)
PATHS = pytest.mark.parametrize("path", ["webcodecs", "mse"])
FAKE = Path(__file__).resolve().parents[1] / "rigs" / "fake_camera.py"
GREY_S = 1.2
"""`OLD_MS` of video.js (0.4 s), the page's beat of 0.1 s, and a busy machine."""
AGE_S = 0.5
"""How far the age that is written may be off: its beat, and how late it is read."""
SIZES = {"small": (640, 480), "wide": (1280, 720)}

NEVER_RELOADED = "window.opened ??= 1"
SWALLOWS = """
window.made = 0;
const Real = VideoDecoder;
window.VideoDecoder = class extends Real {
  constructor(init) {
    window.made += 1;
    super(window.healed ? init : {...init, output: (picture) => picture.close()});
  }
};
"""
FAILS_ONCE = """
window.made = 0;
const Real = VideoDecoder;
window.VideoDecoder = class extends Real {
  constructor(init) {
    super(init);
    window.made += 1;
    this.left = window.made === 1 ? 20 : Infinity;
    this.init = init;
  }
  decode(chunk) {
    this.left -= 1;
    if (this.left === 0) {
      this.close();
      this.init.error(new DOMException('Codec reclaimed', 'QuotaExceededError'));
    } else super.decode(chunk);
  }
};
"""
THROWS = """
window.made = 0;
const Real = VideoDecoder;
window.VideoDecoder = class extends Real {
  constructor(init) { super(init); window.made += 1; }
  configure() { throw new TypeError('no such codec here'); }
};
"""
MSE_BREAKS = """
window.appends = 0;
const append = SourceBuffer.prototype.appendBuffer;
SourceBuffer.prototype.appendBuffer = function (bytes) {
  window.appends += 1;
  // A box that claims to be half a gigabyte of moov is no fragment.
  const broken = window.appends === 30 || window.allBroken;
  append.call(this, broken ? new Uint8Array([0, 0, 0, 9, 0, 0, 0, 0, 1, 2, 3]) : bytes);
};
"""


def goes_on(page: Page, more: int = 10, timeout_s: float = 15.0) -> None:
    """A live, current picture, without a reload."""
    shown = probe(page, "video.shown")
    until(
        page,
        f"window.fpvcar.video.shown > {shown + more}"
        " && document.body.dataset.picture === 'live'",
        timeout_s,
    )
    assert page.evaluate("window.opened") == 1, "the page was loaded anew"


def look_at(page: Page, url: str, path: str) -> Page:
    """The page by that path, with a moving picture."""
    opened(page, f"{url}?path={path}")
    assert probe(page, "video.path") == path
    page.evaluate(NEVER_RELOADED)
    return page


def signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)


def said_s(page: Page) -> float:
    """The age that is written on the picture."""
    found = re.search(r"([\d.]+) s old", page.inner_text("#age"))
    assert found, page.inner_text("#age")
    return float(found[1])


@PATHS
def test_a_frozen_camera_greys_and_counts(
    page: Page, bench: RunningBench, path: str
) -> None:
    look_at(page, bench.url, path)
    cameras = bench.cameras()
    frozen_s = time.monotonic()
    signal_all(cameras, signal.SIGSTOP)
    try:
        until(page, "document.body.dataset.picture === 'old'")
        assert time.monotonic() - frozen_s < GREY_S
        shown = "#picture" if path == "webcodecs" else "#picture-mse"
        look = f"getComputedStyle(document.querySelector('{shown}'))"
        assert "grayscale" in page.evaluate(f"{look}.filter")
        ages = []
        for _ in range(4):
            page.wait_for_timeout(250)
            # Capture to now: the camera stopped just after its last picture.
            ages.append((said_s(page), time.monotonic() - frozen_s))
        assert all(abs(said - truth) < AGE_S for said, truth in ages), ages
        assert ages[-1][0] > ages[0][0] + 0.4, "it does not count"
    finally:
        signal_all(cameras, signal.SIGCONT)
    goes_on(page)
    assert page.locator("#age").is_hidden()


@PATHS
def test_a_killed_camera_comes_back(page: Page, bench: RunningBench, path: str) -> None:
    look_at(page, bench.url, path)
    signal_all(bench.cameras(), signal.SIGKILL)
    until(page, "document.body.dataset.picture === 'old'")
    goes_on(page)
    assert probe(page, "video.path") == path


@PATHS
def test_a_picture_is_current_at_once_after_a_freeze(
    page: Page, bench: RunningBench, path: str
) -> None:
    """No catching up: what is shown after a second and a half is new."""
    look_at(page, bench.url, path)
    cameras = bench.cameras()
    signal_all(cameras, signal.SIGSTOP)
    page.wait_for_timeout(1500)
    signal_all(cameras, signal.SIGCONT)
    until(page, "document.body.dataset.picture === 'live'")
    page.wait_for_timeout(300)
    assert probe(page, "video.latencyMs.at(-1)") < 200


@PATHS
def test_a_sleeping_page_wakes_to_a_current_picture(
    browser: Browser, bench: RunningBench, path: str
) -> None:
    """Hidden: no video comes. Shown again: at once a picture of now."""
    context = browser.new_context()
    page = look_at(context.new_page(), bench.url, path)
    hide(page, True)
    wait_for(lambda: viewers(page) == 0, "video goes on to a hidden page")
    page.wait_for_timeout(1500)
    asleep = probe(page, "video.shown")
    hide(page, False)
    assert page.evaluate("document.body.dataset.picture") == "old"
    until(page, f"window.fpvcar.video.shown > {asleep}", 2.0)
    goes_on(page)
    assert probe(page, "video.latencyMs.at(-1)") < 200
    context.close()


@PATHS
def test_a_page_frozen_by_the_browser_comes_back(
    browser: Browser, bench: RunningBench, path: str
) -> None:
    context = browser.new_context()
    page = look_at(context.new_page(), bench.url, path)
    devtools = context.new_cdp_session(page)
    devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    page.wait_for_timeout(1500)
    devtools.send("Page.setWebLifecycleState", {"state": "active"})
    goes_on(page)
    context.close()


def hide(page: Page, hidden: bool) -> None:
    """A headless page is always seen: what the browser would say is said for it."""
    state = "hidden" if hidden else "visible"
    page.evaluate(
        f"Object.defineProperty(document, 'visibilityState', "
        f"{{value: '{state}', configurable: true}});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )


def viewers(page: Page) -> int:
    status = page.evaluate("fetch('/api/status').then((answer) => answer.json())")
    return len(status["video"])


@pytest.mark.parametrize(
    ("script", "ends_on"),
    [(FAILS_ONCE, "webcodecs"), (SWALLOWS, "mse"), (THROWS, "mse")],
    ids=["reclaimed", "swallows", "refuses"],
)
def test_a_decoder_that_fails_is_replaced(
    page: Page, bench: RunningBench, script: str, ends_on: str
) -> None:
    page.add_init_script(script)
    page.goto(bench.url)
    page.evaluate(NEVER_RELOADED)
    until(page, f"window.fpvcar?.video.path === '{ends_on}'", 15.0)
    until(page, "window.made >= 2", 15.0)
    until(page, "window.fpvcar.video.shown > 30", 15.0)
    goes_on(page)
    assert probe(page, "video.path") == ends_on
    assert probe(page, "video.fault") != ""


def test_a_broken_media_source_is_built_anew(page: Page, bench: RunningBench) -> None:
    page.add_init_script(MSE_BREAKS)
    look_at(page, bench.url, "mse")
    until(page, "window.appends > 60", 15.0)
    goes_on(page)
    assert probe(page, "video.path") == "mse" and probe(page, "video.faults") == 1


def test_media_source_that_only_fails_gives_way_to_webcodecs(
    page: Page, bench: RunningBench
) -> None:
    page.add_init_script(MSE_BREAKS)
    look_at(page, bench.url, "mse")
    page.evaluate("window.allBroken = true")
    until(page, "window.fpvcar.video.path === 'webcodecs'", 15.0)
    goes_on(page)


@PATHS
def test_a_module_that_does_not_come_is_asked_for_again(
    page: Page, bench: RunningBench, path: str
) -> None:
    asked: list[str] = []

    def refuse(route: object) -> None:
        asked.append("")
        route.abort() if len(asked) <= 2 else route.continue_()  # type: ignore[attr-defined]

    page.route(re.compile(rf"/{path}\.js"), refuse)
    look_at(page, bench.url, path)
    assert len(asked) == 3


class Film:
    """What the fake camera plays: it can be swapped while the car runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, *sizes: str) -> None:
        """A second of pictures of each size in turn."""
        data = b"".join(
            struct.pack("<IBBHQ", len(unit), 1, int(h264.is_key(unit)), 0, 0) + unit
            for size in sizes
            for unit in film(size)
        )
        new = self.path.with_suffix(".new")
        new.write_bytes(data)
        new.rename(self.path)

    def cameras(self, bench: RunningBench) -> list[int]:
        """Processes that play it."""
        found = []
        for pid in bench.children():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[1:3] == [bytes(FAKE), bytes(self.path)]:
                found.append(pid)
        assert found, "no camera process"
        return found


def film(size: str) -> tuple[bytes, ...]:
    width, height = SIZES[size]
    return encode(frames=30, gop=15, width=width, height=height, noise=4)


@pytest.fixture(scope="module")
def cinema(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunningBench, Film]]:
    """A bench whose camera is a program that plays a film of any size."""
    home = tmp_path_factory.mktemp("cinema")
    shown = Film(home / "film")
    shown.put("small")
    words = [sys.executable, str(FAKE), str(shown.path), "plain"]
    command = ", ".join(f'"{word}"' for word in words)
    with started(home, f"--set=camera.command = [{command}]") as running:
        yield running, shown


def size_is(page: Page, size: str) -> Callable[[], bool]:
    return lambda: tuple(probe(page, "video.size")) == SIZES[size]


@PATHS
def test_a_restarted_camera_of_another_size(
    page: Page, cinema: tuple[RunningBench, Film], path: str
) -> None:
    bench, shown = cinema
    shown.put("small")
    signal_all(shown.cameras(bench), signal.SIGKILL)
    look_at(page, bench.url, path)
    wait_for(size_is(page, "small"), "the picture is not small")
    shown.put("wide")
    signal_all(shown.cameras(bench), signal.SIGKILL)
    wait_for(size_is(page, "wide"), f"the size stayed {probe(page, 'video.size')}")
    goes_on(page)
    ratio = page.evaluate("document.body.style.getPropertyValue('--ratio')")
    assert ratio == "1280 / 720"
    assert probe(page, "video.path") == path and probe(page, "video.faults") == 0


@PATHS
def test_a_size_that_changes_in_mid_stream(
    page: Page, cinema: tuple[RunningBench, Film], path: str
) -> None:
    bench, shown = cinema
    shown.put("small", "wide")
    signal_all(shown.cameras(bench), signal.SIGKILL)
    look_at(page, bench.url, path)
    for size in ("wide", "small", "wide"):
        wait_for(size_is(page, size), f"{size} does not come", 10.0)
    goes_on(page)
    assert probe(page, "video.path") == path and probe(page, "video.faults") == 0

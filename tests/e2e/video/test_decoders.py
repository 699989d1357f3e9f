"""The picture comes back without a reload after any fault between camera and screen.

Cameras are killed, decoders fail and swallow, pages freeze.
"""

import re
import signal

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import probe, until
from testkit.harness import SMALL, RunningBench, wait_for

from tests.e2e.video.glass import NEVER_RELOADED, PATHS, goes_on, look_at, signal_all

pytestmark = pytest.mark.e2e
OPTIONS = (*SMALL, "--set=camera.bitrate = 150000")
"""The least bitrate: a change makes another decoder, as the level of the stream changes."""


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


HOLDS = """
const Real = VideoDecoder;
window.VideoDecoder = class extends Real {
  constructor(init) {
    const pictures = [];
    const output = (picture) => {
      pictures.push(picture);
      while (pictures.length > this.held) init.output(pictures.shift());
    };
    super({...init, output});
    this.held = 4;
  }
  // A busy machine would queue units, too.
  get decodeQueueSize() { return this.held ? 0 : super.decodeQueueSize; }
  configure(config) {
    (window.asked ??= []).push(config.hardwareAcceleration);
    if (config.hardwareAcceleration === 'prefer-software') this.held = 0;
    super.configure(config);
  }
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


@PATHS
def test_killed_camera_comes_back(page: Page, bench: RunningBench, path: str) -> None:
    look_at(page, bench.url, path)
    (killed,) = bench.cameras()
    signal_all([killed], signal.SIGKILL)
    # One that ran for long starts again before the picture counts as old.
    wait_for(lambda: killed not in bench.children(), "the camera lives", 20.0)
    goes_on(page)
    assert probe(page, "video.path") == path


@PATHS
def test_page_frozen_by_the_browser_comes_back(
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


@pytest.mark.parametrize(
    ("script", "ends_on"),
    [(FAILS_ONCE, "webcodecs"), (SWALLOWS, "mse"), (THROWS, "mse")],
    ids=["reclaimed", "swallows", "refuses"],
)
def test_failed_decoder_is_replaced(
    page: Page, bench: RunningBench, script: str, ends_on: str
) -> None:
    page.add_init_script(script)
    page.goto(bench.url)
    page.evaluate(NEVER_RELOADED)
    until(page, f"window.fpvcar?.video.path === '{ends_on}'")
    until(page, "window.made >= 2")
    until(page, "window.fpvcar.video.shown > 30")
    goes_on(page)
    assert probe(page, "video.path") == ends_on
    assert probe(page, "video.fault") != ""


def test_decoder_that_holds_pictures_is_replaced_by_software(
    page: Page, bench: RunningBench
) -> None:
    page.add_init_script(HOLDS)
    look_at(page, bench.url, "webcodecs")
    until(page, "window.fpvcar.video.software", 40.0)
    goes_on(page, timeout_s=40.0)
    page.reload()
    until(page, "window.asked?.length > 0", 40.0)
    assert page.evaluate("window.asked[0]") == "prefer-software", "remembered"


def test_broken_media_source_is_rebuilt(page: Page, bench: RunningBench) -> None:
    page.add_init_script(MSE_BREAKS)
    look_at(page, bench.url, "mse")
    until(page, "window.appends > 60")
    goes_on(page)
    assert probe(page, "video.path") == "mse" and probe(page, "video.faults") == 1


def test_media_source_that_keeps_failing_yields_to_webcodecs(
    page: Page, bench: RunningBench
) -> None:
    page.add_init_script(MSE_BREAKS)
    look_at(page, bench.url, "mse")
    page.evaluate("window.allBroken = true")
    until(page, "window.fpvcar.video.path === 'webcodecs'")
    goes_on(page)


@PATHS
def test_missing_decoder_module_is_requested_again(
    page: Page, bench: RunningBench, path: str
) -> None:
    asked: list[str] = []

    def refuse(route: object) -> None:
        asked.append("")
        route.abort() if len(asked) <= 2 else route.continue_()  # type: ignore[attr-defined]

    page.route(re.compile(rf"/{path}\.js"), refuse)
    look_at(page, bench.url, path)
    assert len(asked) == 3

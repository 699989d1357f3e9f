"""A device that decodes too slowly gets a message; a fast one gets none."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.played_car import PLAIN, SECURE, play
from testkit.browsers.seat import until
from testkit.cameras.video_source import encode
from testkit.harness import RunningBench, wait_for

pytestmark = pytest.mark.e2e

SLOW = """
const Real = VideoDecoder;
window.VideoDecoder = class {
  constructor({output, error}) {
    this.waiting = [];
    this.real = new Real({output: (picture) => this.waiting.push(picture), error});
    this.timer = setInterval(() => {
      if (this.waiting.length) output(this.waiting.shift());
    }, 80);
  }
  get decodeQueueSize() { return this.real.decodeQueueSize + this.waiting.length; }
  get state() { return this.real.state; }
  configure(how) { this.real.configure(how); }
  decode(unit) { this.real.decode(unit); }
  close() {
    clearInterval(this.timer);
    for (const picture of this.waiting) picture.close();
    this.real.close();
  }
};
delete window.MediaSource;
"""
"""A decoder that gives a picture every 80 ms, and no other path to the screen."""
SAID = "document.body.innerText.includes('too slow for the video')"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a car that films, not opened yet."""
    context = browser.new_context()
    yield play(context, encode(frames=10, gop=10, noise=8))
    context.close()


def test_slow_decoding_device_gets_a_message(page: Page) -> None:
    page.add_init_script(SLOW)
    page.goto(SECURE)
    until(page, SAID, 25.0)


def test_slow_decoding_driver_gets_fewer_pictures(bench: RunningBench, browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.add_init_script(SLOW.replace("delete window.MediaSource;", ""))
    page.goto(bench.url)
    until(page, "window.fpvcar?.state?.role === 'driver'")
    arriving = """async () => {
        const before = window.fpvcar.video;
        await new Promise((resolve) => setTimeout(resolve, 3000));
        const {fed, dropped} = window.fpvcar.video;
        return [(fed - before.fed) / 3, dropped - before.dropped];
    }"""

    def keeps_up() -> bool:
        fps, dropped = page.evaluate(arriving)
        return bool(5 < fps < 12 and dropped == 0)

    wait_for(keeps_up, "the car sends more pictures than the page can show", 60.0)
    assert page.evaluate("window.fpvcar.video.path") == "webcodecs"
    assert not page.evaluate(SAID)
    page.context.close()


@pytest.mark.soak
@pytest.mark.parametrize("origin", [SECURE, pytest.param(PLAIN, marks=pytest.mark.long)])
def test_fast_decoding_device_gets_no_message(page: Page, origin: str) -> None:
    page.goto(origin)
    until(page, "window.fpvcar?.video.shown > 3")
    page.wait_for_timeout(9000)  # longer than the page's own measurement
    assert not page.evaluate(SAID)

"""Faults that keep link or picture away are put in words, with the next step."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser.layout import faults
from tests.e2e.browser.seat import until, violations
from tests.support.cameras.video_source import encode
from tests.support.played_car import HTTPS, PLAIN, SECURE, play

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried]
FILM = encode(frames=10, gop=10, width=640, height=480, noise=8)
NO_AUTOPLAY = """
const {play} = HTMLMediaElement.prototype;
HTMLMediaElement.prototype.play = function () {
  return window.tapped ? play.call(this)
    : Promise.reject(new DOMException('low power', 'NotAllowedError'));
};
addEventListener('pointerdown', () => (window.tapped = true), {capture: true});
addEventListener('DOMContentLoaded', () => {
  document.querySelector('video').autoplay = false;
});
"""
BROKEN_DECODER = """
VideoDecoder.prototype.configure = () => {
  throw new DOMException('no 4:2:2 here', 'NotSupportedError');
};
MediaSource.prototype.addSourceBuffer = VideoDecoder.prototype.configure;
"""


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A phone with a played car."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    yield play(context, FILM)
    context.close()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (SECURE, "its live link does not come through"),
        (HTTPS, "this browser refuses its live link over https"),
    ],
)
def test_refused_sockets_of_a_car_that_answers_are_explained(
    phone: Page, address: str, words: str
) -> None:
    phone.goto(f"{address}icon.svg")
    phone.evaluate("sessionStorage.setItem('refuses', 'yes')")
    phone.goto(address)
    card = phone.locator("#card")
    expect(card).to_contain_text(words)
    assert phone.locator("#card-trust").is_visible() == (address == HTTPS)
    assert faults(phone) == [] and violations(phone, "#card") == []
    phone.evaluate("sessionStorage.removeItem('refuses')")
    until(phone, "window.fpvcar.state?.role === 'driver'")
    expect(card).not_to_contain_text(words)


def test_browser_that_plays_only_after_a_tap_is_tapped(phone: Page) -> None:
    """Phones in low-power mode refuse even a muted video."""
    phone.add_init_script(NO_AUTOPLAY)
    phone.goto(f"{PLAIN}?path=mse")
    hint = phone.locator("#no-picture")
    expect(hint).to_contain_text("Tap for the picture")
    phone.mouse.click(195, 250)
    until(phone, "window.fpvcar.video.shown > 3")
    expect(hint).to_be_hidden()


def test_decoder_that_gives_nothing_is_named_on_the_picture(phone: Page) -> None:
    phone.add_init_script(BROKEN_DECODER)
    phone.goto(SECURE)
    expect(phone.locator("#no-picture")).to_contain_text("no 4:2:2 here")

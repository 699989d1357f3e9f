"""Faults that keep link or picture away are put in words, with the next step."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from testkit.browsers.layout import faults
from testkit.browsers.played_answers import PlayedAnswers
from testkit.browsers.played_car import HTTPS, PLAIN, SECURE, play, say
from testkit.browsers.seat import open_menu, until, violations
from testkit.browsers.seat_states import GROWN_UP, GROWN_UPS, LOOKS, Look, show
from testkit.cameras.video_source import encode

pytestmark = pytest.mark.e2e
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


def test_offer_of_https_stays_until_the_first_drive_and_in_the_menu(phone: Page) -> None:
    show(
        phone,
        Look(
            {"role": "watching", "driver": None, "seat_free": True},
            origin=PLAIN,
            shows="!document.getElementById('intro').hidden",
            new_here=True,
        ),
    )
    say(phone, {"role": "driver"})
    phone.locator("#intro-ok").click()
    expect(phone.locator("#secure")).to_be_visible()
    phone.keyboard.press("w")
    expect(phone.locator("#secure")).to_be_hidden()
    open_menu(phone, "picture")
    assert phone.locator("#secure-menu").get_attribute("href") == "https://car.local:8081/"
    assert faults(phone) == []


def test_top_speed_in_force_is_marked(phone: Page) -> None:
    PlayedAnswers(phone)
    show(phone, Look(GROWN_UP, "!document.getElementById('menu').hidden", push=GROWN_UPS))
    buttons = phone.locator("#presets button")
    expect(buttons).to_have_count(3)
    phone.evaluate("window.sent = []")
    phone.evaluate("""() => {
      const {send} = WebSocket.prototype;
      WebSocket.prototype.send = function (text) {
        window.sent.push(JSON.parse(text));
        send.call(this, text);
      };
    }""")
    for pushed in (0, 2):
        buttons.nth(pushed).click()
        limit = phone.evaluate("sent.findLast(({kind}) => kind === 'limit').throttle")
        say(phone, {"limit": limit})
        for index in range(3):
            expect(buttons.nth(index)).to_have_attribute(
                "aria-pressed", str(index == pushed).lower()
            )


def test_keys_lead_back_to_the_menu(phone: Page) -> None:
    show(phone, LOOKS["keys"])
    assert phone.evaluate("document.activeElement.id") == "keys-title"
    phone.keyboard.press("Escape")
    expect(phone.locator("#show-keys")).to_be_focused()


def test_driver_sees_the_limits_of_the_grown_up(phone: Page) -> None:
    show(phone, LOOKS["driving"])
    says = phone.locator("#drive-says")
    expect(says).to_have_text("drive · max 75%")
    say(phone, {"limit": 0.3})
    expect(says).to_have_text("drive · max 30%")
    assert phone.evaluate("document.getElementById('max').textContent") == "max 30% · guard helps"


def test_forced_colours_mark_tab_and_keep_every_button_readable(phone: Page) -> None:
    phone.emulate_media(forced_colors="active", color_scheme="light")
    show(phone, Look(GROWN_UP, "!document.getElementById('menu').hidden", push=GROWN_UPS))
    unlike = """() => {
      const look = (one) => getComputedStyle(one).backgroundColor;
      const [chosen, other] = ['tab-grown-ups', 'tab-car'].map((id) => document.getElementById(id));
      return look(chosen) !== look(other);
    }"""
    assert phone.evaluate(unlike)
    alike = """() => [...document.querySelectorAll('button, .button')].filter((one) => {
      const {color, backgroundColor} = getComputedStyle(one);
      return one.checkVisibility() && color === backgroundColor;
    }).map((one) => one.id)"""
    assert phone.evaluate(alike) == []


@pytest.mark.parametrize(
    ("path", "words"), [("sites.html", "This is a car"), ("start.html", "started already")]
)
def test_pages_of_other_hosts_lead_back_to_the_seat(phone: Page, path: str, words: str) -> None:
    phone.goto(f"{SECURE}{path}")
    expect(phone.locator("#says")).to_contain_text(words)
    phone.locator("#seat").click()
    until(phone, "window.fpvcar?.state?.role === 'driver'")

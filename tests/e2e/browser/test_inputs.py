"""Keys and gamepads of all kinds on a page with a played car."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser.seat import until
from tests.e2e.browser.seat_states import LOOKS, Look, show
from tests.support.cameras.video_source import encode
from tests.support.played_car import play, say

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried]
FILM = encode(frames=10, gop=10, width=640, height=480, noise=8)
WISH = "JSON.stringify(window.fpvcar.wish)"
NEUTRAL = '{"throttle":0,"steer":0}'
FOCUS = "document.activeElement.id"


@pytest.fixture(scope="module")
def desk(browser: Browser) -> Iterator[Page]:
    """A desk with a played car."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    yield play(context, FILM)
    context.close()


def typed(page: Page, keys: str) -> set[str]:
    """Press keys one after the other; return the wishes meanwhile."""
    wishes = set()
    for key in keys:
        page.keyboard.down(key)
        wishes.add(page.evaluate(WISH))
        page.keyboard.up(key)
    return wishes


def test_typing_the_cars_name_goes_on_while_the_picture_is_old(desk: Page) -> None:
    show(desk, Look({"named": False}, LOOKS["naming"].shows))
    name = desk.locator("#naming-name")
    name.fill("")
    typed(desk, "Swa")
    say(desk, {}, filming=False)
    until(desk, "document.body.dataset.picture === 'old'")
    assert typed(desk, "wasd") == {NEUTRAL}
    assert name.input_value() == "Swawasd" and desk.evaluate(FOCUS) == "naming-name"
    say(desk, {"role": "watching", "driver": "Ann"}, filming=True)
    until(desk, "window.fpvcar.situation.kind === 'taken'")
    assert typed(desk, "!") == {NEUTRAL} and name.input_value() == "Swawasd!"
    say(desk, {"role": "driver"})
    until(desk, "window.fpvcar.situation.kind === 'ready'")
    desk.keyboard.press("Enter")
    desk.evaluate("for (const socket of played.sockets) socket.hear({kind: 'car_name', car: 'S'})")
    expect(desk.locator("#naming")).to_be_hidden()
    assert typed(desk, "w") != {NEUTRAL}, "a person who is done drives at once"


@pytest.mark.parametrize(
    ("look", "field"),
    [("naming", "#naming-name"), ("code", "#code"), ("menu", "#name"), ("menu-grown-up", "#limit")],
)
def test_keys_do_not_drive_after_their_field_vanished(desk: Page, look: str, field: str) -> None:
    show(desk, LOOKS[look])
    say(desk, {"role": "driver", "may_drive": True})
    desk.locator(field).focus()
    typed(desk, "ab")
    desk.locator(field).evaluate("(one) => one.closest('aside, .panel').remove()")
    assert typed(desk, "wasdlf") == {NEUTRAL}
    desk.wait_for_timeout(1100)
    until(desk, "window.fpvcar.situation.kind === 'ready'")
    assert typed(desk, "w") != {NEUTRAL}

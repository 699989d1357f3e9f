"""Keys and gamepads of all kinds on a page with a played car."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from testkit.browsers.played_car import play, say
from testkit.browsers.seat import open_menu, until, violations
from testkit.browsers.seat_states import LOOKS, Look, show
from testkit.cameras.video_source import encode

pytestmark = pytest.mark.e2e
FILM = encode(frames=10, gop=10, width=640, height=480, noise=8)
WISH = "JSON.stringify(window.fpvcar.wish)"
NEUTRAL = '{"throttle":0,"steer":0}'
FOCUS = "document.activeElement.id"
PADS = """
const pad = (id, index, mapping, axes, buttons) => ({id, index, connected: true, mapping,
  timestamp: 0, axes: Array(axes).fill(0), buttons: Array.from(
    {length: buttons}, () => ({pressed: false, touched: false, value: 0}))});
window.ghost = pad('SINO WEALTH Gaming KB (Vendor: 258a)', 0, '', 20, 50);
window.real = pad('Xbox 360 Controller (STANDARD GAMEPAD)', 1, 'standard', 4, 17);
window.worn = pad('Worn Pad', 2, 'standard', 4, 17);
worn.axes[0] = 0.14;
window.order = [];
window.push = (one, index, value) =>
  Object.assign(one.buttons[index], {value, pressed: value > 0.5});
navigator.getGamepads = () => window.order;
"""


@pytest.fixture(scope="module")
def desk(browser: Browser) -> Iterator[Page]:
    """A desk with a played car."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.add_init_script(PADS)
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


def test_keys_without_a_code_drive_and_stop(desk: Page) -> None:
    """TV remotes, old web views and some on-screen keyboards send them."""
    show(desk, LOOKS["driving"])
    send = """([type, key, keyCode]) => document.body.dispatchEvent(new KeyboardEvent(
      type, {key, code: '', keyCode, bubbles: true, cancelable: true}))"""
    for key, number in (("ArrowUp", 38), ("Unidentified", 37), ("w", 87), ("Left", 37)):
        assert not desk.evaluate(send, ["keydown", key, number]), f"{key} scrolls the page"
        assert desk.evaluate(WISH) != NEUTRAL, key
        desk.evaluate(send, ["keyup", key, number])
        assert desk.evaluate(WISH) == NEUTRAL, key


def test_gamepad_beside_phantoms_and_with_worn_sticks_drives(desk: Page) -> None:
    show(desk, LOOKS["driving"])
    for order, name in (
        ("[ghost, real, null]", "real"),
        ("[real, ghost]", "real"),
        ("[null, ghost, null, worn]", "worn"),
    ):
        desk.evaluate(f"order = {order}")
        until(desk, f"document.body.innerText.includes({name}.id.replace(/ [(].*/, ''))")
        desk.wait_for_timeout(500)
        assert desk.evaluate(WISH) == NEUTRAL, "nobody touches it"
        desk.evaluate(f"push({name}, 7, 1)")
        until(desk, "window.fpvcar.wish.throttle === 1 && window.fpvcar.wish.steer === 0")
        desk.evaluate(f"push({name}, 7, 0)")
        until(desk, f"{WISH} === '{NEUTRAL}'")


def test_stop_button_of_every_gamepad_stops(desk: Page) -> None:
    show(desk, LOOKS["driving"])
    desk.evaluate("order = [ghost, real, worn]")
    stops = """window.stops = 0; const {send} = WebSocket.prototype;
      WebSocket.prototype.send = function (text) {
        stops += JSON.parse(text).kind === 'estop' ? 1 : 0;
        send.call(this, text);
      };"""
    desk.evaluate(f"() => {{ {stops} }}")
    for count, name in enumerate(("ghost", "real", "worn"), 1):
        desk.evaluate(f"push({name}, 1, 1)")
        until(desk, f"stops === {count}")


def test_sheet_of_the_sticks_names_each_gamepad_and_lets_a_person_choose(desk: Page) -> None:
    show(desk, LOOKS["driving"])
    desk.evaluate("localStorage.removeItem('fpvcar.sticks')")
    open_menu(desk, "drive")
    desk.locator("#show-sticks").click()
    says = desk.locator("[data-testid=gamepad-says]")
    expect(says).to_contain_text("No gamepad")
    desk.evaluate("push(real, 7, 0); order = [ghost, real]")
    expect(says).to_contain_text("Xbox 360 Controller.")
    ghost, real = (desk.locator("label", has_text=name) for name in ("SINO", "Xbox"))
    expect(real.locator("i")).to_have_text("drives")
    desk.evaluate("push(ghost, 9, 1)")
    expect(ghost.locator("i")).to_have_class("on")
    assert violations(desk, "#sheet") == []
    ghost.click()
    expect(says).to_contain_text("SINO WEALTH Gaming KB.")
    desk.evaluate("push(ghost, 9, 0)")
    dead = desk.locator("[data-testid=dead]")
    dead.fill("0.3")
    kept = desk.evaluate("JSON.parse(localStorage['fpvcar.sticks'])")
    assert (kept["dead"], kept["use"][:4]) == (0.3, "SINO")
    desk.locator("label", has_text="The one that moves").click()
    expect(says).to_contain_text("Xbox 360 Controller.")
    desk.evaluate("localStorage.removeItem('fpvcar.sticks')")


def test_browser_without_gamepads_is_told_and_the_page_wakes_again(browser: Browser) -> None:
    """Firefox gives them to secure pages only."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.add_init_script("delete Navigator.prototype.getGamepads")
    page = play(context, FILM)
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    show(page, LOOKS["driving"])
    hide = """(state) => {
      Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate("dispatchEvent(new Event('gamepadconnected'))")
    for state in ("hidden", "visible"):
        page.evaluate(hide, state)
    shown = page.evaluate("window.fpvcar.video.shown")
    until(page, f"window.fpvcar.video.shown > {shown} + 3")
    open_menu(page, "drive")
    page.locator("#show-sticks").click()
    expect(page.locator("[data-testid=gamepad-says]")).to_contain_text("https")
    assert faults == []
    context.close()

"""The menu has tabs of one screen each. Every panel shows the reason of a stop, with Resume, and a
request for the wheel. Sticks and the button that moves the car are dimmed while nothing can move
it."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect
from testkit.browsers.layout import faults
from testkit.browsers.played_answers import PEOPLE, PlayedAnswers
from testkit.browsers.played_car import play, say
from testkit.browsers.seat import open_menu, until, violations
from testkit.browsers.seat_states import (
    ASKS,
    CAR,
    DRIVE,
    GROWN_UP,
    GROWN_UPS,
    LOOKS,
    STOPPED,
    TOUCH,
    WATCHING,
    Look,
    show,
)
from testkit.cameras.video_source import encode

from fpvcar.drive.control import NO_WHEELS

pytestmark = pytest.mark.e2e

PANELS = {"menu": CAR, "keys": (*DRIVE, "#show-keys"), "unlock": (*GROWN_UPS, "#grown-code")}
"""Panels of the seat, and the buttons that open each."""
TABS = {
    "drive": {"name", "beeps", "show-sticks", "show-intro"},
    "picture": {
        "whole",
        "path",
        "show-figures",
        "record-on-off",
        "record-keep",
        "mark",
        "recordings.html",
    },
    "car": {"look-for-faults", "calibrate", "network", "car-name", "language", "buttons"},
    "grown-ups": {"limit", "preset-0", "guard", "lock-again", "invite"},
}
"""The menu's tabs, with the settings and pages of each for a grown-up."""
PAGES = (
    ("drive", "#show-sticks", "[data-testid=left-handed]"),
    ("picture", "#show-figures", "#facts dd"),
    ("picture", "[data-testid=picture-settings] summary", "[data-testid=picture-night]"),
    ("car", "#calibrate", "[data-testid=begin-direction-drive]"),
    ("car", "#look-for-faults", ".finding"),
    ("grown-ups", "#invite", "#invite-length"),
)
"""Pages and folds behind the tabs: the tab, the button, and a part of each."""
COLORS: tuple[Literal["dark", "light"], ...] = ("dark", "light")
REACHED = """() => [...document.querySelectorAll('#menu-body :is(a, button, input, select)')]
  .filter((one) => one.checkVisibility())
  .map((one) => one.id || one.dataset.testid || one.getAttribute('href')
    || one.localName)"""
"""Names of the controls of the open tab."""
SCREENS = """(part) => {
  const {scrollHeight, clientHeight} = document.querySelector(part);
  return scrollHeight / clientHeight;
}"""
"""Height of a panel's content, in screens."""
HEARD = """(people) => {
  for (const socket of played.sockets) socket.hear({kind: 'people', people});
}"""
SENDS = """() => {
  window.sent = [];
  const {send} = WebSocket.prototype;
  WebSocket.prototype.send = function (text) {
    window.sent.push(JSON.parse(text));
    send.call(this, text);
  };
}"""
"""Keeps the messages that the page sends."""
RED = "rgb(163, 23, 16)"
WELL = {"stop": None, "wheels": "ok", "role": "driver"}
STANDS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "stopped": (STOPPED, {}),
    "wheels lost": ({"wheels": msgspec.to_builtins(NO_WHEELS["hung"])}, {}),
    "link late": ({}, {"lateMs": 320}),
    "link lost": ({}, {"linked": False}),
}
"""Messages of the car and states of the link while nothing can move the car."""
OPACITY = "Number(getComputedStyle(document.querySelector('#pad-drive .stick')).opacity)"
MOTION = {
    "guard": {"top_mps": 4.0, "brake_mps2": 2.0},
    "speeds": {"least_mps": 0.2},
    "turn": None,
    "circle_m": 0.8,
}
MAP_LOADED = """() => performance.getEntriesByType('resource').some(
  ({name}) => name.includes('path_map') || name.includes('motion'))"""
INK = """(() => {
  const {width, height} = document.getElementById('path-canvas');
  const pen = document.getElementById('path-canvas').getContext('2d');
  const {data} = pen.getImageData(0, 0, width, height);
  return data.filter((value, index) => index % 4 === 3 && value > 0).length;
})()"""
"""Pixels that are drawn on the map."""
TOP = "(one) => one.getBoundingClientRect().top"
RISE_PX = 9
"""Distance by which a panel rises while it opens, and 1 px."""


@pytest.fixture(scope="module")
def phone(browser: Browser) -> Iterator[Page]:
    """A phone with a played car, which answers the calibration, too."""
    context = browser.new_context(has_touch=True, is_mobile=True)
    page = play(context, encode(frames=10, gop=10, width=640, height=480, noise=8))
    PlayedAnswers(page)
    turn(page, "390x844")
    yield page
    context.close()


def turn(page: Page, size: str) -> None:
    """Give the page the size of a phone, upright or not."""
    width, height = TOUCH[size]
    page.set_viewport_size({"width": width, "height": height})


def opened(panel: str) -> str:
    """Return the expression that is true while the panel is open."""
    return f"!document.getElementById('{panel}').hidden"


def test_phone_gets_no_keys_until_one_is_pushed(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look(WELL, opened("menu"), push=DRIVE))
    keys = phone.locator("#show-keys")
    expect(keys).to_be_hidden()
    phone.locator("[data-close=menu]").click()
    phone.keyboard.press("ArrowUp")
    open_menu(phone, "drive")
    expect(keys).to_be_visible()


@pytest.mark.parametrize("panel", PANELS)
def test_open_panel_shows_the_stop_in_red_and_resumes(phone: Page, panel: str) -> None:
    turn(phone, "390x844")
    show(phone, Look(STOPPED, opened(panel), push=PANELS[panel]))
    card, resume = phone.locator(f"#{panel} > #card"), phone.locator("#resume")
    for size in ("390x844", "844x390"):
        turn(phone, size)
        expect(card).to_contain_text("Ann pressed STOP.")
        assert card.evaluate("(one) => getComputedStyle(one).backgroundColor") == RED
        resume.click(trial=True)  # nothing covers it
        assert faults(phone) == [], size
    resume.click()
    until(phone, "window.fpvcar.state.stop === null")
    expect(card).to_be_hidden()
    say(phone, STOPPED)
    phone.locator(f"[data-close={panel}]").click()
    where = "#notes" if panel == "menu" else "#menu"  # the others were opened there
    expect(phone.locator(f"{where} > #card")).to_contain_text("Ann pressed STOP.")


@pytest.mark.parametrize("panel", PANELS)
def test_open_panel_shows_request_for_the_wheel_and_answers(phone: Page, panel: str) -> None:
    turn(phone, "390x844")
    show(phone, Look({}, opened(panel), push=PANELS[panel]))
    phone.evaluate(SENDS)
    for size in ("390x844", "844x390"):
        turn(phone, size)
        say(phone, {**ASKS, **(STOPPED if panel == "menu" else {})})
        expect(phone.locator(f"#{panel} #asking-says")).to_have_text(
            "Quick Hedgehog (phone) asks for the wheel"
        )
        phone.locator("#asking-give").click(trial=True)  # nothing covers it
        assert faults(phone) == [], size
        phone.locator("#asking-later").click()
        until(phone, "sent.some(({kind, id, give}) => kind === 'answer' && id && !give)")
        say(phone, {"asking": None})
        expect(phone.locator("#asking-says")).to_have_text("")
        phone.evaluate("sent = []")
    phone.locator(f"[data-close={panel}]").click()
    if panel != "menu":
        phone.locator("[data-close=menu]").click()
    say(phone, ASKS)
    expect(phone.locator(".seat > #asking #asking-give")).to_be_visible()


def test_request_stays_above_stop_beside_a_card_and_the_first_help(phone: Page) -> None:
    show(phone, LOOKS["help-asked-stopped"])
    for width, height in ((390, 844), (360, 740)):
        phone.set_viewport_size({"width": width, "height": height})
        phone.locator("#asking-give").click(trial=True)
        request, stop = (phone.locator(part).bounding_box() for part in ("#asking", "#stop"))
        assert request and stop and request["y"] + request["height"] < stop["y"]
        assert faults(phone) == []


def test_each_tab_fits_one_screen_and_passes_axe(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look(GROWN_UP, opened("menu"), push=("#gear",)))
    phone.locator("[data-testid=preset-0]").wait_for(state="attached")
    phone.evaluate(HEARD, PEOPLE[:2])
    for tab, settings in TABS.items():
        open_menu(phone, tab)
        assert settings <= set(phone.evaluate(REACHED)), tab
        assert phone.evaluate(SCREENS, "#menu-body") == 1, tab
        for colors in COLORS:
            phone.emulate_media(color_scheme=colors)
            assert violations(phone, "#menu") == [], f"{tab}, {colors}"
        for width, height in ((640, 360), (320, 568)):  # 1280x720 at 200 %, a small phone
            phone.set_viewport_size({"width": width, "height": height})
            phone.wait_for_timeout(100)
            assert faults(phone) == [], f"{tab} at {width}x{height}"
        turn(phone, "390x844")


def test_map_of_the_drive_loads_when_it_is_switched_on(phone: Page) -> None:
    show(phone, LOOKS["driving"])
    phone.evaluate("localStorage.removeItem('fpvcar.path')")
    phone.route("**/api/motion", lambda route: route.fulfill(json=MOTION))
    phone.reload()
    until(phone, "document.getElementById('path-map') !== null")
    open_menu(phone, "picture")
    assert phone.locator("#path-clear").is_hidden() and not phone.evaluate(MAP_LOADED)
    phone.locator("#path").check()
    expect(phone.locator("#path-clear")).to_be_visible()
    phone.locator("[data-close=menu]").click()
    expect(phone.locator("#path-map")).to_be_visible()
    expect(phone.locator("#path-scale")).to_have_text("Estimate")
    until(phone, f"{INK} > 0")
    start = phone.evaluate(INK)
    say(phone, {"throttle": 0.5, "reason": "driving"})
    until(phone, f"{INK} > {start + 20}")
    say(phone, {"throttle": 0.0, "reason": "idle"})
    open_menu(phone, "picture")
    phone.locator("#path-clear").click()
    phone.locator("#path").uncheck()
    expect(phone.locator("#path-map")).to_be_hidden()


def test_each_page_of_the_menu_is_two_taps_away(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look(GROWN_UP, opened("menu"), push=("#gear",)))
    for tab, push, part in PAGES:
        phone.locator(f"#tab-{tab}").click()
        phone.locator(push).click()
        phone.locator(part).first.wait_for()
        sheet = phone.locator("#menu").is_hidden()
        body = ".drawer:not([hidden]) > .drawer-body"
        assert phone.evaluate(SCREENS, body) <= 2, push
        assert faults(phone) == [], push
        if sheet:
            phone.keyboard.press("Escape")
            expect(phone.locator(push)).to_be_focused()


def test_arrows_move_among_tabs_and_drive_after_a_finger(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look(GROWN_UP, opened("menu"), push=DRIVE))
    chosen = phone.locator("[role=tab][aria-selected=true]")
    phone.keyboard.down("ArrowLeft")
    until(phone, "window.fpvcar.wish.steer !== 0")  # a finger left the focus to the menu
    phone.keyboard.up("ArrowLeft")
    phone.keyboard.press("Tab")
    expect(chosen).to_be_focused()
    for key, tab in {"ArrowLeft": "grown-ups", "ArrowRight": "drive", "End": "grown-ups"}.items():
        phone.keyboard.press(key)
        expect(chosen).to_have_id(f"tab-{tab}")
        expect(chosen).to_be_focused()
        assert phone.locator("[role=tabpanel]:visible").get_attribute("id") == f"menu-{tab}"
        assert phone.evaluate("window.fpvcar.wish.steer") == 0
    phone.keyboard.press("Escape")
    phone.locator("#gear").focus()
    phone.keyboard.press("Enter")  # opens the last tab; the link's chip opens its own
    expect(phone.locator("#menu-grown-ups")).to_be_visible()
    phone.keyboard.press("Escape")
    phone.locator("#link-chip").click()
    expect(phone.locator("#link-says")).to_be_visible()


def test_code_leads_back_to_the_same_tab(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look({"grown_up": False}, opened("unlock"), push=(*GROWN_UPS, "#grown-code")))
    phone.locator("#code").fill("grown-ups")
    phone.keyboard.press("Enter")
    say(phone, GROWN_UP)
    expect(phone.locator("#limit")).to_be_visible()
    expect(phone.locator("#unlock")).to_be_hidden()
    assert phone.evaluate("document.activeElement.id") == "menu"
    phone.keyboard.press("Escape")
    expect(phone.locator("#menu")).to_be_hidden()
    assert phone.evaluate("document.activeElement.id") == "gear"


@pytest.mark.parametrize("size", ["390x844", "844x390"])
def test_results_open_as_a_sheet_and_lead_back_to_the_tab(phone: Page, size: str) -> None:
    turn(phone, size)
    show(phone, Look(GROWN_UP, opened("menu"), push=GROWN_UPS))
    invite = phone.locator("#invite")
    invite.scroll_into_view_if_needed()
    top = invite.evaluate(TOP)
    invite.click()
    phone.locator("#invitation button").click()
    inside(phone, "#invite-qr")
    assert faults(phone) == []
    phone.keyboard.press("Escape")
    expect(phone.locator("#menu-grown-ups")).to_be_visible()
    assert abs(invite.evaluate(TOP) - top) < RISE_PX
    open_menu(phone, "car")
    phone.locator("#look-for-faults").click()
    inside(phone, ".finding h3")
    assert faults(phone) == []
    phone.keyboard.press("Escape")
    expect(phone.locator("#menu-car")).to_be_visible()
    phone.keyboard.press("Escape")
    expect(phone.locator("#menu")).to_be_hidden()


def inside(page: Page, part: str) -> None:
    """Wait for the first such element; assert that it is on the screen without scrolling."""
    element = page.locator(part).first
    element.wait_for()
    box, screen = element.bounding_box(), page.viewport_size
    assert box is not None and screen is not None
    assert box["y"] >= 0 and box["y"] + box["height"] <= screen["height"], f"{part}: {box}"


def test_menu_shows_a_lost_link_on_a_phone(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look({}, opened("menu"), {"linked": False}, push=("#gear",)))
    expect(phone.locator("#menu > #card")).to_contain_text("The car stops by itself.")
    phone.locator("#card-title").click(trial=True)


def test_sticks_are_dimmed_while_nothing_can_move_the_car(phone: Page) -> None:
    turn(phone, "844x390")
    show(phone, Look({}, f"{OPACITY} === 1"))
    for says, more in STANDS.values():
        say(phone, says, **more)
        until(phone, f"{OPACITY} < 0.5")
        say(phone, WELL, linked=True, lateMs=0)
        until(phone, f"{OPACITY} === 1")
    say(phone, WATCHING)
    expect(phone.locator("#pad-drive")).to_be_hidden()


def test_hold_button_is_dimmed_while_nothing_can_move_the_car(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look(GROWN_UP, opened("menu"), push=CAR))
    phone.locator("#calibrate").click()
    phone.locator("[data-testid=begin-direction-drive]").click()
    hold = phone.locator("[data-testid=calibration-hold]")
    for says, more in STANDS.values():
        say(phone, WELL, linked=True, lateMs=0)
        expect(hold).to_have_attribute("aria-disabled", "false")
        held(phone)
        say(phone, says, **more)
        expect(hold).to_have_attribute("aria-disabled", "true")
        expect(hold).to_have_class("hold")
        phone.mouse.up()
        pushed(phone)
        expect(hold).to_have_text("Hold to move")
        phone.mouse.up()
    say(phone, WATCHING, linked=True)
    expect(hold).to_be_hidden()


def held(page: Page) -> None:
    """Hold the button that moves; again if a busy machine made the link late meanwhile."""
    button = page.locator("[data-testid=calibration-hold]")
    for last in (False, False, True):
        pushed(page)
        try:
            expect(button).to_have_class("hold held", timeout=20_000 if last else 3_000)
            return
        except AssertionError:
            if last:
                raise
            page.mouse.up()


def pushed(page: Page) -> None:
    """Push the button that moves, and hold it."""
    button = page.locator("[data-testid=calibration-hold]")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()

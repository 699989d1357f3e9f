"""Every panel shows the reason of a stop, with Resume. Sticks and the button that moves the car are
dimmed while nothing can move it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser.layout import faults
from tests.e2e.browser.seat import until
from tests.e2e.browser.seat_states import GROWN_UP, STOPPED, TOUCH, WATCHING, Look, show
from tests.support.cameras.video_source import encode
from tests.support.played_answers import PlayedAnswers
from tests.support.played_car import play, say

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried]

PANELS = {"menu": ("#gear",), "keys": ("#gear", "#show-keys"), "unlock": ("#gear", "#grown-code")}
"""Panels of the seat, and the buttons that open each."""
RED = "rgb(163, 23, 16)"
WELL = {"stop": None, "wheels": "ok", "role": "driver"}
STANDS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "stopped": (STOPPED, {}),
    "wheels lost": ({"wheels": "hung"}, {}),
    "link late": ({}, {"lateMs": 320}),
    "link lost": ({}, {"linked": False}),
}
"""Messages of the car and states of the link while nothing can move the car."""
OPACITY = "Number(getComputedStyle(document.querySelector('#pad-drive .stick')).opacity)"
CLICKED = """(one) => {
  const {top} = document.querySelector('[data-t=grownUps]').getBoundingClientRect();
  one.click();
  return top;
}"""
"""Clicks a button, and returns the place of a part of the menu before that."""
FILLED = "document.getElementById('link-says').textContent !== ''"
"""The menu has its figures, which come a second after it opens."""
RISE_PX = 9
"""Distance by which a panel rises while it opens, and 1 px."""
BUSY_MS = 20_000
"""Patience with a busy machine."""


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


@pytest.mark.parametrize("panel", PANELS)
def test_open_panel_shows_the_stop_in_red_and_resumes(phone: Page, panel: str) -> None:
    turn(phone, "390x844")
    show(phone, Look(STOPPED, opened(panel), push=PANELS[panel]))
    card, resume = phone.locator(f"#{panel} > #card"), phone.locator("#resume")
    for size in ("390x844", "844x390"):
        turn(phone, size)
        expect(card).to_contain_text("Ann pressed STOP.", timeout=BUSY_MS)
        assert card.evaluate("(one) => getComputedStyle(one).backgroundColor") == RED
        resume.click(trial=True)  # nothing covers it
        assert faults(phone) == [], size
    resume.click()
    until(phone, "window.fpvcar.state.stop === null")
    expect(card).to_be_hidden(timeout=BUSY_MS)
    say(phone, STOPPED)
    phone.locator(f"[data-close={panel}]").click()
    where = "#menu" if panel == "unlock" else "#notes"  # the code was asked for there
    expect(phone.locator(f"{where} > #card")).to_contain_text("Ann pressed STOP.", timeout=BUSY_MS)


def scrolled(page: Page) -> float:
    """Return the place of the same part of the menu now."""
    assert page.evaluate("document.getElementById('menu-body').scrollTop") > 0
    part = "document.querySelector('[data-t=grownUps]')"
    top: float = page.evaluate(f"{part}.getBoundingClientRect().top")
    return top


def test_code_leads_back_to_the_same_place_of_the_menu(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look({"grown_up": False}, opened("menu"), push=("#gear",)))
    until(phone, FILLED)
    phone.locator("#grown-code").scroll_into_view_if_needed()
    top = phone.locator("#grown-code").evaluate(CLICKED)
    phone.locator("#code").fill("grown-ups")
    phone.keyboard.press("Enter")
    say(phone, GROWN_UP)
    expect(phone.locator("#menu")).to_be_visible(timeout=BUSY_MS)
    expect(phone.locator("#unlock")).to_be_hidden()
    assert abs(scrolled(phone) - top) < RISE_PX
    assert phone.evaluate("document.activeElement.id") == "menu"
    phone.keyboard.press("Escape")
    expect(phone.locator("#menu")).to_be_hidden()
    assert phone.evaluate("document.activeElement.id") == "gear"


@pytest.mark.parametrize("size", ["390x844", "844x390"])
def test_results_open_as_a_sheet_and_lead_back_to_the_menu(phone: Page, size: str) -> None:
    turn(phone, size)
    show(phone, Look(GROWN_UP, opened("menu"), push=("#gear",)))
    until(phone, FILLED)
    phone.locator("#invite").scroll_into_view_if_needed()
    top = phone.locator("#invite").evaluate(CLICKED)
    phone.locator("#invitation button").click()
    inside(phone, "#invite-qr")
    assert faults(phone) == []
    phone.keyboard.press("Escape")
    expect(phone.locator("#menu")).to_be_visible(timeout=BUSY_MS)
    assert abs(scrolled(phone) - top) < RISE_PX
    phone.locator("#look-for-faults").click()
    inside(phone, ".finding h3")
    assert faults(phone) == []
    phone.keyboard.press("Escape")
    phone.keyboard.press("Escape")
    expect(phone.locator("#menu")).to_be_hidden(timeout=BUSY_MS)


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
    expect(phone.locator("#menu > #card")).to_contain_text(
        "The car stops by itself.", timeout=BUSY_MS
    )
    phone.locator("#card-title").click(trial=True)


def test_sticks_are_dimmed_while_nothing_can_move_the_car(phone: Page) -> None:
    turn(phone, "844x390")
    show(phone, Look({}, f"{OPACITY} === 1"))
    for says, more in STANDS.values():
        say(phone, says, **more)
        until(phone, f"{OPACITY} < 0.5", 20.0)
        say(phone, WELL, linked=True, lateMs=0)
        until(phone, f"{OPACITY} === 1", 20.0)
    say(phone, WATCHING)
    expect(phone.locator("#pad-drive")).to_be_hidden(timeout=BUSY_MS)


def test_hold_button_is_dimmed_while_nothing_can_move_the_car(phone: Page) -> None:
    turn(phone, "390x844")
    show(phone, Look(GROWN_UP, opened("menu"), push=("#gear",)))
    phone.locator("#calibrate").click()
    phone.locator("[data-testid=begin-direction-drive]").click()
    hold = phone.locator("[data-testid=calibration-hold]")
    for says, more in STANDS.values():
        say(phone, WELL, linked=True, lateMs=0)
        expect(hold).to_have_attribute("aria-disabled", "false", timeout=BUSY_MS)
        pushed(phone)
        expect(hold).to_have_class("hold held", timeout=BUSY_MS)
        say(phone, says, **more)
        expect(hold).to_have_attribute("aria-disabled", "true", timeout=BUSY_MS)
        expect(hold).to_have_class("hold", timeout=BUSY_MS)
        phone.mouse.up()
        pushed(phone)
        expect(hold).to_have_text("Hold to move")
        phone.mouse.up()
    say(phone, WATCHING, linked=True)
    expect(hold).to_be_hidden(timeout=BUSY_MS)


def pushed(page: Page) -> None:
    """Push the button that moves, and hold it."""
    button = page.locator("[data-testid=calibration-hold]")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()

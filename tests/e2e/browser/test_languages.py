"""The pages in the browser's language, or the one that was chosen, and the page shown without a
car."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect
from testkit.browsers.played_answers import PEOPLE, PlayedAnswers
from testkit.browsers.played_car import SECURE, play, say
from testkit.browsers.seat import at_the_wheel, open_menu, opened, until, violations
from testkit.browsers.seat_states import GROWN_UP, STOPPED
from testkit.cameras.video_source import encode
from testkit.harness import SMALL, RunningBench
from testkit.network.proxy import Link

from tests.e2e.pages.test_calibration_page import OVERFLOW

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
FINNISH = {"trust": "Luota tähän autoon", "network": "Wi-Fi", "recordings": "Tallenteet"}
BUSY_MS = 20_000
"""Patience with a busy machine."""
LONGEST = ("de", "fi")
STEPS = 7
"""Kinds of steps of the calibration."""
PHONE = ViewportSize(width=390, height=844)
RESUME = {
    "de-AT": "Weiter",
    "en-GB": "Resume",
    "es-MX": "Seguir",
    "fi-FI": "Jatka",
    "fr-FR": "Reprendre",
    "zh-CN": "继续",
}
LOCALES = [
    locale if locale[:2] in LONGEST else pytest.param(locale, marks=pytest.mark.long)
    for locale in RESUME
]
CUT = """() => [...document.querySelectorAll(
    'button, .button, h1:not(.unseen), .drawer-body, html')]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)
  .map((one) => `${one.id} ${one.localName} "${one.textContent.trim()}"`)"""
"""Words that are wider than their button, and elements that make a page wider than a phone."""
HEARD = """(people) => {
  for (const socket of played.sockets) socket.hear({kind: 'people', people});
}"""
STOP_WORD = """() => {
  const word = document.querySelector('#stop text').getBoundingClientRect();
  return word.width / document.querySelector('#stop').getBoundingClientRect().width;
}"""


def on_a_phone(browser: Browser, locale: str) -> tuple[BrowserContext, Page]:
    """Open the seat of a simulated car whose emergency stop was pushed."""
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, locale=locale)
    page = play(context, encode(frames=10, gop=10, width=640, height=480, noise=8))
    page.goto(SECURE)
    until(page, "window.fpvcar?.video.shown > 3 && window.fpvcar.state?.role")
    until(page, "document.getElementById('secure') !== null")  # the menu has come
    say(page, {**GROWN_UP, **STOPPED})
    until(page, "document.body.dataset.situation === 'stopped'")
    return context, page


@pytest.mark.soak
@pytest.mark.soak
@pytest.mark.parametrize("locale", LOCALES)
def test_words_of_each_language_fit_their_buttons(
    browser: Browser, locale: str, soaking: bool
) -> None:
    """`make soak` checks every page; otherwise pages beyond the seat are checked in the language
    with the longest words only."""
    context, page = on_a_phone(browser, locale)
    language = locale[:2]
    assert page.locator("html").get_attribute("lang") == language
    assert page.locator("#resume").inner_text() == RESUME[locale]
    page.locator("#intro-ok").click()
    assert page.evaluate(CUT) == []
    assert page.evaluate(STOP_WORD) < 0.9, "STOP is within its octagon"
    for tab in ("grown-ups", "car", "picture", "drive"):
        open_menu(page, tab)
        assert page.evaluate(CUT) == [], tab
    page.locator("#show-sticks").click()
    page.locator("#sticks [data-testid=expo]").wait_for()
    assert page.evaluate(CUT) == []
    page.locator("[data-close=sheet]").click()
    page.evaluate("document.body.dataset.input = 'keys'")
    page.locator("#show-keys").click()
    page.locator("#keys").wait_for(state="visible")
    assert page.evaluate(CUT) == []
    if soaking or language in LONGEST:
        grown_ups(page, language)
        other_pages(page, language)
    context.close()


def fits(page: Page, shown: str, name: str) -> None:
    """Assert that no word is cut once this is shown; keep a picture for people where PICTURES
    says."""
    page.locator(shown).first.wait_for()
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")
    assert page.evaluate(CUT) == [], name


def grown_ups(page: Page, language: str) -> None:
    """Check the parts of the menu that load on a grown-up's request."""
    played = PlayedAnswers(page)
    say(page, {"role": "driver", "stop": None})
    page.evaluate(HEARD, PEOPLE)
    open_menu(page, "grown-ups")
    page.locator("#invite").click()
    page.locator("#invitation button").click()
    fits(page, "#invite-link", f"who-{language}")
    page.locator("[data-close=sheet]").click()
    open_menu(page, "car")
    page.locator("#look-for-faults").click()
    fits(page, ".finding", f"doctor-{language}")
    page.locator("[data-close=sheet]").click()
    page.locator("#calibrate").click()
    fits(page, "[data-testid=calibration-undo]", f"calibration-{language}")
    steps = dict(played.steps)  # one of each kind
    assert len(steps) == STEPS
    for kind, of in steps.items():
        page.locator(f"[data-testid={'-'.join(filter(None, ('begin', kind, of)))}]").click()
        fits(page, "[data-testid=calibration-back]", f"calibration-{kind}-{language}")
        assert page.evaluate(OVERFLOW) == [0, 0], f"{kind}: a step needs no scrolling"
        page.locator("[data-testid=calibration-all]").click()


def other_pages(page: Page, language: str) -> None:
    """Check the other pages in the same language."""
    page.goto(f"{SECURE}trust.html")
    fits(page, "#systems summary", f"trust-{language}")
    page.goto(f"{SECURE}network.html")
    fits(page, "#list button", f"network-{language}")
    page.locator("#list button").first.click()
    fits(page, "#join-cancel", f"network-join-{language}")
    page.goto(f"{SECURE}recordings.html")
    page.locator("#storage summary").click()
    fits(page, "#list a", f"recordings-{language}")
    page.locator(".edit").click()
    fits(page, "#edit-remove", f"recordings-edit-{language}")
    page.locator("#edit-close").click()
    page.locator("#list a").click()
    fits(page, "#plots svg", f"recordings-drive-{language}")
    assert page.locator("html").get_attribute("lang") == language


def test_chosen_language_survives_reload_on_all_pages(browser: Browser) -> None:
    context, page = on_a_phone(browser, "sv-SE")
    assert page.locator("html").get_attribute("lang") == "en", "there is no Swedish"
    open_menu(page, "car")
    with page.expect_navigation():
        page.locator("#language").select_option("fi")
    for _ in range(2):
        until(page, "document.querySelector('#stop text')?.textContent === 'SEIS'")
        until(page, "document.getElementById('language')?.value === 'fi'")
        page.reload()
    for name, title in FINNISH.items():
        page.goto(f"{SECURE}{name}.html")
        until(page, f"document.querySelector('h1').textContent === '{title}'")
    context.close()


def test_first_driver_names_the_car_in_the_own_language_once(
    browser: Browser, tmp_path: Path
) -> None:
    bench = RunningBench(tmp_path, *SMALL, named=False)
    contexts = [browser.new_context(locale="en-GB") for _ in range(2)]
    page, phone = (context.new_page() for context in contexts)
    try:
        bench.wait_ready()
        at_the_wheel(page, bench.url)
        card, name = page.locator("#naming"), page.locator("#naming-name")
        expect(card).to_be_visible(timeout=BUSY_MS)
        assert name.input_value() and violations(page, "#naming") == []
        with page.expect_navigation():
            page.locator("#naming-language").select_option("de")
        expect(card.locator("h2")).to_have_text("Gib dem Auto einen Namen", timeout=BUSY_MS)
        for _ in range(3):
            with suppress(AssertionError):
                expect(card).to_be_visible(timeout=BUSY_MS / 3)
                break
            page.reload()  # a stall of the busy machine has stopped the car
        name.fill("")
        name.press_sequentially("Blitz zwei")  # Space is a letter there
        name.press("Enter")
        expect(page.locator("#car")).to_have_text("Blitz zwei", timeout=BUSY_MS)
        expect(card).to_be_hidden()
        assert page.title() == "Blitz zwei: Fahrersitz"
        opened(phone, bench.url)
        for one in (page, phone):
            one.reload()
            until(one, "document.getElementById('naming') !== null", 20.0)
            until(one, "window.fpvcar.welcome?.car === 'Blitz zwei'", 20.0)
            assert one.locator("#naming").is_hidden()
        page.goto(f"{bench.url}recordings")
        expect(page.locator("#car")).to_have_text("Blitz zwei", timeout=BUSY_MS)
    finally:
        for context in contexts:
            context.close()
        bench.stop()


def test_offline_page_says_how_to_find_the_car(browser: Browser, bench: RunningBench) -> None:
    context = browser.new_context(locale="de-DE")
    with Link(bench.port) as link:
        here = f"http://localhost:{link.port}/"
        page = opened(context.new_page(), here)
        ready = "navigator.serviceWorker.ready.then(() => true)"
        until(page, f"document.getElementById('language') !== null && {ready}")
        first = "caches.keys().then(([name]) => caches.open(name))"
        kept = f"{first}.then((one) => one.keys())"
        names = page.evaluate(f"{kept}.then((all) => all.map((one) => one.url))")
        assert [name.rpartition("/")[2] for name in names] == ["offline.html"]
        manifest = context.new_cdp_session(page).send("Page.getAppManifest")
        assert manifest["url"] and manifest["errors"] == []
    page.goto(f"{here}recordings.html")  # the server has stopped
    assert page.locator("h1:visible").inner_text() == "Das Auto antwortet nicht"
    assert page.evaluate("typeof window.fpvcar") == "undefined", "no module is held"
    context.close()

"""axe-core finds no fault on any page, in any dialog, by night and by day.

Pages are the HTML files of web/, dialogs are found by their tag or role: new ones are checked
without a change here.
"""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import at_the_wheel, grown_up, open_menu, opened, until, violations
from testkit.harness import SMALL, RunningBench, wait_for

from fpvcar.runtime import paths

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
PAGES = sorted(path.name for path in paths.WEB.glob("*.html"))
DIALOGS = 'dialog, [role="dialog"], [role="alertdialog"], .panel, .card'
OPEN = """(one) => {
  if (one instanceof HTMLDialogElement) one.showModal();
  else one.hidden = false;
}"""
CLOSE = """(one) => {
  if (one instanceof HTMLDialogElement) one.close();
  else one.hidden = true;
}"""


@pytest.fixture(params=["dark", "light"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param)
    yield context.new_page()
    context.close()


WORDED = "[...document.querySelectorAll('[data-t]')].every((part) => part.textContent)"
"""Whether all texts of the page have come: boot.js fetches them."""


def ready(page: Page, bench: RunningBench, name: str) -> None:
    """Open the page and wait for all its parts, including the late ones."""
    page.goto(f"{bench.url}{name}")
    if name == "index.html":
        until(page, "window.fpvcar?.state?.role")
        page.locator("#link-chip").click()
        page.locator("#menu").wait_for(state="visible")
        return
    probe = {
        "buttons.html": "fpvcar?.glow",
        "recordings.html": "recordings?.drives >= 0",
        "network.html": "network?.asked",
    }
    until(page, f"window.{probe.get(name, 'document.body')}")
    until(page, WORDED)


def dialogs_in(folder: Path) -> set[str]:
    """Return selectors of all dialogs in the files of the pages."""
    text = "".join(path.read_text() for path in folder.rglob("*.html"))
    tags = re.findall(r'<dialog[^>]*>|<[^>]*role="(?:alert)?dialog"[^>]*>', text)
    return {"#" + re.findall(r' id="([^"]+)"', tag)[0] for tag in tags}


@pytest.mark.parametrize("page", ["dark"], indirect=True)
def test_axe_reports_image_without_alt(page: Page, bench: RunningBench) -> None:
    ready(page, bench, "buttons.html")
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    assert any(fault.startswith("image-alt") for fault in violations(page))


@pytest.mark.smoke
def test_pages_and_dialogs_pass_axe(page: Page, bench: RunningBench) -> None:
    assert len(PAGES) >= 3
    found, seen = [], set()
    for name in PAGES:
        ready(page, bench, name)
        found += [f"{name}: {fault}" for fault in violations(page)]
        for dialog in page.locator(DIALOGS).element_handles():
            part = f"#{dialog.get_attribute('id')}"
            seen.add(part)
            dialog.evaluate(OPEN)
            found += [f"{name}{part}: {fault}" for fault in violations(page, part)]
            dialog.evaluate(CLOSE)
    assert found == []
    assert dialogs_in(paths.WEB) <= seen


def test_missing_page_says_so_and_links_to_the_car(page: Page, bench: RunningBench) -> None:
    page.goto(f"{bench.url}nowhere.html")
    assert "There is no /nowhere.html here." in page.locator("main").inner_text()
    assert violations(page) == []
    page.locator("a").click()
    until(page, "window.fpvcar !== undefined")


def test_seat_passes_axe_in_each_state(page: Page, bench: RunningBench) -> None:
    found: list[str] = []

    def look(state: str) -> None:
        found.extend(f"{state}: {fault}" for fault in violations(page))

    opened(page, bench.url)
    look("watching")
    at_the_wheel(page, bench.url)
    look("at the wheel")
    page.keyboard.press("Space")
    until(page, "window.fpvcar.state.stop !== null")
    look("stopped")
    page.locator("#resume").click()
    page.locator("#link-chip").click()
    page.locator("#menu").wait_for(state="visible")
    look("menu")
    open_menu(page, "grown-ups")
    page.locator("#grown-code").click()
    page.locator("#code").wait_for(state="visible")
    until(page, "document.getAnimations().length === 0")  # half faded in is pale
    look("code")
    page.keyboard.press("Escape")
    grown_up(page, bench)
    look("grown-ups' menu")
    bench.kill("run", signal.SIGSTOP)
    try:
        until(page, "document.body.dataset.situation === 'lost'")
        look("link lost")
    finally:
        bench.kill("run", signal.SIGCONT)
    wait_for(lambda: page.evaluate("document.body.dataset.situation") != "lost", "")
    assert found == []

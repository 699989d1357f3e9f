"""Panels of the seat: calibration and doctor."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page

from testkit.browsers.seat import go_on, grown_up, open_menu, until
from testkit.harness import RunningBench

STEP = "fetch('/api/calibration/step').then((answer) => answer.json())"
ROUTE = "**/api/doctor"
SAYS = "document.querySelector('#doctor [role=status]')?.textContent"
NEWS = "document.querySelector('[data-testid=calibration-news]')?.textContent"
LONG_S = 60.0


def one(page: Page, name: str) -> Any:
    """Return a part of the calibration by its test id."""
    return page.locator(f'#calibration [data-testid="{name}"]')


def seated(page: Page, url: str) -> None:
    """Open the page at the wheel of a car that may drive."""
    page.goto(url)
    until(page, "window.fpvcar?.state?.role === 'driver'", LONG_S)
    go_on(page)


def calibrating(page: Page, bench: RunningBench) -> None:
    """Open the list of steps, for a grown-up at the wheel."""
    seated(page, bench.url)
    grown_up(page, bench)
    until(page, "fetch('/api/calibration').then(({ok}) => ok)")  # the code's cookie has come
    open_menu(page, "car")
    page.locator("#calibrate").click()
    one(page, "begin-speed").wait_for()


def kept(page: Page) -> None:
    """Keep the results, which begins the next step, and return to the list."""
    one(page, "calibration-keep").click()
    until(page, f"{NEWS} === 'Kept.'")
    one(page, "calibration-all").click()
    one(page, "calibration-start").wait_for()


def begun(page: Page, step: str) -> None:
    """Open a step of the calibration."""
    one(page, f"begin-{step}").click()
    one(page, "calibration-back").wait_for()


@contextmanager
def held(page: Page) -> Iterator[None]:
    """Hold a finger on the button; press Resume first if the car is stopped."""
    go_on(page)
    button = one(page, "calibration-hold")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    try:
        yield
    finally:
        page.mouse.up()


def phase(page: Page) -> str:
    """Return the phase of the running step."""
    return str(page.evaluate(STEP)["phase"])


def looked(page: Page) -> None:
    """Request the list; wait for it or for its error, with the previous one removed."""
    page.evaluate("document.getElementById('doctor')?.remove()")
    if page.locator("#sheet").is_visible():
        page.locator("[data-close=sheet]").click()
    open_menu(page, "car")
    page.locator("#look-for-faults").click()
    until(page, f"!{SAYS}?.startsWith('The car is checking') && {SAYS} !== undefined", LONG_S)

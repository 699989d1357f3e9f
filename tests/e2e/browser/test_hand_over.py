"""Two people and one wheel: their names, a request, and the driver's answer."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from testkit.browsers.seat import at_the_wheel, holds, opened, probe, stands, until
from testkit.harness import SMALL, RunningBench, wait_for

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
PHONE = (
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Mobile Safari/537.36"
)


def name_of(page: Page) -> str:
    """Return the name that the page suggested to its user."""
    until(page, "Boolean(localStorage.getItem('fpvcar.name'))")
    return str(page.evaluate("localStorage.getItem('fpvcar.name')"))


def test_watcher_asks_and_the_driver_gives_or_refuses(
    page: Page, browser: Browser, bench: RunningBench, tmp_path: Path
) -> None:
    at_the_wheel(page, bench.url)
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, user_agent=PHONE
    )
    phone = opened(context.new_page(), bench.url)
    mia, ann = name_of(phone), name_of(page)
    assert (mia.endswith(" (phone)"), ann.endswith(" (computer)")) == (True, True)
    expect(phone.locator("#who")).to_have_text(f"{ann} drives")
    phone.screenshot(path=tmp_path / "first-entry.png")

    phone.locator("#intro-ok").click()
    page.bring_to_front()
    wheel = phone.locator("#wheel")
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")  # the wheel is free while its driver does not drive
        expect(wheel).to_have_text("Ask for the wheelAsk")
        wheel.dblclick()
        expect(wheel).to_be_disabled()
        expect(page.locator("#asking-says")).to_have_text(f"{mia} asks for the wheel")
        assert probe(page, "state.role") == "driver"
        expect(phone.locator("#asking-says")).to_have_text(f"You asked {ann} for the wheel.")
        page.screenshot(path=tmp_path / "asked.png")
        phone.screenshot(path=tmp_path / "asking.png")
        page.locator("#asking-give").focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert probe(page, "state.role") == "driver", "a slip while a driving key is down"
        page.locator("#asking-give").click()
        stands(watch)
        until(phone, "window.fpvcar.state.role === 'driver'")
        page.wait_for_timeout(300)
        assert not watch.now.driving, "the old driver's key moved the car"
    page.keyboard.up("ArrowUp")
    expect(page.locator("#who")).to_have_text(f"{mia} drives")
    assert probe(page, "state.role") == "watching"
    assert "took the wheel" not in page.locator("#card-title").inner_text(), "it was given"

    phone.locator("#gear").click()
    page.locator("#wheel").click()
    expect(phone.locator("#menu #asking-says")).to_have_text(f"{ann} asks for the wheel")
    until(page, "/Free in [0-9]+.s/.test(document.getElementById('asking-countdown').textContent)")
    phone.screenshot(path=tmp_path / "asked-phone.png")
    page.screenshot(path=tmp_path / "countdown.png")
    phone.locator("#asking-later").click()
    expect(page.locator("#asking-says")).to_have_text(f"{mia} keeps the wheel for now.")
    page.screenshot(path=tmp_path / "refused.png")
    expect(phone.locator("#asking-says")).to_have_text("")
    expect(page.locator("#wheel")).to_have_text("Take the wheelTake")
    page.locator("#wheel").click()
    until(page, "window.fpvcar.state.role === 'driver'")
    wait_for(lambda: f") asks {mia} for the wheel" in bench.log(), "no log line")
    context.close()

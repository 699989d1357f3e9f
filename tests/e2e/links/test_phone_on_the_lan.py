"""HOST=0.0.0.0 and a phone beside it: a browser in a network namespace of its own.

On plain http at an address a browser has no WebCodecs, so it uses Media Source Extensions. A phone
that has not entered the code only watches.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright
from testkit.browsers.chromium import SHELL
from testkit.browsers.phone import OFFERS, PLAIN, SECURE, drive_code, on_the_lan, take_wheel
from testkit.browsers.seat import grown_up, holds, opened, probe, stands, until, violations
from testkit.harness import RunningBench, wait_for
from testkit.network.lan import Lan

from fpvcar.config import profiles
from fpvcar.runtime import paths

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture(scope="module")
def phone_browser(
    tmp_path_factory: pytest.TempPathFactory, lan: Lan, playwright: Playwright
) -> Iterator[Browser]:
    """Chromium on the far host."""
    home = tmp_path_factory.mktemp("bin")
    with on_the_lan(lan, home, playwright=playwright, program=SHELL) as running:
        yield running


@pytest.fixture
def phone(phone_browser: Browser) -> Iterator[Page]:
    """A phone's page, not opened yet."""
    context = phone_browser.new_context(
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        ignore_https_errors=True,
    )
    yield context.new_page()
    context.close()


def code(bench: RunningBench) -> str:
    """Return the drive code that the bench printed."""
    assert f"Drive code: {drive_code(bench)}" in bench.log()
    return drive_code(bench)


def test_bench_prints_a_qr_code(lan_bench: RunningBench) -> None:
    assert "▀" in lan_bench.log() and "on the phone" in lan_bench.log()


def test_phone_watches_by_mse_enters_code_and_drives(
    phone: Page, lan: Lan, lan_bench: RunningBench
) -> None:
    opened(phone, f"http://{lan.near}:{lan_bench.port}/")
    assert phone.evaluate("typeof VideoDecoder") == "undefined"
    assert probe(phone, "video.path") == "mse"
    assert probe(phone, "state.role") == "watching"
    assert not probe(phone, "state.may_drive")
    take_wheel(phone, lan_bench)
    with lan_bench.watch() as watch:
        holds(phone, watch, "ArrowUp")
        phone.keyboard.up("ArrowUp")
        stands(watch)


def test_led_blinks_the_code_and_wrong_code_is_reported(
    phone: Page, lan: Lan, lan_bench: RunningBench
) -> None:
    (led,) = profiles.load(paths.HARDWARE / "bench.toml").lights.code
    opened(phone, f"http://{lan.near}:{lan_bench.port}/")
    phone.locator("#wheel").click()
    wait_for(lambda: lan_bench.soc.pin[led].duty() > 0.0, "the LED does not blink")
    phone.locator("#code").fill("000000" if code(lan_bench) != "000000" else "111111")
    phone.keyboard.press("Enter")
    until(phone, "document.body.innerText.includes('That is not the code')")
    assert "may only watch" not in phone.inner_text("body"), "the dialog says it"
    assert not probe(phone, "state.may_drive")


def test_https_is_offered_and_gives_the_phone_webcodecs(
    phone: Page, lan: Lan, lan_bench: RunningBench
) -> None:
    opened(phone, f"http://{lan.near}:{lan_bench.port}/")
    assert phone.evaluate(OFFERS) == PLAIN
    phone.locator("#intro-ok").click()  # the first visit's help comes first
    with phone.expect_navigation():
        phone.locator("#secure-go").click()
    assert phone.url == f"https://{lan.near}:{lan_bench.port + 1}/"
    until(phone, "window.fpvcar?.video.path === 'webcodecs'")
    assert phone.evaluate(OFFERS) == SECURE


def test_guest_drives_by_invitation_until_grown_up_ends_it(
    phone: Page, phone_browser: Browser, lan: Lan, lan_bench: RunningBench, tmp_path: Path
) -> None:
    page = phone_browser.new_page(viewport={"width": 1920, "height": 1080})
    opened(page, f"http://{lan.near}:{lan_bench.port}/")
    grown_up(page, lan_bench)
    page.locator("#invite").press("Enter")
    until(page, "document.activeElement.id === 'invite-length'")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    link = page.locator("#invite-link")
    link.wait_for()
    until(page, "document.getElementById('invite-qr').naturalWidth > 0")
    link.scroll_into_view_if_needed()
    assert violations(page) == []
    page.screenshot(path=tmp_path / "invitation.png")
    page.locator("[data-close=sheet]").click()
    with phone.expect_response("**/api/pass", timeout=60_000.0):  # the cookie for the next visit
        opened(phone, link.get_attribute("href") or "")
    until(phone, "window.fpvcar.state.may_drive")
    until(phone, "document.body.innerText.includes('You can drive until')")
    phone.screenshot(path=tmp_path / "guest.png")
    assert phone.evaluate("location.hash") == ""
    opened(phone, f"http://{lan.near}:{lan_bench.port}/")
    until(phone, "window.fpvcar.state.may_drive")
    row = page.locator("#who-may-drive li", has_text="until")
    row.locator("button").click()
    until(phone, "!window.fpvcar.state.may_drive")
    row.wait_for(state="detached")
    page.close()


def test_trust_page_explains_and_checks_the_authority(
    phone: Page, phone_browser: Browser, lan: Lan, lan_bench: RunningBench, tmp_path: Path
) -> None:
    """The phone accepts every certificate; the other page checks against the car's authority."""
    wide = phone_browser.new_page(viewport={"width": 1920, "height": 1080})
    for page, words in ((phone, "It works"), (wide, "Not yet")):
        page.goto(f"http://{lan.near}:{lan_bench.port}/trust")
        page.locator("#check").press("Enter")
        until(page, f"document.getElementById('verdict').innerText.includes('{words}')")
        assert page.locator("details[open]").count() == 1
        assert violations(page) == []
        page.screenshot(path=tmp_path / f"{words}.png".replace(" ", "-"))
    with wide.expect_download() as download:
        wide.locator("#download").click()
    root = (lan_bench.state / "root.crt").read_bytes()
    assert Path(download.value.path()).read_bytes() == root
    wide.close()

"""The station's page in a browser: list, storage, contact sheet, by hand and by key."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from fpvstation.disk import Folder
from fpvstation.store import Store
from tests.e2e.harness import free_port_from, wait_for
from tests.e2e.seat import until, violations
from tests.rigs.mcaps import McapFile
from tests.rigs.recordings import NAME, drive_messages
from tests.unit.fpvstation.test_store import put

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried]
SIZES = {"phone": (390, 844), "wide": (1920, 1080)}


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A station that has a drive of each of two cars of one name."""
    home = tmp_path_factory.mktemp("station")
    root, port = home / "store", free_port_from(8700)
    root.mkdir()
    store = Store(Folder(root))
    store.open("")
    made = McapFile(drive_messages()).to(home / "made.mcap").read_bytes()
    for car in ("Plague", "Plague-abc123"):
        put(store, NAME, made, car)
    config = home / "station.toml"
    config.write_text(f'[office]\ntarget = "{home}/office"\n')
    argv = [sys.executable, "-m", "fpvstation", "run", f"--store={root}",
            f"--port={port}", f"--config={config}"]  # fmt: skip
    env = {**os.environ, "XDG_STATE_HOME": str(home)}
    with (home / "log").open("wb") as log:
        running = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
    try:
        wait_for(lambda: "page" in (home / "log").read_text(), "no station", 30.0)
        yield f"http://localhost:{port}/"
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(20.0) == 0, (home / "log").read_text()


LOOKS: list[tuple[str, Any]] = [("phone", "dark"), ("wide", "light")]


@pytest.fixture
def page(browser: Browser, station: str, request: pytest.FixtureRequest
         ) -> Iterator[Page]:  # fmt: skip
    size, scheme = getattr(request, "param", LOOKS[1])
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme
    )
    made = context.new_page()
    made.goto(station)
    until(made, "window.recordings?.drives === 2", 30.0)
    yield made
    context.close()


def shot(page: Page, name: str) -> None:
    """Keeps a picture for people where PICTURES says."""
    if folder := os.environ.get("PICTURES"):
        size = page.viewport_size or {"width": 0}
        light = page.evaluate("matchMedia('(prefers-color-scheme: light)').matches")
        by = "light" if light else "dark"
        page.screenshot(path=Path(folder) / f"{name}-{size['width']}-{by}.png")


@pytest.mark.parametrize("page", LOOKS, indirect=True)
def test_it_is_good_to_look_at_and_to_hear(page: Page) -> None:
    until(page, "document.querySelectorAll('#list canvas[data-drawn]').length === 2")
    rows = page.locator("#list a").all_inner_texts()
    assert all("stored here, verified" in one for one in rows)
    assert any("Plague-abc123" in one for one in rows)
    (day,) = page.locator("#list h3").all_inner_texts()
    assert "21 November 2025" in day
    shot(page, "list")
    page.locator("#storage summary").click()
    until(
        page, "document.getElementById('storage-path').textContent.includes('2 sess')"
    )
    until(page, "document.querySelectorAll('#storage-offices li').length === 1", 20.0)
    shot(page, "storage")
    found = violations(page)
    page.locator("#storage summary").click()
    page.locator("#list a").first.click()
    until(page, "window.recordings.shown > 0", 20.0)
    shot(page, "drive")
    page.locator("#sheet-toggle").click()
    until(page, "document.querySelectorAll('#sheet button').length >= 4", 30.0)
    page.locator("#sheet").scroll_into_view_if_needed()
    shot(page, "sheet")
    found += violations(page)
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide and found == []


def test_by_keys_alone(page: Page) -> None:
    def focused() -> str:
        return str(page.evaluate("document.activeElement.id"))

    for _ in range(40):
        page.keyboard.press("Tab")
        if focused().startswith("drive "):
            break
    page.keyboard.press("Enter")
    until(page, "window.recordings.shown > 0", 20.0)
    page.locator("#sheet-toggle").focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#sheet button').length >= 4", 30.0)
    page.locator('#sheet button[tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    wanted = page.evaluate("Number(document.activeElement.dataset.at)")
    assert 1.5 < wanted < 3.0
    page.keyboard.press("Enter")
    until(page, f"Math.abs(window.recordings.timeS - {wanted}) < 0.1")


def test_words_are_searched_for_at_the_station(page: Page) -> None:
    page.locator("#search").fill("abc123")
    until(page, "window.recordings.drives === 1", 20.0)
    page.locator("#search").fill("nowhere")
    until(page, "window.recordings.drives === 0", 20.0)


def test_tables_are_downloaded(page: Page) -> None:
    page.locator("#list a").first.click()
    for kind in ("csv", "parquet"):
        with page.expect_download() as coming:
            page.locator(f"#export-{kind}").click()
        assert coming.value.suggested_filename.endswith(f"-{kind}.zip")
        until(page, "!document.getElementById('export-csv').disabled", 20.0)

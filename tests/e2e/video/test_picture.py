"""The picture's settings on the page: changed by a grown-up, live, by a restart, and kept."""

import pytest
from playwright.sync_api import Page

from tests.e2e.browser.seat import at_the_wheel, grown_up, open_menu, until, violations
from tests.e2e.harness import STRIP, RunningBench

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried]
OPTIONS = (STRIP,)
SET = "fetch('/api/picture').then((answer) => answer.json())"


def test_grown_up_sets_the_picture(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    open_menu(page, "picture")
    settings = page.get_by_test_id("picture-settings")
    settings.wait_for(state="attached")
    assert not settings.is_visible(), "a grown-up's"
    grown_up(page, bench)
    open_menu(page, "picture")
    settings.locator("summary").click()
    night = page.get_by_test_id("picture-night")
    night.wait_for(state="visible")
    assert not page.get_by_test_id("picture-exposure").is_visible(), "a Pi camera's"
    assert violations(page) == []
    night.check()
    until(page, f"(async () => (await {SET}).night)()")
    page.get_by_test_id("picture-size").select_option("320 × 240")
    until(page, f"(async () => (await {SET}).width === 320)()")
    until(page, "window.fpvcar.video.size?.[0] === 320", 30.0)
    kept = (bench.state / "kept.json").read_text()
    assert '"picture":{"width":320,"height":240,"night":true}' in kept

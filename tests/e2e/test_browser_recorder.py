"""The recorder on the page: seen, switched, the last minute kept, a moment marked."""

import pytest
from playwright.sync_api import Page, expect

from fpvcar.recordings import messages, reader
from tests.e2e.harness import STRIP, RunningBench, wait_for
from tests.e2e.recording import files
from tests.e2e.seat import at_the_wheel, grown_up, until, violations

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried]
OPTIONS = (STRIP,)


def texts(bench: RunningBench) -> list[str]:
    """Every event in every recording of the bench."""
    found = []
    for path in files(bench.state / "recordings"):
        with reader.read(path) as made:
            for one in made.messages([messages.EVENT, messages.MARK]):
                event = messages.decode(messages.EVENT, one.data)
                assert isinstance(event, messages.Event)
                found.append(event.text)
    return found


def test_a_driver_records_keeps_and_marks(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    dot = page.get_by_test_id("recording-dot")
    dot.wait_for(state="visible")  # it comes with the drawer, after the first screen
    assert dot.get_attribute("data-tone") == "on"
    page.locator("#link-chip").click()
    says = page.get_by_test_id("recorder-says")
    expect(says).to_contain_text("Recording for")
    expect(says).to_contain_text("room for")
    assert violations(page) == []
    page.get_by_test_id("mark").fill("it slipped")
    page.get_by_test_id("mark").press("Enter")
    page.get_by_text("Marked.").wait_for()
    assert not page.get_by_test_id("record-on-off").is_visible(), "a grown-up's"
    grown_up(page, bench)
    page.get_by_test_id("record-on-off").click()
    until(page, "window.fpvcar.state.recording.on === false")
    assert dot.get_attribute("data-tone") == "off"
    expect(says).to_contain_text("Not recording; the last minute can still be kept")
    page.get_by_test_id("record-keep").click()
    page.get_by_text("The last minute is kept.").wait_for()
    page.get_by_test_id("record-on-off").click()
    until(page, "window.fpvcar.state.recording.on")
    wait_for(lambda: "somebody: it slipped" in texts(bench), f"{texts(bench)}", 5.0)
    assert {path.name for path in (bench.state / "recordings").glob("*.keep")}

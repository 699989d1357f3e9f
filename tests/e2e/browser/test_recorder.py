"""The recorder on the page: its state, switching it, keeping the last minute, marking a moment,
and saving the picture."""

import re

import pytest
from playwright.sync_api import Page, expect
from testkit.browsers.seat import (
    GAMEPAD,
    at_the_wheel,
    grown_up,
    open_menu,
    opened,
    probe,
    until,
    violations,
)
from testkit.harness import SMALL, RunningBench, wait_for
from testkit.recorder.card import files

from fpvcar.recordings import codec, messages, reader

pytestmark = pytest.mark.e2e
OPTIONS = SMALL


def texts(bench: RunningBench) -> list[str]:
    """Return every event in every recording of the bench."""
    found = []
    for path in files(bench.state / "recordings"):
        with reader.read(path) as made:
            for one in made.messages([messages.EVENT, messages.MARK]):
                event = codec.decode(messages.EVENT, one.data)
                assert isinstance(event, messages.Event)
                found.append(event.text)
    return found


def test_recorder_shows_state_marks_and_keeps_last_minute(page: Page, bench: RunningBench) -> None:
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
    open_menu(page, "picture")
    page.get_by_test_id("record-on-off").click()
    until(page, "window.fpvcar.state.recording.on === false")
    assert dot.get_attribute("data-tone") == "off"
    expect(says).to_contain_text("Not recording; you can still save the last minute")
    page.get_by_test_id("record-keep").click()
    page.get_by_text("The last minute is saved.").wait_for()
    page.get_by_test_id("record-on-off").click()
    until(page, "window.fpvcar.state.recording.on")
    mark = f"{name_of(page)}: it slipped"
    wait_for(lambda: mark in texts(bench), f"{texts(bench)}", 5.0)
    assert {path.name for path in (bench.state / "recordings").glob("*.keep")}


@pytest.mark.parametrize("path", ["webcodecs", "mse"])
def test_shown_picture_is_saved_by_button_and_key(
    page: Page, bench: RunningBench, path: str
) -> None:
    opened(page, f"{bench.url}?path={path}")
    push = page.locator("#snapshot")
    push.wait_for(state="visible")  # it comes with the drawer
    until(page, f"window.fpvcar.video.path === '{path}' && window.fpvcar.video.shown")
    for key in (False, True):
        with page.expect_download() as coming:
            page.keyboard.press("p") if key else push.click()
        name = coming.value.suggested_filename
        assert re.fullmatch(r"\w+-\d{8}T\d{6}Z\.jpg", name), name
        assert size_of(coming.value.path().read_bytes()) == probe(page, "video.size")


def test_single_push_marks_the_moment(page: Page, bench: RunningBench) -> None:
    page.add_init_script(GAMEPAD)
    at_the_wheel(page, bench.url)
    push = page.locator("#mark-now")
    push.wait_for(state="visible")
    before = texts(bench).count(name_of(page))
    push.click()
    page.get_by_text("Marked.").wait_for()
    page.keyboard.press("m")
    page.evaluate("plug()")
    for value in (1, 0):
        page.evaluate(f"pad.buttons[3] = {{pressed: {value} > 0, value: {value}}}")
        page.wait_for_timeout(100)
    name = name_of(page)
    wait_for(lambda: texts(bench).count(name) == before + 3, f"{texts(bench)}", 8.0)


def name_of(page: Page) -> str:
    """Return the name that the page suggested to its user."""
    name = page.evaluate("localStorage.getItem('fpvcar.name')")
    assert isinstance(name, str) and name.endswith(" (computer)")
    return name


def size_of(jpeg: bytes) -> list[int]:
    """Return width and height, from the start-of-frame segment (ITU-T T.81, B.2.2)."""
    assert jpeg[:2] == b"\xff\xd8"
    at = 2
    while jpeg[at + 1] not in (0xC0, 0xC2):
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4])
    height, width = (int.from_bytes(jpeg[at + n : at + n + 2]) for n in (5, 7))
    return [width, height]

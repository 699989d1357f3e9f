"""The page makes a film and a zip, begins at the first picture, and shows plots."""

import base64
import zipfile
from collections.abc import Iterator
from pathlib import Path

import av
import pytest
from aiohttp import web
from playwright.sync_api import Browser, FloatRect, Page, Route
from testkit import mcaps
from testkit.browsers import seat
from testkit.browsers.played_answers import refuse
from testkit.browsers.seat import until
from testkit.mcaps import BEGAN_NS, McapFile
from testkit.recorder.card import replay_page

from fpvcar.library.api.exports import EXPORTS_BUSY
from fpvcar.runtime.units import SECOND_NS

pytestmark = pytest.mark.e2e
BLIND_S, SECONDS = 20, 40
"""The camera came that long after the recorder."""
SHARE_SHEET = """
navigator.canShare = ({files}) => files.every(({type}) => type === 'video/mp4');
navigator.share = async ({files: [film]}) => {
  window.offered = (window.offered ?? 0) + 1;
  if (window.offered === 1) throw new DOMException('the push was too long ago', 'NotAllowedError');
  window.film = film;
};
"""
"""Share sheet as on a phone: a browser without a screen has none."""
FILM = """window.film.arrayBuffer().then((data) => {
  let text = '';
  for (const byte of new Uint8Array(data)) text += String.fromCharCode(byte);
  return btoa(text);
})"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`fpvcar replay --page` with a recording of two files; the second is damaged."""
    folder = tmp_path_factory.mktemp("recording")
    film = list(mcaps.pictures(SECONDS - BLIND_S, BEGAN_NS + BLIND_S * SECOND_NS))
    senses = list(mcaps.measured(SECONDS))
    halves = [
        [one for one in [*film, *senses] if (one.log_ns < BEGAN_NS + 30e9) == first]
        for first in (True, False)
    ]
    numbers = [sum(one.topic == "/camera" for one in half) for half in halves]
    McapFile(halves[0]).to(folder / "Plague-20251121T200000Z-0001.mcap")
    second = McapFile(halves[1], segment=2, sequence_from=numbers[0])
    name = "Plague-20251121T200000Z-0002.mcap"
    mcaps.flipped(folder / name, second.chunks(), 5)
    with replay_page(folder) as address:
        yield address


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """A drive that was opened from the list."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    made.goto(url)
    until(made, "window.recordings?.drives >= 1")
    made.locator("#list a").first.click()
    until(made, "window.recordings.lines.length >= 3")
    made.locator(".plot[data-group=battery] .times span").nth(2).wait_for()
    yield made
    context.close()


def test_drive_opens_at_its_first_picture(page: Page) -> None:
    until(page, "window.recordings.shown > 0")
    assert BLIND_S <= float(page.evaluate("window.recordings.timeS")) < BLIND_S + 1
    assert page.locator("#stage-says").is_hidden()
    page.locator("#scrub").fill("3")
    until(page, "!document.getElementById('stage-says').hidden")
    page.keyboard.press("k")  # plays from the first picture on
    until(page, f"window.recordings.timeS > {BLIND_S}")


def test_first_picture_comes_once_the_car_is_less_busy(browser: Browser, url: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/thumbnail?from=*", lambda route: route.fulfill(status=429))
    page.goto(url)
    page.locator("#list a").first.click()
    until(
        page,
        "document.getElementById('stage-says')?.textContent === 'No picture was recorded here.'",
    )
    page.unroute("**/thumbnail?from=*")
    until(page, "window.recordings.shown > 0")
    context.close()


def test_page_exports_a_film_and_names_missing_bytes(page: Page, tmp_path: Path) -> None:
    assert "fpvcar" not in page.locator("#viewer").inner_text(), "a shell command"
    with page.expect_download() as waiting:
        page.locator("#export-film").click()
    download = waiting.value
    assert download.suggested_filename == (
        "Plague-20251121T200000Z-incomplete.mp4"  # it lacks pictures
    )
    film = tmp_path / "film.mp4"
    download.save_as(film)
    with av.open(str(film)) as found:
        assert sum(1 for _ in found.decode(video=0)) == 570
    until(page, "document.getElementById('export-says').textContent.includes('sent')")
    assert "bytes are missing" in page.locator("#export-missing").inner_text()
    assert page.locator("#export-film").is_enabled()
    assert seat.violations(page) == []


def test_page_exports_the_whole_drive_as_zip(page: Page, tmp_path: Path) -> None:
    with page.expect_download() as waiting:
        page.locator("#export-zip").click()
    path = tmp_path / "drive.zip"
    waiting.value.save_as(path)
    with zipfile.ZipFile(path) as made:
        assert made.testzip() is None
        assert "bytes are missing" in made.read("README.txt").decode()
        assert sum(name.endswith(".mcap") for name in made.namelist()) == 2


def test_film_goes_to_the_share_sheet_of_a_phone(page: Page, tmp_path: Path) -> None:
    page.add_init_script(SHARE_SHEET)
    page.reload()
    button = page.locator("#export-share")
    button.click()
    until(page, "window.offered === 1")
    until(page, "document.getElementById('export-share').textContent === 'Share now'")
    assert "press “Share now”" in page.locator("#export-says").inner_text()
    button.click()
    until(page, "window.film !== undefined")
    until(page, "document.getElementById('export-share').textContent === 'Share the film'")
    film = tmp_path / page.evaluate("window.film.name")
    film.write_bytes(base64.b64decode(page.evaluate(FILM)))
    with av.open(str(film)) as found:
        assert film.suffix == ".mp4" and sum(1 for _ in found.decode(video=0)) == 570


def test_failed_export_is_reported(page: Page) -> None:
    page.route(
        "**/api/recordings/exports",
        lambda route: refuse(route, web.HTTPTooManyRequests, EXPORTS_BUSY(most=2)),
    )
    page.locator("#export-film").click()
    page.get_by_text("That did not work: 2 exports are under way").wait_for()
    assert page.locator("#export-zip").is_enabled()


def test_export_shows_progress_and_can_be_cancelled(page: Page) -> None:
    """The answers are simulated: here everything is sent at once."""
    done, asked = [0], list[str]()
    film = {
        "id": "x",
        "kind": "film",
        "name": "film.mp4",
        "state": "sending",
        "total": 100_000_000,
        "exact": True,
        "missing": [],
        "fault": "",
    }

    def answer(route: Route) -> None:
        asked.append(route.request.method)
        done[0] += 1_000_000
        route.fulfill(status=200, json={**film, "done": done[0]})

    page.route("**/api/recordings/exports**", answer)
    page.route("**/api/recordings/exports/*", answer)
    page.locator("#export-film").click()
    until(
        page,
        "/of 100.MB, .*.MB.s, .* to go/.test("
        "document.getElementById('export-figures').textContent)",
    )
    assert page.locator("#export-film").is_disabled()
    share = page.evaluate("document.getElementById('export-bar').position")
    assert 0 < share < 0.5
    assert seat.violations(page) == []
    page.locator("#export-cancel").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Cancelled. The downloaded file is incomplete.").wait_for()
    until(page, "document.getElementById('export-bar').hidden")
    # A progress request may be under way beside.
    assert asked[0] == "POST" and asked.count("DELETE") == 1
    assert page.locator("#export-film").is_enabled()


def stretch(page: Page) -> tuple[float, float]:
    """Return the stretch of the drive that the plots show."""
    from_s, to_s = page.evaluate("window.recordings.view")
    return from_s, to_s


def field_box(page: Page) -> FloatRect:
    """Return the box of a plot, scrolled into view."""
    field = page.locator(".plot[data-group=battery] .field")
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    return box


def test_plots_show_less_and_all_by_keys_and_buttons(page: Page) -> None:
    whole = stretch(page)
    assert whole[0] == 0.0 and whole[1] == pytest.approx(SECONDS, abs=0.5)
    labels = page.locator(".plot[data-group=battery] .times span")
    assert labels.count() >= 3 and labels.first.inner_text() == "0:00"
    page.locator("#scrub").fill("30")
    until(page, "Math.abs(window.recordings.timeS - 30) < 1")
    page.locator("h2#viewer-title").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    from_s, to_s = stretch(page)
    assert to_s - from_s == pytest.approx(whole[1] / 4) and from_s < 30 < to_s
    assert "0:2" in page.locator("#zoom-says").inner_text()
    until(page, "document.querySelector('.times span').textContent !== '0:00'")
    page.keyboard.press("-")
    assert stretch(page)[1] - stretch(page)[0] == pytest.approx(whole[1] / 2)
    page.locator("#zoom-all").click()
    assert stretch(page) == whole and page.locator("#zoom-all").is_hidden()
    page.locator("#zoom-in").click()
    page.keyboard.press("0")
    assert stretch(page) == whole
    assert seat.violations(page) == []


def test_plots_show_dragged_range_and_pointer_values(page: Page) -> None:
    box = field_box(page)
    whole_s, middle = stretch(page)[1], box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 4, middle)
    value = page.locator(".plot[data-group=latency] .legend b").first
    assert value.inner_text() == "13\u00a0ms"
    assert page.locator("#plots").get_attribute("data-hover") != ""
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle, steps=5)
    page.mouse.up()
    from_s, to_s = stretch(page)
    assert from_s == pytest.approx(whole_s / 4, abs=0.5)
    assert to_s == pytest.approx(whole_s / 2, abs=0.5)
    page.mouse.click(box["x"] + box["width"] / 2, middle)  # a push goes there
    until(page, f"Math.abs(window.recordings.timeS - {(from_s + to_s) / 2}) < 0.2")
    page.wait_for_timeout(500)  # otherwise it would be a double push
    page.mouse.wheel(0, -300)
    until(page, f"window.recordings.view[1] - window.recordings.view[0] < {(to_s - from_s) * 0.6}")
    page.mouse.dblclick(box["x"] + box["width"] / 2, middle)
    until(page, f"window.recordings.view[1] === {whole_s}")
    page.locator("#stage").hover()
    assert page.locator("#plots").get_attribute("data-hover") == ""


def test_two_fingers_zoom_plots(page: Page) -> None:
    box = field_box(page)
    left, top, width = box["x"], box["y"] + 20, box["width"]
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *shares: float) -> None:
        points = [{"x": left + width * one, "y": top} for one in shares]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.45, 0.55)
    for apart in (0.1, 0.2, 0.3, 0.4):
        touch("touchMove", 0.5 - apart, 0.5 + apart)
    touch("touchEnd")
    from_s, to_s = stretch(page)
    assert to_s - from_s == pytest.approx(SECONDS / 8, rel=0.2)
    assert (from_s + to_s) / 2 == pytest.approx(SECONDS / 2, abs=1.0)

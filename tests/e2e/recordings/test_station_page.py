"""The station's page in a browser: list, storage, contact sheet, by hand and by key."""

import contextlib
import os
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from playwright.sync_api import Browser, Page, Route
from testkit import mcaps
from testkit.base_station.running import serving
from testkit.base_station.station import car_application, stations_of
from testkit.base_station.stored import put
from testkit.browsers.seat import until, violations
from testkit.harness import beside, wait_for
from testkit.mcaps import McapFile
from testkit.recordings import NAME, drive_messages

from fpvcar.http.addresses import is_loopback, lan_address
from fpvcar.wire.station import Pairing
from fpvstation.fetch.cars import Cars
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from fpvstation.web import password

pytestmark = pytest.mark.e2e


WIDE_S = 130
"""Length of the second car's drive, in wide pictures: three rows of its sheet."""
FLAWS = """() => {
  const box = (element) => element.getBoundingClientRect();
  const flaws = [], boxes = [], labels = new Set();
  for (const button of document.querySelectorAll('#sheet button')) {
    const canvas = button.querySelector('canvas'), label = button.textContent, mine = box(button);
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    if (labels.has(label)) flaws.push(`${label} twice`);
    if (!data.some((level, index) => index % 4 < 3 && level > 40)) flaws.push(`${label} black`);
    if (Math.abs(canvas.width / canvas.height - 16 / 9) > .03) flaws.push(`${label} squeezed`);
    const inner = box(canvas), row = box(button.parentElement);
    const cropped = inner.bottom > mine.bottom + 1 || mine.bottom > row.bottom + 1;
    if (cropped) flaws.push(`${label} cropped`);
    const overlaps = boxes.some((other) => other.left < mine.right - 1
      && mine.left < other.right - 1 && other.top < mine.bottom - 1 && mine.top < other.bottom - 1);
    if (overlaps) flaws.push(`${label} overlaps`);
    labels.add(label);
    boxes.push(mine);
  }
  return flaws;
}"""


def time_in(minutes: int) -> str:
    """Return the local time of day some minutes from now."""
    return time.strftime("%H:%M", time.localtime(time.time() + minutes * 60))


OPENS = time_in(120)
"""Time when the window of the second remote opens, for a minute."""
SIZES = {"phone": (390, 844), "wide": (1920, 1080)}


@contextlib.contextmanager
def paired(home: Path, made: bytes) -> Iterator[None]:
    """Run a car that still has its recording and is paired with the station."""
    folder, state = home / "car", home / "fpvstation"
    folder.mkdir()
    (folder / NAME).write_bytes(made)
    stations = stations_of(home)
    known = stations.pair("workshop", "127.0.0.1", time.time())
    runner = web.AppRunner(car_application(folder, stations))
    with beside() as do:
        try:
            do(runner.setup())
            do(web.TCPSite(runner, "127.0.0.1", 0).start())
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            state.mkdir(mode=0o700, exist_ok=True)
            key = stations.key_of(known.id).hex()
            Cars(state).add(Pairing("Plague", stations.car, known.id, key), url, "")
            yield
        finally:
            do(runner.cleanup())


@contextlib.contextmanager
def running(home: Path, *more: str) -> Iterator[int]:
    """Run a station that has a drive of each of two cars of one name; yield its port."""
    root = home / "store"
    root.mkdir()
    store = Store(Folder(root))
    store.open("")
    made = McapFile(drive_messages()).to(home / "made.mcap").read_bytes()
    put(store, NAME, made, "Plague")
    film = mcaps.pictures(WIDE_S, gop=mcaps.FPS, width=320, height=180, noise=8)
    wide = McapFile([*film, *mcaps.measured(4.0)]).to(home / "wide.mcap").read_bytes()
    put(store, NAME, wide, "Plague-abc123")
    config = home / "station.toml"
    far = f'second = "attic:/srv/drives"\nwindow = "{OPENS}-{time_in(121)}"\n'
    config.write_text(f'[replicas]\ntarget = "{home}/office"\n{far}')
    with paired(home, made), serving(home, *more) as port:
        yield port


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("station")) as port:
        url = f"http://localhost:{port}/"

        def on_the_car() -> bool:
            with urllib.request.urlopen(f"{url}api/recordings/drives") as answer:
                return b'"place":"car"' in answer.read()

        wait_for(on_the_car, "the car was not asked", 60.0)
        yield url


LOOKS: list[tuple[str, Any]] = [("phone", "dark"), ("wide", "light")]


@pytest.fixture
def page(browser: Browser, station: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    size, scheme = getattr(request, "param", LOOKS[1])
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    made = context.new_page()
    made.goto(station)
    until(made, "window.recordings?.drives === 2", 30.0)
    yield made
    context.close()


def shot(page: Page, name: str) -> None:
    """Keep a picture for people where PICTURES says."""
    if folder := os.environ.get("PICTURES"):
        size = page.viewport_size or {"width": 0}
        light = page.evaluate("matchMedia('(prefers-color-scheme: light)').matches")
        by = "light" if light else "dark"
        page.screenshot(path=Path(folder) / f"{name}-{size['width']}-{by}.png")


@pytest.mark.parametrize("page", LOOKS, indirect=True)
def test_list_storage_and_sheet_are_shown_and_pass_axe(page: Page) -> None:
    until(page, "document.querySelectorAll('#list canvas[data-drawn]').length === 2")
    rows = page.locator("#list a").all_inner_texts()
    assert all("stored here, verified" in one for one in rows)
    assert any("Plague-abc123" in one for one in rows)
    assert sum("on the car, verified" in one for one in rows) == 1
    (day,) = page.locator("#list h3").all_inner_texts()
    assert "November 21, 2025" in day
    shot(page, "list")
    page.locator("#storage summary").click()
    until(page, "document.getElementById('storage-path').textContent.includes('2 sess')")
    until(page, "document.querySelectorAll('#storage-remotes li').length === 2")
    says = "document.querySelectorAll('#storage-remotes li span')[2].textContent"
    until(page, f"{says}.startsWith('waits until {OPENS}: 0 of 2 sessions copied, ')")
    until(page, "document.querySelectorAll('#storage-cars li').length === 1")
    shot(page, "storage")
    found = violations(page)
    page.locator("#storage summary").click()
    page.locator("#list a").first.click()
    until(page, "window.recordings.shown > 0")
    shot(page, "drive")
    page.locator("#sheet-toggle").click()
    until(page, "document.querySelectorAll('#sheet button').length >= 4", 30.0)
    page.locator("#sheet").scroll_into_view_if_needed()
    shot(page, "sheet")
    found += violations(page)
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide and found == []


def test_sheet_has_each_picture_once_whole_and_in_its_shape(page: Page) -> None:
    page.locator("#search").fill("abc123")
    until(page, "window.recordings.drives === 1")
    page.locator("#list a").first.click()
    until(page, "window.recordings.shown > 0")
    page.locator("#sheet-toggle").click()
    sheet, count = page.locator("#sheet"), "document.querySelectorAll('#sheet button').length"
    until(page, f"{count} > 0", 30.0)
    for y in (100_000, 0, 100_000, 0):  # rows go out of sight while they are filled
        sheet.evaluate(f"(sheet) => sheet.scrollTo(0, {y})")
        page.wait_for_timeout(150)
    until(page, "document.querySelectorAll('.sheet-minute')[0].childElementCount === 60", 30.0)
    sheet.evaluate(
        "(sheet) => sheet.scrollTo(0, document.querySelector('.sheet-minute').offsetHeight)"
    )
    until(page, "document.querySelectorAll('.sheet-minute')[1].childElementCount === 60", 30.0)
    shot(page, "sheet-wide")
    assert page.evaluate(FLAWS) == []


def test_station_page_works_by_keys_alone(page: Page) -> None:
    def focused() -> str:
        return str(page.evaluate("document.activeElement.id"))

    for _ in range(40):
        page.keyboard.press("Tab")
        if focused().startswith("drive "):
            break
    page.keyboard.press("Enter")
    until(page, "window.recordings.shown > 0")
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


def test_search_by_words_runs_at_the_station(page: Page) -> None:
    page.locator("#search").fill("abc123")
    until(page, "window.recordings.drives === 1")
    page.locator("#search").fill("nowhere")
    until(page, "window.recordings.drives === 0")


def test_empty_station_says_no_drive_has_come_home(page: Page) -> None:
    def empty(route: Route) -> None:
        listing = route.fetch().json()
        route.fulfill(json={**listing, "drives": [], "copies": {}})

    page.route("**/api/recordings/drives?*", empty)
    page.reload()
    page.get_by_text("No drives yet.").wait_for()


def test_tables_are_downloaded(page: Page) -> None:
    page.locator("#list a").first.click()
    for kind in ("csv", "parquet"):
        with page.expect_download() as coming:
            page.locator(f"#export-{kind}").click()
        assert coming.value.suggested_filename.endswith(f"-{kind}.zip")
        until(page, "!document.getElementById('export-csv').disabled")


PASSWORD = "open sesame, now"


def test_other_machine_enters_password_sees_and_removes(browser: Browser, tmp_path: Path) -> None:
    host = lan_address()
    if is_loopback(host):
        pytest.skip("this machine has no address but its own")
    (tmp_path / "fpvstation").mkdir(mode=0o700)
    password.save(tmp_path / "fpvstation", PASSWORD)
    with running(tmp_path, "--host=0.0.0.0") as port:
        page = browser.new_page(viewport={"width": 390, "height": 844}, ignore_https_errors=True)
        page.goto(f"http://{host}:{port}/")
        assert page.url == f"https://{host}:{port + 1}/", "it was sent to https"
        page.get_by_label("Station password").first.wait_for()
        shot(page, "password")
        assert violations(page) == []
        page.locator("#code").fill("open sesame")
        page.keyboard.press("Enter")
        until(page, "document.getElementById('unlock-fault').textContent !== ''")
        page.locator("#code").fill(PASSWORD)
        page.keyboard.press("Enter")
        until(page, "window.recordings?.drives === 2", 30.0)
        page.locator("#list a").first.click()
        page.locator("#rerun-copy").click()
        assert page.locator("#rerun-copy").inner_text() == "Copied"
        page.locator("#back").click()
        page.locator("#list button").first.click()
        page.locator("#edit-remove").click()
        says = page.locator("#edit-sure-says").inner_text()
        assert "moves to the trash" in says and "30 days" in says
        shot(page, "trash")
        page.locator("#edit-delete").click()
        until(page, "window.recordings.drives === 1")
        page.close()
    assert len(list((tmp_path / "store").glob(".trash/*/*/*/*/*.mcap"))) == 1

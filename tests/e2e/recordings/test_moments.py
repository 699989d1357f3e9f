"""Moments on the station's page: found by conditions, opened, saved, and plotted by week."""

import csv
import json
import os
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, Route
from testkit.base_station.queries import sample_rows, stop_rows
from testkit.base_station.running import serving
from testkit.base_station.stored import put
from testkit.browsers.played_answers import refuse
from testkit.browsers.seat import until
from testkit.harness import wait_for
from testkit.mcaps import BEGAN_NS, Drive, Logged, McapFile, logged, pictures

from fpvcar.drive.gate import Cause, Hold, Latches
from fpvcar.recordings import messages, names
from fpvcar.recordings.messages import Latency, Reading, Turn
from fpvcar.runtime.texts import VERBATIM
from fpvcar.runtime.units import SECOND_NS
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from fpvstation.web.query_api import SEARCHES_BUSY
from tests.e2e.recordings.test_archive_page import looks

pytestmark = pytest.mark.e2e
WEEKS, WEEK_S = 5, 7 * 86_400
SECONDS, FILM_S = 70.0, 10.0
WALLS = {3.0: 0.6, 6.5: 0.3}
"""Times at which a wall comes near for 1.2 s in each drive, and the throttle then."""
STOPS = {8.0: Cause.BLIND, 9.0: Cause.ESTOP}
"""Stops of each drive, of half a second."""
COUNT = "document.querySelectorAll('#moments-list li').length"
SAYS = "document.getElementById('moments-says').textContent"


def within(at_s: float, times: Iterable[float], seconds: float) -> float | None:
    """Return the time that began less than so many seconds before `at_s`."""
    return next((time_s for time_s in times if 0.0 <= at_s - time_s < seconds), None)


def drive_of(week: int) -> list[Logged]:
    """Return a drive of a week, with an older battery than the week before."""
    began_s = week * WEEK_S
    made = list(pictures(FILM_S, BEGAN_NS + began_s * SECOND_NS))

    def add(at_s: float, topic: str, message: messages.Message) -> None:
        made.append(logged(topic, began_s + at_s, message))

    add(0.0, messages.DRIVER, Turn("Ann", "Ann takes the wheel"))
    add(5.0, messages.DRIVER, Turn("Bob", "Bob takes the wheel"))
    step, volts = Drive(week).go(0.2)[0], 7.4 - week / 10
    for tick in range(round(SECONDS * 20)):
        at_s = tick / 20
        wall_s, stop_s = within(at_s, WALLS, 1.2), within(at_s, STOPS, 0.5)
        add(at_s, "/range/front", Reading(0.0, 0.2 + tick % 3 / 100 if wall_s else 1.5))
        if stop_s is None:
            throttle = WALLS[wall_s] if wall_s else 0.55
            step = replace(step, throttle=throttle, reason="driving", after=Latches(None))
        else:
            latches = Latches(None, Hold(STOPS[stop_s]))
            step = replace(step, throttle=0.0, reason="stopped", after=latches)
        add(at_s, messages.STEP, replace(step, now_ns=round(at_s * SECOND_NS), volts=volts))
        if tick % 20 == 0:
            age_ms = 60.0 + 10 * week + tick % 70
            add(at_s, messages.LATENCY, Latency("Ann", True, "webcodecs", age_ms, 12.0))
    return made


class Near(NamedTuple):
    """Time in which the front range was below 0.3 m, from a plain scan of a drive."""

    car: str
    driver: str
    start_us: int
    seconds: float
    front_m: float


class World(NamedTuple):
    """Station with a drive a week, alternately of two cars."""

    url: str
    walls: list[Near]
    """The moments, the newest first."""
    files: list[Path]


def near_wall(path: Path) -> Iterator[Near]:
    """Yield the times near a wall, from a plain scan of a drive."""
    rows = [row for row in sample_rows([path]) if row["front_m"] and row["front_m"] < 0.3]
    runs: list[list[dict[str, Any]]] = []
    for row in rows:
        if not runs or row["time_us"] - runs[-1][-1]["time_us"] > 2_000_000:
            runs.append([])
        runs[-1].append(row)
    for run in runs:
        began_us, ended_us = run[0]["time_us"], run[-1]["time_us"]
        least = min(row["front_m"] for row in run)
        seconds, car = (ended_us - began_us) / 1e6, path.name.partition("-")[0]
        yield Near(car, run[0]["driver"], began_us, seconds, least)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("moments")
    (home / "store").mkdir()
    (home / "station.toml").touch()
    store = Store(Folder(home / "store"))
    store.open("")
    for week in range(WEEKS):
        car = ("Plague", "Arrow")[week % 2]
        recording = names.recording_name(car, BEGAN_NS + week * WEEK_S * SECOND_NS)
        file = McapFile(drive_of(week), recording=recording)
        put(store, names.file_name(recording, 1), b"".join(file.chunks()), car)
    for sums in (home / "store").rglob("SHA256SUMS"):
        os.utime(sums, (time.time() - 3600.0,) * 2)  # settled: its sidecar is written at once
    files = sorted((home / "store").glob("*/*/*/*.mcap"))
    walls = [near for path in files for near in near_wall(path)]
    assert len(walls) == WEEKS * len(WALLS)
    with serving(home) as port:
        url = f"http://localhost:{port}/"

        def indexed() -> bool:
            with urllib.request.urlopen(f"{url}api/moments?driver=Ann") as answer:
                return len(json.load(answer)["moments"]) == WEEKS

        wait_for(indexed, "no sidecars", 120.0, 0.5)
        yield World(url, sorted(walls, key=lambda near: -near.start_us), files)


@pytest.fixture
def page(browser: Browser, world: World) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", timezone_id="UTC"
    )
    made = context.new_page()
    made.goto(world.url)
    until(made, f"window.recordings?.drives === {WEEKS}", 30.0)
    until(made, "document.querySelectorAll('#moments-driver option').length === 3")
    made.locator("#moments summary").click()
    yield made
    context.close()


def search(page: Page, count: int, **conditions: str) -> None:
    """Search by conditions, named as in the form; wait for so many moments."""
    for name, value in conditions.items():
        field = page.locator(f"#moments-form [name={name}]")
        if name in ("stop", "driver"):
            field.select_option(value)
        else:
            field.fill(value)
    page.locator("#moments-find").click()
    until(page, f"{COUNT} === {count} && !document.getElementById('moments-find').disabled", 30.0)


def test_search_by_front_range_finds_each_wall_and_opens_a_second_before(
    page: Page, world: World
) -> None:
    looks(page, "moments-form")
    search(page, len(world.walls), front_below_m="0.3")
    assert page.evaluate(SAYS) == "10 moments"
    rows = page.locator("#moments-list li")
    box = rows.first.bounding_box()
    assert box and box["y"] < 844.0, "results are in sight"
    texts = [text.replace("\u00a0", " ") for text in rows.all_inner_texts()]
    for row, near in zip(texts, world.walls, strict=True):
        when = time.strftime("%H:%M:%S", time.gmtime(near.start_us / 1e6))
        assert f"{near.car} · {near.driver} · {near.seconds:.1f} s" in row
        assert f"front {near.front_m:.2f} m" in row
        assert when[3:] in row, row
    rows.nth(4).scroll_into_view_if_needed()
    until(page, "document.querySelectorAll('#moments-list canvas[data-drawn]').length > 4")
    looks(page, "moments")
    for number, wall_s in enumerate(sorted(WALLS, reverse=True)):
        rows.locator("a").nth(number).click()
        until(page, "window.recordings.shownS !== null")
        near = world.walls[number]
        began_us = min(row["time_us"] for row in sample_rows(world.files[-1:]))
        assert near.start_us - began_us == pytest.approx(wall_s * 1e6, abs=0.2e6)
        opened_s = page.evaluate("window.recordings.timeS")
        assert opened_s == pytest.approx(wall_s - 1.0, abs=0.2)
        until(page, f"Math.abs(window.recordings.shownS - {opened_s}) < 0.2")
        looks(page, "moment-open")
        page.locator("#back").click()
        until(page, f"document.activeElement.href?.endsWith('&at={opened_s:.1f}')")
    page.set_viewport_size({"width": 1440, "height": 900})
    rows.locator("a").nth(0).click()
    until(page, "Math.abs(window.recordings.timeS - 5.5) < 0.2")
    rows.locator("a").nth(1).click()
    until(page, "Math.abs(window.recordings.timeS - 2.0) < 0.2")
    assert rows.nth(1).locator("a[aria-current]").is_visible()
    box = rows.nth(1).bounding_box()
    assert box and 0.0 <= box["y"] <= 900.0 - box["height"], "beside its drive"
    page.locator("#next").click()
    page.locator("#next").click()
    rows.locator("a").nth(1).click()
    until(page, f"Math.abs(window.recordings.timeS - {opened_s}) < 0.01")


def test_conditions_hold_together_and_csv_has_the_same_moments(page: Page, world: World) -> None:
    month = utc(world.walls[0])[:7]
    fast = [near for near in world.walls if near.driver == "Ann" and utc(near)[:7] == month]
    assert 1 < len(fast) < WEEKS
    search(page, len(fast), front_below_m="0.3", throttle_above_share="50", month=month)
    with page.expect_download() as coming:
        page.locator("#moments-csv").click()
    with Path(coming.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert coming.value.suggested_filename == "moments.csv"
    for row, near in zip(rows, fast, strict=True):
        assert row["time"] == utc(near) and row["session"].startswith(f"{near.car}/")
        assert row["driver"] == "Ann" and row["cause"] == row["battery_v"] == ""
        assert float(row["seconds"]) == pytest.approx(near.seconds)
        assert float(row["front_m"]) == pytest.approx(near.front_m)
        assert float(row["throttle_share"]) == 0.6
    page.goto(rows[-1]["link"])
    until(page, "window.recordings?.shown > 0", 30.0)
    assert page.evaluate("window.recordings.timeS") == pytest.approx(2.0, abs=0.2)


def utc(near: Near) -> str:
    """Return the time of a moment as the page writes it into CSV."""
    ms = near.start_us // 1000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}Z"


def test_stops_are_found_by_cause(page: Page, world: World) -> None:
    for number, path in enumerate(world.files):
        assert [cause for _, cause in stop_rows([path])] == list(STOPS.values()), number
    search(page, WEEKS, stop="blind", driver="Bob")
    rows = page.locator("#moments-list li").all_inner_texts()
    assert all("no fresh picture" in row and "Bob" in row for row in rows)
    search(page, 2 * WEEKS, stop="any", driver="")
    search(page, 0, stop="estop", driver="Ann")


def test_drive_of_a_link_that_is_not_in_the_list_is_opened(page: Page, world: World) -> None:
    search(page, len(world.walls), front_below_m="0.3")
    link = page.locator("#moments-list a").last.get_attribute("href")

    def shorter(route: Route) -> None:
        listing = route.fetch().json()
        if "id=" not in route.request.url:
            listing["drives"] = listing["drives"][:1]
        route.fulfill(json=listing)

    page.route("**/api/recordings/drives?*", shorter)
    page.goto("about:blank")
    page.goto(f"{world.url}{link}")
    until(page, "window.recordings?.drives === 1 && window.recordings.shown > 0", 30.0)
    assert page.evaluate("window.recordings.timeS") == pytest.approx(3.0 - 1.0, abs=0.2)


def test_empty_slow_and_failed_searches_say_so(page: Page) -> None:
    page.locator("#moments-find").click()
    until(page, f"{SAYS} === 'Fill in at least one condition.'")
    search(page, 0, front_below_m="0.01")
    assert page.evaluate(SAYS).startswith("No moments found. Change a condition.")
    looks(page, "moments-none")
    waiting: list[Route] = []
    page.route("**/api/moments?*", lambda route: waiting.append(route))
    page.locator("#moments-find").click()
    until(page, f"{SAYS} === 'Searching all drives…'")
    assert page.locator("#moments-find").is_disabled()
    looks(page, "moments-searching")
    until(page, f"{SAYS}.startsWith('Still searching.')")
    refuse(waiting.pop(), web.HTTPRequestTimeout, VERBATIM(text="The query took more than 30 s."))
    until(page, f"{SAYS} === 'The search took too long and was ended. Choose a month.'")
    page.locator("#moments-find").click()
    wait_for(lambda: page.evaluate("1") and bool(waiting), "no request")
    refuse(waiting.pop(), web.HTTPServiceUnavailable, SEARCHES_BUSY(most=8))
    says = "That did not work: 8 searches are in progress: try again in a minute"
    until(page, f"{SAYS} === '{says}'")
    looks(page, "moments-refused")


def test_search_works_by_keys_alone(page: Page, world: World) -> None:
    def focused(attribute: str) -> str:
        return str(page.evaluate(f"document.activeElement.{attribute} ?? ''"))

    def tab_to(attribute: str, value: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if focused(attribute) == value:
                return
        raise AssertionError(f"no {value} by Tab")

    page.reload()
    until(page, "document.querySelectorAll('#moments-driver option').length === 3", 30.0)
    tab_to("parentElement.id", "moments")
    page.keyboard.press("Enter")
    tab_to("name", "front_below_m")
    page.keyboard.type("0.3")
    tab_to("name", "driver")
    page.keyboard.press("ArrowDown")
    tab_to("id", "moments-find")
    page.keyboard.press("Enter")
    until(page, f"{COUNT} === {WEEKS}", 30.0)
    tab_to("id", "moments-csv")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    hash_there = focused("hash")
    page.keyboard.press("Enter")
    until(page, "window.recordings.shown > 0")
    assert page.evaluate("location.hash") == hash_there
    page.locator("#back").focus()
    page.keyboard.press("Enter")
    until(page, f"document.activeElement.hash === '{hash_there}'")


def test_figures_of_all_weeks_are_plotted(page: Page, world: World) -> None:
    page.locator("#moments summary").click()
    page.locator("#weeks summary").click()
    until(page, "document.querySelectorAll('#weeks-plots figure').length === 3", 30.0)
    assert [
        caption.split("\n")[0] for caption in page.locator("#weeks-plots strong").all_inner_texts()
    ] == ["Stops per hour driven", "Battery under load", "Age of the picture"]
    for group, lines in (("stops", 2), ("battery", 2), ("latency", 3)):
        figure = page.locator(f"#weeks-plots figure[data-group={group}]")
        assert figure.locator("path.points").count() == lines
        assert " from " in (figure.locator("svg").get_attribute("aria-label") or "")
    dots = page.locator("figure[data-group=latency] path.points").first.get_attribute("d") or ""
    assert dots.count("M") == WEEKS
    looks(page, "weeks", "#weeks")
    page.route("**/api/moments/weeks", lambda route: route.fulfill(json={"rows": []}))
    page.locator("#weeks summary").click()
    page.locator("#weeks summary").click()
    page.get_by_text("No drives yet. A drive appears here two minutes").wait_for()
    assert page.locator("#weeks-plots figure").count() == 0

"""Search by conditions over HTTP: refusals, access, and the place of each moment in its drive."""

from urllib.parse import urlencode

import pytest
from testkit.base_station.queries import SESSION, QueryWorld

from fpvcar.access.rights import CODE
from fpvstation.query.moments import Conditions
from fpvstation.web import query_api
from fpvstation.web.page import Page
from fpvstation.web.password import PasswordRights
from tests.unit.fpvstation.query.conftest import asked, recorded
from tests.unit.fpvstation.query.test_moments import scanned
from tests.unit.fpvstation.web.test_page import ask as ask_here
from tests.unit.fpvstation.web.test_password import RIGHT, rights
from tests.unit.fpvstation.web.test_password import ask as ask_elsewhere
from tests.unit.fpvstation.web.test_query_api import page

__all__ = ["asked", "page", "recorded", "rights"]
URL = "/api/moments"
NEAR = Conditions({"front_below_m": 1.9})
NEAR_URL = f"{URL}?front_below_m=1.9"


@pytest.mark.parametrize("wanted", [NEAR, Conditions({}, stop="any")], ids=str)
async def test_moments_have_their_place_in_drive_and_file(
    page: Page, asked: QueryWorld, wanted: Conditions
) -> None:
    expected = scanned(asked, wanted)
    query = urlencode({**wanted.limits, **({"stop": wanted.stop} if wanted.stop else {})})
    async with ask_here(page) as client:
        found = await (await client.get(f"{URL}?{query}")).json()
        listing = await (await client.get("/api/recordings/drives")).json()
    drives = {drive["id"]: drive for drive in listing["drives"]}
    rows, files = [], set()
    for moment in found["moments"]:
        drive, start_ms = drives[moment["drive"]], moment["start_ms"]
        assert moment["at_s"] == pytest.approx((start_ms - drive["start_ms"]) / 1e3)
        (part,) = [part for part in drive["parts"] if part["name"] == moment["file"]]
        assert moment["file"].startswith(moment["session"].rpartition("/")[2])
        assert moment["file_ms"] == part["start_ms"]
        assert 0.0 <= start_ms - part["start_ms"] <= part["seconds"] * 1e3
        files.add(moment["file"])
        times = round(start_ms * 1e3), round(start_ms * 1e3 + moment["seconds"] * 1e6)
        about = moment["session"], moment["cause"], moment["driver"]
        rows.append((*about, *times, *moment["worst"].values()))
    assert sorted(rows, key=str) == expected and rows and not found["more"]
    assert len(files) == (3 if wanted.stop else 2)


async def test_moment_of_an_unlisted_session_has_no_drive(page: Page, asked: QueryWorld) -> None:
    with asked.catalogue._file.query() as db:
        db.execute("DELETE FROM drive WHERE session = ?", (SESSION,))
        db.commit()
    async with ask_here(page) as client:
        found = await (await client.get(NEAR_URL)).json()
    drives = {(moment["session"] == SESSION, moment["drive"] == "") for moment in found["moments"]}
    assert drives == {(True, True), (False, False)}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "no condition: expected some of front_below_m, throttle_above_share, "),
        ({"sql": "SELECT 1"}, 'condition "sql" refused: expected some of front_below_m, '),
        ({"front_below_m": "near"}, 'front_below_m = "near" refused: expected 0 to 10.'),
        ({"front_below_m": "1 OR 1"}, 'front_below_m = "1 OR 1" refused: expected 0 to 10.'),
        ({"front_below_m": "nan"}, 'front_below_m = "nan" refused: expected 0 to 10.'),
        ({"front_below_m": ""}, 'front_below_m = "" refused: expected 0 to 10.'),
        ({"throttle_above_share": "50"}, 'throttle_above_share = "50" refused: expected 0 to 1.'),
        ({"battery_below_v": "-1"}, 'battery_below_v = "-1" refused: expected 0 to 60.'),
        ({"picture_above_ms": "1e9"}, 'picture_above_ms = "1e9" refused: expected 0 to 60000.'),
        ({"stop": "x' OR '1"}, "stop = \"x' OR '1\" refused: expected one of any, handover, "),
        ({"driver": "A\nB"}, 'driver = "A\nB" refused: expected a name of at most 64 characters.'),
        ({"driver": "x" * 65}, "refused: expected a name of at most 64 characters."),
        ({"month": "2025-13"}, 'month = "2025-13" refused: expected a year and a month like 2026-'),
        ({"month": "2025-11' OR '1"}, "refused: expected a year and a month like 2026-11."),
        ({"month": "November"}, 'month = "November" refused: expected a year and a month like '),
    ],
    ids=str,
)
async def test_wrong_condition_is_refused(page: Page, query: dict[str, str], words: str) -> None:
    async with ask_here(page) as client:
        answer = await client.get(f"{URL}?{urlencode(query)}")
        assert answer.status == 400 and words in await answer.text()


@pytest.mark.parametrize("url", [NEAR_URL, f"{URL}/weeks"])
async def test_other_machines_need_the_password(
    page: Page, rights: PasswordRights, url: str
) -> None:
    page._rights = rights
    async with ask_elsewhere(page) as client:
        assert (await client.get(url)).status == 401
        unlocked = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        (cookie,) = unlocked.cookies.values()
        client.session.headers["Cookie"] = f"{cookie.key}={cookie.value}"
        assert (await client.get(url)).status == 200
        foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
        assert (await client.get(url, headers=foreign)).status == 403


async def test_figures_of_weeks_are_answered(page: Page) -> None:
    async with ask_here(page) as client:
        found = await (await client.get(f"{URL}/weeks")).json()
    lines = {(plot, line) for plot, line, _, value in found["rows"] if value >= 0.0}
    assert lines >= {("battery", "Plague"), ("latency", "50 %"), ("latency", "99 %")}


async def test_search_that_takes_too_long_ends(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_api, "QUERY_S", 0.01)
    async with ask_here(page) as client:
        assert (await client.get(NEAR_URL)).status == 408


async def test_drive_is_found_by_its_id(page: Page) -> None:
    async with ask_here(page) as client:
        url = "/api/recordings/drives"
        every = (await (await client.get(url)).json())["drives"]
        for drive in every:
            found = await (await client.get(f"{url}?id={drive['id']}")).json()
            assert found["drives"] == [drive]
        assert (await (await client.get(f"{url}?id=nothing")).json())["drives"] == []
    assert len(every) == 2

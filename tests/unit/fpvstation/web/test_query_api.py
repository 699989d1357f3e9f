"""Queries over HTTP: behind the password, bounded, and without effect on the page."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.base_station.queries import SESSION, QueryWorld, sample_rows

from fpvcar.access.rights import CODE
from fpvstation.fetch.cars import Cars
from fpvstation.fetch.scheduler import FetchScheduler
from fpvstation.housekeeping import Chores
from fpvstation.replicas.remotes import Remotes
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.web import query_api
from fpvstation.web.page import Page
from fpvstation.web.password import PasswordRights
from tests.unit.fpvstation.query.conftest import asked, recorded
from tests.unit.fpvstation.query.test_query import ENDLESS
from tests.unit.fpvstation.web.test_page import ask as ask_here
from tests.unit.fpvstation.web.test_password import RIGHT, rights
from tests.unit.fpvstation.web.test_password import ask as ask_elsewhere

__all__ = ["asked", "recorded", "rights"]
URL = "/api/query"


@pytest.fixture
def page(asked: QueryWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setattr(query_api, "QUERY_S", 600.0)
    offices = Remotes([], 1, ReplicaLog(asked.disk))
    scheduler = FetchScheduler(Cars(tmp_path), asked.store)
    yield Page(asked.catalogue, scheduler, offices, Chores([]))


async def test_answer_has_columns_rows_and_the_limit(page: Page, asked: QueryWorld) -> None:
    sql = f"SELECT front_m FROM samples WHERE session = '{SESSION}' ORDER BY time"
    expected = [[row["front_m"]] for row in sample_rows(asked.files())]
    async with ask_here(page) as client:
        answer = await client.post(URL, data=sql)
        assert answer.status == 200 and answer.content_type == "application/json"
        assert await answer.json() == {"columns": ["front_m"], "rows": expected, "more": False}
        said = await (await client.post(URL + "?rows=5", data=sql)).json()
        assert said["rows"] == expected[:5] and said["more"]
        for rows in ("0", "1e9", "x"):
            assert (await client.post(f"{URL}?rows={rows}", data=sql)).status == 400


async def test_wrong_queries_are_refused_with_the_reason(page: Page) -> None:
    async with ask_here(page) as client:
        for sql, words in (
            ("DROP TABLE sessions", "refused: queries only read, and this is DROP"),
            ("SELECT * FROM read_text('/etc/passwd')", "reads samples, events and sessions only"),
            ("SELEC 1", "syntax error"),
        ):
            answer = await client.post(URL, data=sql)
            text = await answer.text()
            assert answer.status == 400 and words in text and "fpvstation:" not in text
        assert (await client.post(URL, data="x" * 40_000)).status == 413
        assert (await client.get(URL)).status in (404, 405)


async def test_other_machines_need_the_password(page: Page, rights: PasswordRights) -> None:
    page._rights = rights
    async with ask_elsewhere(page) as client:
        assert (await client.post(URL, data="SELECT 1")).status == 401
        unlocked = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        (cookie,) = unlocked.cookies.values()
        client.session.headers["Cookie"] = f"{cookie.key}={cookie.value}"
        answer = await client.post(URL, data="SELECT 1 AS one")
        assert (await answer.json())["rows"] == [[1]]
        foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
        assert (await client.post(URL, data="SELECT 1", headers=foreign)).status == 403
    async with ask_elsewhere(page, scheme="http") as client:
        assert (await client.post(URL, data="SELECT 1")).status == 403


@pytest.mark.slow
async def test_long_and_large_queries_end_and_the_page_goes_on(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ask_here(page) as client:
        monkeypatch.setattr(query_api, "QUERY_S", 4.0)
        slow = asyncio.create_task(client.post(URL, data=ENDLESS))
        answers = 0
        while not slow.done():
            assert (await client.get("/api/status")).status == 200
            answers += 1
            await asyncio.sleep(0.02)
        answer = await slow
        assert answer.status == 408 and "more than 4 s" in await answer.text()
        assert answers > 5, "the page waits for the query"
        monkeypatch.setattr(query_api, "QUERY_S", 600.0)
        large = "SELECT repeat('x', 1000000) FROM range(1000)"
        answer = await client.post(URL, data=large)
        assert answer.status == 413 and "exceeds 16 MB" in await answer.text()
        hungry = "SELECT list(repeat(range::VARCHAR, 9)) FROM range(30000000)"
        answer = await client.post(URL, data=hungry)
        assert answer.status == 400 and "needs more than 192 MB" in await answer.text()
        assert answer.headers["X-Refusal"] == "key=query_memory&memory=192"
        assert (await client.post(URL, data="SELECT 1")).status == 200


async def test_too_many_queries_at_once_are_refused(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_api, "AT_ONCE", 1)
    async with ask_here(page) as client:
        asked = [client.post(URL, data="SELECT 1") for _ in range(2)]
        states = [answer.status for answer in await asyncio.gather(*asked)]
    assert sorted(states) == [200, 503]

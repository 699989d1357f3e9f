"""Concurrent exports: few are made, each is sent once, and HEAD sends no body."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import ClientError, ClientResponse
from testkit.recordings import NAME, Client

from fpvcar.library.api.export_jobs import Job, JobFactory
from fpvcar.library.api.exports import AT_ONCE_MAX, EXPORTS
from fpvcar.recordings.export.zipped import DriveZip

ASKED = {"kind": "zip", "files": [NAME]}


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> list[threading.Event]:
    """Make zips endless; return for each sending the event set at its close."""
    closed = list[threading.Event]()

    def pieces(_: DriveZip) -> Iterator[bytes]:
        mine = threading.Event()
        closed.append(mine)
        try:
            while True:
                yield bytes(64 * 1024)
        finally:
            mine.set()

    monkeypatch.setattr(DriveZip, "pieces", pieces)
    return closed


async def begun(client: Client) -> str:
    """Begin an export; return its address."""
    answer = await client.post(EXPORTS, json=ASKED)
    assert answer.status == 201
    return f"{EXPORTS}/{(await answer.json())['id']}"


async def state(client: Client, url: str) -> str:
    return str((await (await client.get(url)).json())["state"])


async def sending(client: Client, url: str) -> ClientResponse:
    answer = await client.get(f"{url}/file")
    assert answer.status == 200
    await answer.content.readexactly(200_000)
    return answer


async def is_cut(answer: ClientResponse) -> None:
    with pytest.raises(ClientError):
        async with asyncio.timeout(20.0):
            await answer.content.read()


async def test_export_sending_beyond_the_limit_is_refused(
    endless: list[threading.Event], client: Client
) -> None:
    first, *others = [await begun(client) for _ in range(AT_ONCE_MAX + 1)]
    answers = [await sending(client, one) for one in others]
    refused = await client.get(f"{first}/file")
    assert refused.status == 429
    assert f"{AT_ONCE_MAX} exports" in await refused.text()
    assert (await client.head(f"{first}/file")).status == 200
    assert await state(client, first) == "ready"
    assert (await client.delete(others[0])).status == 200
    await is_cut(answers[0])
    answers[0] = await sending(client, first)
    for answer in answers:
        answer.close()
    for one in endless:
        assert await asyncio.to_thread(one.wait, 5.0), "it goes on"


async def test_new_sending_of_an_export_ends_the_previous(
    endless: list[threading.Event], client: Client
) -> None:
    one = await begun(client)
    first = await sending(client, one)
    second = await sending(client, one)
    assert await asyncio.to_thread(endless[0].wait, 5.0), "it goes on"
    await is_cut(first)
    assert await state(client, one) == "sending"
    await second.content.readexactly(200_000)
    second.close()


async def test_places_are_taken_before_the_card_is_read(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    """Only a few of many simultaneous requests get a place."""
    made, read = JobFactory.job, threading.Event()

    def slow(*given: Any) -> Job:
        read.wait(60.0)
        return made(*given)

    monkeypatch.setattr(JobFactory, "job", slow)

    async def status() -> int:
        return (await client.post(EXPORTS, json=ASKED)).status

    asked = [asyncio.create_task(status()) for _ in range(AT_ONCE_MAX + 3)]
    try:
        early = asyncio.as_completed(asked, timeout=20.0)
        assert [await next(early) for _ in range(3)] == [429] * 3
    finally:
        read.set()
    assert sorted(await asyncio.gather(*asked)) == [201] * AT_ONCE_MAX + [429] * 3


async def test_head_request_of_an_export_sends_no_body(client: Client) -> None:
    one = await begun(client)
    assert (await client.head(f"{one}/file")).status == 200
    assert await state(client, one) == "ready"
    data = await (await client.get(f"{one}/file")).read()
    said = await (await client.get(one)).json()
    assert (said["state"], said["done"]) == ("sent", len(data))

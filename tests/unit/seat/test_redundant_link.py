"""Socket /ws/copies: the second connection of the page at the wheel, by a real server."""

import functools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer
from testkit.cameras.video_source import Deaf
from testkit.hub import PROFILE, House, server_of, until

from fpvcar.http.limits import RESERVED
from fpvcar.seat import redundant_link
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Stream
from fpvcar.wire import down
from fpvcar.wire.video import parse_video

Socket = aiohttp.ClientWebSocketResponse


class Page:
    """Page of one browser, and the car behind it."""

    client: "TestClient[Any, Any]"
    video: Socket

    def __init__(self) -> None:
        self.house = House()
        self.stream = Stream(Deaf())
        self.seq = 0

    def copied(self) -> int:
        """Return the number of connections that carry copies of the first page's wishes."""
        return next(iter(self.house.hub.sessions)).copies

    async def sits_down(self) -> Socket:
        """Take the wheel and watch; return the socket of its wishes."""
        drive = await self.client.ws_connect("/ws/drive")
        await drive.send_json(self.hello("driver", code="123456"))
        welcome = await drive.receive_json(timeout=20)
        await drive.send_json({"kind": "take"})
        await until(lambda: self.house.hub.sessions.at_the_wheel("client-driver"))
        self.video = await self.client.ws_connect(f"/ws/video?id={welcome['video']}")
        await self.video.send_json(self.hello("driver"))
        self.publish()
        await number(self.video)
        return drive

    async def copies(self, name: str = "driver") -> Socket:
        ws = await self.client.ws_connect("/ws/copies")
        await ws.send_json(self.hello(name))
        return ws

    def hello(self, name: str, **more: Any) -> dict[str, Any]:
        return {"kind": "hello", "v": 1, "client": f"client-{name}", **more}

    def wish(self, throttle: float) -> dict[str, Any]:
        self.seq += 1
        now_s = self.house.now_s
        seen_us = int(now_s * 1e6)
        for session in self.house.hub.sessions:
            session.fresh.sent(seen_us, seen_us)
        return {
            "kind": "drive",
            "seq": self.seq,
            "t": now_s * 1000,
            "throttle": throttle,
            "steer": 0.0,
            "seen": seen_us,
        }

    def publish(self) -> None:
        self.stream.publish(AccessUnit(True, time.monotonic_ns() // 1000, b"unit"))


@asynccontextmanager
async def a_page() -> AsyncIterator[Page]:
    page = Page()
    app = server_of(PROFILE, page.house.hub, page.stream).application()
    async with TestClient(TestServer(app)) as client:
        page.client = client
        yield page


async def number(ws: Socket) -> int:
    """Return the number of the next unit."""
    return parse_video(await ws.receive_bytes(timeout=20))[0].sequence


async def closing(ws: Socket) -> tuple[str, str]:
    """Return the text of the car's Closing, and the reason in its close frame."""
    text = ""
    while True:
        end = await ws.receive(timeout=20)
        if end.type is aiohttp.WSMsgType.TEXT and json.loads(end.data)["kind"] == "closing":
            text = str(msgspec.json.decode(end.data, type=down.Closing).text)
        if end.type is aiohttp.WSMsgType.CLOSE:
            return text, str(end.extra)


async def reason(ws: Socket) -> str:
    """Return the reason of the car's close."""
    return (await closing(ws))[0]


async def test_units_go_by_both_sockets_and_wishes_by_either() -> None:
    async with a_page() as page:
        drive = await page.sits_down()
        copies = await page.copies()
        await until(page.copied)
        page.publish()
        assert await number(page.video) == await number(copies)
        throttles: list[float] = []
        page.house.control.wish = (  # type: ignore[method-assign]
            lambda throttle, *_: throttles.append(throttle)
        )
        one, two = page.wish(0.5), page.wish(0.25)
        for ws, wish in ((copies, one), (drive, one), (drive, two), (copies, two)):
            await ws.send_json(wish)
            await until(functools.partial(throttles.__contains__, wish["throttle"]))
        third = page.wish(0.125)
        await copies.send_json(third)
        await until(lambda: 0.125 in throttles)
        assert throttles == [0.5, 0.25, 0.125], "each once"
        await copies.close()
        await until(lambda: not page.copied())
        page.publish()
        await number(page.video)


async def test_copies_are_only_for_the_page_at_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redundant_link, "HELLO_S", 0.1)
    async with a_page() as page:
        assert await reason(await page.copies("eve")) == "only the driver can use it"
        silent = await page.client.ws_connect("/ws/copies")
        assert await reason(silent) == "no hello within 0 s"
        for first in ("{", '{"kind":"take"}', '{"kind":"later"}'):
            rude = await page.client.ws_connect("/ws/copies")
            await rude.send_str(first)
            assert await reason(rude) == "hello first"
        await page.sits_down()
        assert await reason(await page.copies("eve")) == "only the driver can use it"
        await page.video.close()
        await until(lambda: not page.stream.viewers)
        assert await reason(await page.copies()) == "/ws/video first"


async def test_copies_take_only_wishes_at_a_limited_rate() -> None:
    async with a_page() as page:
        await page.sits_down()
        for said in (page.hello("driver"), {"kind": "estop"}, {"kind": "later"}):
            copies = await page.copies()
            await copies.send_json(said)
            assert await reason(copies) == "wishes only"
        copies = await page.copies()
        await copies.send_bytes(b"{}")
        assert await reason(copies) == "wishes only"
        copies = await page.copies()
        for _ in range(300):
            await copies.send_json(page.wish(0.0))
        assert await reason(copies) == "more than 250 messages a second"
        assert page.house.control.decision.latches.hold is None


async def test_strangers_do_not_displace_the_drivers_copies() -> None:
    async with a_page() as page:
        await page.sits_down()
        copies = await page.copies()
        await until(page.copied)
        for _ in range(RESERVED - 1):
            await page.client.ws_connect("/ws/copies")
        assert (await page.client.get("/ws/copies")).status == 503
        page.publish()
        await number(copies)


async def test_copies_end_with_their_video_socket() -> None:
    async with a_page() as page:
        await page.sits_down()
        copies = await page.copies()
        await until(page.copied)
        await page.video.close()
        end = await copies.receive(timeout=20)
        assert end.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)


class Reconnecting:
    """Page whose /ws/drive broke while its copies stayed open."""

    page: Page
    copies: Socket
    old_nonce: int
    throttles: list[float]


@asynccontextmanager
async def a_broken_drive() -> AsyncIterator[Reconnecting]:
    async with a_page() as page:
        case = Reconnecting()
        case.page, case.throttles = page, []
        drive = await page.sits_down()
        case.copies = await page.copies()
        await until(page.copied)
        case.old_nonce = page.wish(0.0)["seen"]
        page.house.control.wish = (  # type: ignore[method-assign]
            lambda throttle, *_: case.throttles.append(throttle)
        )
        await drive.close()
        await until(lambda: not page.house.hub.sessions)
        page.house.now_s += 0.1  # the nonces of the next session differ
        yield case


async def test_copies_after_drive_reconnects_carry_pictures_and_fresh_wishes() -> None:
    async with a_broken_drive() as case:
        page, copies = case.page, case.copies
        await copies.send_json({**page.wish(0.5), "seen": case.old_nonce})
        page.publish()
        assert await number(page.video) == await number(copies), "pictures while it reconnects"
        drive = await page.client.ws_connect("/ws/drive")
        await drive.send_json(page.hello("driver"))
        await until(lambda: page.house.hub.sessions.at_the_wheel("client-driver"))
        await copies.send_json(page.wish(0.25))
        await until(lambda: case.throttles)
        assert case.throttles == [0.25]
        assert page.copied() == 1
        page.publish()
        assert await number(page.video) == await number(copies)
        await copies.close()
        await until(lambda: not page.copied())


async def test_copies_after_drive_reconnects_drop_wishes_with_an_old_nonce() -> None:
    """A wish with an old nonce must not raise the sequence number either: the page counts from 1
    again."""
    async with a_broken_drive() as case:
        page, copies = case.page, case.copies
        drive = await page.client.ws_connect("/ws/drive")
        await drive.send_json(page.hello("driver"))
        await until(lambda: page.house.hub.sessions.at_the_wheel("client-driver"))
        await copies.send_json({**page.wish(0.5), "seq": 90_000, "seen": case.old_nonce})
        await copies.send_json({**page.wish(0.25), "seq": 1})
        await until(lambda: case.throttles)
        assert case.throttles == [0.25]


async def test_copies_after_another_page_takes_the_wheel_are_closed() -> None:
    async with a_broken_drive() as case:
        page, copies = case.page, case.copies
        other = await page.client.ws_connect("/ws/drive")
        await other.send_json(page.hello("other", code="123456"))
        page.house.now_s += 60.0
        page.house.hub.broadcast()
        await other.send_json({"kind": "take"})
        await until(lambda: page.house.hub.sessions.at_the_wheel("client-other"))
        await copies.send_json(page.wish(0.5))
        assert await reason(copies) == "only the driver can use it"
        assert not case.throttles

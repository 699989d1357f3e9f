"""Socket /ws/copies: the second connection of the page at the wheel, by a real server."""

import asyncio
import functools
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest
from testkit.car import Car, Socket, closing
from testkit.hub import until

from fpvcar import config
from fpvcar.access.codes import Rights
from fpvcar.http.limits import RESERVED
from fpvcar.seat import redundant_link
from fpvcar.seat.drive_socket import Session
from fpvcar.wire import down
from fpvcar.wire.video import parse_video


class Page(Car):
    """Car, and the page at its wheel."""

    video: Socket
    link: Socket
    old_nonce: int
    seq = 0

    def note_throttles(self) -> None:
        """Record the throttle of each wish in place of the gate."""
        self.throttles: list[float] = []
        self.control.wish = (  # type: ignore[method-assign]
            lambda throttle, *_: self.throttles.append(throttle)
        )

    def copied(self) -> int:
        """Return the number of connections that carry copies of the first page's wishes."""
        return next(iter(self.hub.sessions)).copies

    async def watches(self) -> Socket:
        """Take the wheel and watch; return the socket of its wishes."""
        drive, video = await self.sits_down()
        self.video = await self.opens(f"/ws/video?id={video}", "driver")
        self.publish()
        await number(self.video)
        return drive

    async def copies(self, name: str = "driver") -> Socket:
        return await self.opens("/ws/copies", name)

    def wish(self, throttle: float) -> dict[str, Any]:
        self.seq += 1
        seen_us = int(self.now_s * 1e6)
        for session in self.hub.sessions:
            session.fresh.sent(seen_us, seen_us)
        wish = {"seq": self.seq, "t": self.now_s * 1000, "seen": seen_us}
        return {"kind": "drive", "throttle": throttle, "steer": 0.0, **wish}


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    page = Page()
    async with page.serve():
        yield page


@pytest.fixture
async def broken(page: Page) -> AsyncIterator[Page]:
    """Yield a page whose /ws/drive broke while its copies stayed open."""
    drive = await page.watches()
    page.link = await page.copies()
    await until(page.copied)
    page.old_nonce = page.wish(0.0)["seen"]
    page.note_throttles()
    await drive.close()
    await until(lambda: not page.hub.sessions)
    page.now_s += 0.1  # the nonces of the next session differ
    yield page


async def number(ws: Socket) -> int:
    """Return the number of the next unit."""
    return parse_video(await ws.receive_bytes(timeout=20))[0].sequence


async def reason(ws: Socket) -> str:
    """Return the reason of the car's close."""
    return (await closing(ws))[0]


async def test_units_go_by_both_sockets_and_wishes_by_either(page: Page) -> None:
    drive = await page.watches()
    copies = await page.copies()
    await until(page.copied)
    page.publish()
    assert await number(page.video) == await number(copies)
    page.note_throttles()
    throttles = page.throttles
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


async def test_copies_are_only_for_the_page_at_the_wheel(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redundant_link, "HELLO_S", 0.1)
    assert await reason(await page.copies("eve")) == "only the driver can use it"
    silent = await page.opens("/ws/copies")
    assert await reason(silent) == "no hello within 0 s"
    for first in ("{", '{"kind":"take"}', '{"kind":"later"}'):
        rude = await page.opens("/ws/copies")
        await rude.send_str(first)
        assert await reason(rude) == "hello first"
    await page.watches()
    assert await reason(await page.copies("eve")) == "only the driver can use it"
    await page.video.close()
    await until(lambda: not page.stream.viewers)
    assert await reason(await page.copies()) == "/ws/video first"


async def test_copies_take_only_wishes_and_pings_at_a_limited_rate(page: Page) -> None:
    await page.watches()
    for said in (
        {"kind": "hello", "v": 1, "client": "client-driver"},
        {"kind": "estop"},
        {"kind": "later"},
    ):
        copies = await page.copies()
        await copies.send_json(said)
        assert await reason(copies) == "wishes and pings only"
    copies = await page.copies()
    await copies.send_bytes(b"{}")
    assert await reason(copies) == "wishes and pings only"
    copies = await page.copies()
    for _ in range(300):
        await copies.send_json(page.wish(0.0))
    assert await reason(copies) == "more than 250 messages a second"
    assert page.control.decision.latches.hold is None


async def test_ping_by_copies_is_answered_there_with_a_nonce_for_wishes(page: Page) -> None:
    await page.watches()
    copies = await page.copies()
    await until(page.copied)
    page.note_throttles()
    await copies.send_json({"kind": "ping", "seq": 7, "t": 5.0})
    pong = await copies.receive_json(timeout=20)
    assert (pong["kind"], pong["seq"], pong["t"]) == ("pong", 7, 5.0)
    await copies.send_json({**page.wish(0.5), "seen": pong["nonce"]})
    await until(lambda: page.throttles)
    assert page.throttles == [0.5]


def test_pong_that_would_be_stale_is_dropped_and_its_nonce_is_void() -> None:
    session = Session("10.0.0.1", Rights(), config.Gate())
    transport, pong = Mock(spec=asyncio.Transport), down.Pong(seq=1, t=2.0, clock_us=3, nonce=4)
    transport.get_write_buffer_size.return_value = 1
    redundant_link.answer(transport, session, pong)
    assert not transport.write.called and not session.fresh.sent_us(4)
    transport.get_write_buffer_size.return_value = 0
    redundant_link.answer(transport, session, pong)
    assert transport.write.called and session.fresh.sent_us(4) == 3


async def test_strangers_do_not_displace_the_drivers_copies(page: Page) -> None:
    await page.watches()
    copies = await page.copies()
    await until(page.copied)
    for _ in range(RESERVED - 1):
        await page.opens("/ws/copies")
    assert (await page.client.get("/ws/copies")).status == 503
    page.publish()
    await number(copies)


async def test_copies_end_with_their_video_socket(page: Page) -> None:
    await page.watches()
    copies = await page.copies()
    await until(page.copied)
    await page.video.close()
    end = await copies.receive(timeout=20)
    assert end.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)


async def test_copies_after_drive_reconnects_carry_pictures_and_fresh_wishes(broken: Page) -> None:
    page, copies = broken, broken.link
    await copies.send_json({**page.wish(0.5), "seen": page.old_nonce})
    page.publish()
    assert await number(page.video) == await number(copies), "pictures while it reconnects"
    await page.opens("/ws/drive", "driver")
    await until(lambda: page.hub.sessions.at_the_wheel("client-driver"))
    await copies.send_json(page.wish(0.25))
    await until(lambda: page.throttles)
    assert page.throttles == [0.25]
    assert page.copied() == 1
    page.publish()
    assert await number(page.video) == await number(copies)
    await copies.close()
    await until(lambda: not page.copied())


async def test_copies_after_drive_reconnects_drop_wishes_with_an_old_nonce(broken: Page) -> None:
    """A wish with an old nonce must not raise the sequence number either: the page counts from 1
    again."""
    page, copies = broken, broken.link
    await page.opens("/ws/drive", "driver")
    await until(lambda: page.hub.sessions.at_the_wheel("client-driver"))
    await copies.send_json({**page.wish(0.5), "seq": 90_000, "seen": page.old_nonce})
    await copies.send_json({**page.wish(0.25), "seq": 1})
    await until(lambda: page.throttles)
    assert page.throttles == [0.25]


async def test_copies_after_another_page_takes_the_wheel_are_closed(broken: Page) -> None:
    page, copies = broken, broken.link
    other = await page.opens("/ws/drive", "other", code="123456")
    page.now_s += 60.0
    page.hub.broadcast()
    await other.send_json({"kind": "take"})
    await until(lambda: page.hub.sessions.at_the_wheel("client-other"))
    await copies.send_json(page.wish(0.5))
    assert await reason(copies) == "only the driver can use it"
    assert not page.throttles

"""One /ws/drive socket on a real loop: what a flood may cost the others."""

import asyncio
import time

from aiohttp import web
from aiohttp.test_utils import TestServer

from fpvcar import config
from fpvcar.server import drive_socket
from fpvcar.server.access import Rights
from fpvcar.server.drive_socket import Session
from fpvcar.wire import up

UPGRADE = (
    "GET /ws HTTP/1.1\r\nHost: car\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PINGS = 100


def masked(text: str) -> bytes:
    """A short text frame of a client; its mask is zero."""
    return bytes([0x81, 0x80 | len(text)]) + bytes(4) + text.encode()


def test_between_two_messages_of_a_flood_others_have_their_turn() -> None:
    turns, seen, all_seen = 0, [], asyncio.Event()

    def receive(session: Session, message: up.Upward) -> None:
        session.client = "flood"
        seen.append(turns)
        if len(seen) == PINGS:
            all_seen.set()

    async def handler(request: web.Request) -> web.StreamResponse:
        session = Session("10.0.0.1", Rights(), config.Gate())
        return await drive_socket.serve(request, session, receive, time.monotonic)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def flood() -> None:
        app = web.Application()
        app.router.add_get("/ws", handler)
        beside = asyncio.create_task(others())
        async with TestServer(app) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(UPGRADE.encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(masked('{"kind":"ping","seq":1,"t":1}') * PINGS)
            async with asyncio.timeout(5.0):
                await all_seen.wait()
            writer.close()
        beside.cancel()

    asyncio.run(flood())
    assert len(set(seen)) == PINGS

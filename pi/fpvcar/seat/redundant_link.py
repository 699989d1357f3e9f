"""/ws/copies: a redundant connection of the driver's page, used while packets are lost.

    page -> hello, as on /ws/drive; then a copy of each wish and ping sent on /ws/drive
    car  -> a copy of each unit sent on /ws/video (video_socket.Sender), and a pong for each ping

The first arrival counts, and its duplicate is dropped: the page recognises pictures and pongs by
their numbers, and the gate recognises wishes by theirs. Data stalled behind a lost packet on one
connection arrives by the other. The connection is optional: without it the other two carry
everything.
"""

import asyncio
import logging
import time

from aiohttp import WSMsgType, web

from fpvcar.http.admission import Place
from fpvcar.http.limits import Rank, TokenBucket
from fpvcar.http.text_session import (
    CLOSE_S,
    NO_HELLO,
    ONLY_DRIVER,
    REFUSED,
    SessionClosed,
    close_reason,
    open_socket,
)
from fpvcar.runtime.texts import Text, fault_text
from fpvcar.seat.drive_socket import HELLO_S, MESSAGES_PER_S, Session
from fpvcar.seat.hub import Hub
from fpvcar.seat.sessions import Sessions
from fpvcar.seat.video_link import Link
from fpvcar.seat.video_socket import HEARTBEAT_S, Sender
from fpvcar.video.stream import TEXT, frame_head
from fpvcar.wire import down, up
from fpvcar.wire.down import Closing
from fpvcar.wire.errors import WireError
from fpvcar.wire.json_text import DRIVE_MAX_BYTES, encode_downward

log = logging.getLogger("fpvcar.socket")


async def serve(
    request: web.Request, hub: Hub, senders: dict[str, Sender], place: Place
) -> web.WebSocketResponse:
    """Run one /ws/copies socket until it ends; `place` rises once it belongs to the driver."""
    ws = await open_socket(request, DRIVE_MAX_BYTES, HEARTBEAT_S)
    transport = request.transport
    if transport is None:  # disconnected during the handshake
        return ws
    try:
        session = await hello(ws, hub.sessions)
        sender = senders.get(session.video)
        if sender is None:
            raise SessionClosed("/ws/video first")
        place.promote(Rank.DRIVES)
        link = Link(transport)
        sender.copy_to(link)
        try:
            await _listen(ws, transport, hub, session)
        finally:
            sender.copy_no_more(link)
    except SessionClosed as reason:
        log.info("%s: copies closed: %s", request.remote, reason)
        await refuse(ws, transport, fault_text(reason))
    return ws


async def refuse(ws: web.WebSocketResponse, transport: asyncio.Transport, reason: Text) -> None:
    """Close a socket with a reason; abort the connection if the peer does not read."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await ws.send_str(encode_downward(Closing(reason)))
            await ws.close(code=REFUSED, message=close_reason(reason))
    except TimeoutError:
        transport.abort()


async def hello(ws: web.WebSocketResponse, sessions: Sessions) -> Session:
    """Return the session of the page that opened the socket.

    Raises SessionClosed for every page other than the driver's.
    """
    try:
        async with asyncio.timeout(HELLO_S):
            message = await ws.receive()
    except TimeoutError:
        raise SessionClosed(NO_HELLO(seconds=f"{HELLO_S:.0f}")) from None
    greeting = _parsed(message.type, message.data)
    if not isinstance(greeting, up.Hello):
        raise SessionClosed("hello first")
    session = sessions.at_the_wheel(greeting.client)
    if session is None:
        raise SessionClosed(ONLY_DRIVER)
    return session


async def _listen(
    ws: web.WebSocketResponse, transport: asyncio.Transport, hub: Hub, session: Session
) -> None:
    """Read wishes and pings until the browser disconnects.

    /ws/drive may reconnect meanwhile: the pictures continue, and wishes count for the page's
    new session. A wish counts only with a nonce that this session was sent. Wishes of the
    session before are dropped unread, as their higher `seq` would make the new ones "old".

    Raises SessionClosed once the page has lost the wheel, and for other messages.
    """
    meter = TokenBucket(MESSAGES_PER_S, MESSAGES_PER_S)
    session.copies += 1
    try:
        async for message in ws:
            if not hub.sessions.seat.holds(session.client):
                raise SessionClosed(ONLY_DRIVER)
            current = hub.sessions.at_the_wheel(session.client)  # None while /ws/drive reconnects
            if current is not None and current is not session:
                session.copies -= 1
                current.copies += 1
                session = current
            if not meter.allow(time.monotonic()):
                raise SessionClosed(f"more than {MESSAGES_PER_S:.0f} messages a second")
            if message.type is WSMsgType.PING:
                await ws.pong(message.data)
            elif message.type is not WSMsgType.PONG:
                said = _parsed(message.type, message.data)
                if not isinstance(said, up.Drive | up.Ping):
                    raise SessionClosed("wishes and pings only")
                if current is None:
                    continue
                if isinstance(said, up.Ping):
                    answer(transport, current, hub.pong(said))
                elif current.fresh.sent_us(said.seen):
                    hub.receive(current, said)
    finally:
        session.copies -= 1


def answer(transport: asyncio.Transport, session: Session, pong: down.Pong) -> None:
    """Send a pong; behind a full buffer it would be stale, and is dropped."""
    if not transport.get_write_buffer_size():
        text = encode_downward(pong).encode()
        transport.write(frame_head(len(text), TEXT) + text)
        session.sent(pong)


def _parsed(kind: WSMsgType, data: str | bytes) -> up.Upward | None:
    """Return the message of a frame; None for a malformed one."""
    try:
        return up.parse_upward(data) if kind is WSMsgType.TEXT else None
    except WireError:
        return None

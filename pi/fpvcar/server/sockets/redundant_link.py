"""/ws/copies: a second connection of the page at the wheel, while packets are lost.

    page -> hello, as on /ws/drive; then each wish that goes by /ws/drive goes here, too
    car  -> each unit that goes by /ws/video (video_socket.Sender)

Whatever comes first counts, and its copy is dropped: the page knows pictures by their
numbers, the gate knows wishes by theirs. What stands still behind a lost packet on one
connection goes on by the other. Nothing needs it: without it all goes by the others.
"""

import asyncio
import logging
from collections.abc import Callable

from aiohttp import WSMsgType, web

from fpvcar.server.http.limits import Meter
from fpvcar.server.hub import Hub
from fpvcar.server.sockets.drive_socket import HELLO_S, MESSAGES_PER_S, Session
from fpvcar.server.sockets.session import CLOSE_S, REFUSED, Closing
from fpvcar.server.sockets.video_link import Link
from fpvcar.server.sockets.video_socket import HEARTBEAT_S, Sender
from fpvcar.wire import up
from fpvcar.wire.errors import WireError
from fpvcar.wire.json_text import DRIVE_MAX_BYTES

log = logging.getLogger("fpvcar.socket")


async def serve(
    request: web.Request,
    hub: Hub,
    senders: dict[str, Sender],
    promote: Callable[[], None],
    clock_s: Callable[[], float],
) -> web.WebSocketResponse:
    """Runs one /ws/copies socket until it ends. `promote()`: it is the driver's."""
    ws = web.WebSocketResponse(
        compress=False,
        max_msg_size=DRIVE_MAX_BYTES,
        heartbeat=HEARTBEAT_S,
        timeout=CLOSE_S,
        autoping=False,
    )
    await ws.prepare(request)
    transport = request.transport
    if transport is None:  # gone meanwhile
        return ws
    try:
        session = await _hello(ws, hub)
        sender = senders.get(session.video)
        if sender is None:
            raise Closing("/ws/video first")
        promote()
        link = Link(transport)
        sender.copy_to(link)
        session.copies += 1
        try:
            await _listen(ws, hub, session, clock_s)
        finally:
            session.copies -= 1
            sender.copy_no_more(link)
    except Closing as reason:
        log.info("%s: copies closed: %s", request.remote, reason)
        try:
            async with asyncio.timeout(CLOSE_S):
                await ws.close(code=REFUSED, message=str(reason).encode()[:120])
        except TimeoutError:  # it does not read
            transport.abort()
    return ws


async def _hello(ws: web.WebSocketResponse, hub: Hub) -> Session:
    """The page that opened it. Raises Closing for whoever is not at the wheel."""
    try:
        async with asyncio.timeout(HELLO_S):
            message = await ws.receive()
    except TimeoutError:
        raise Closing(f"no hello within {HELLO_S:.0f} s") from None
    hello = _heard(message.type, message.data)
    if not isinstance(hello, up.Hello):
        raise Closing("hello first")
    session = hub.page_at_the_wheel(hello.client)
    if session is None:
        raise Closing("not at the wheel")
    return session


async def _listen(
    ws: web.WebSocketResponse, hub: Hub, session: Session, clock_s: Callable[[], float]
) -> None:
    """Hears wishes until the browser goes. Raises Closing once the page has left the
    wheel, or another socket: its wishes then count no more."""
    meter = Meter(MESSAGES_PER_S, MESSAGES_PER_S)
    async for message in ws:
        if hub.page_at_the_wheel(session.client) is not session:
            raise Closing("not at the wheel")
        if not meter.allow(clock_s()):
            raise Closing(f"more than {MESSAGES_PER_S:.0f} messages a second")
        if message.type is WSMsgType.PING:
            await ws.pong(message.data)
        elif message.type is not WSMsgType.PONG:
            wish = _heard(message.type, message.data)
            if not isinstance(wish, up.Drive):
                raise Closing("wishes only")
            hub.receive(session, wish)


def _heard(kind: WSMsgType, data: str | bytes) -> up.Upward | None:
    """The message of a frame; None for what no page sends."""
    try:
        return up.parse_upward(data) if kind is WSMsgType.TEXT else None
    except WireError:
        return None

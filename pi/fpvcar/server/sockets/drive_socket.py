"""/ws/drive: one session a socket, and how fast its browser may talk. See wire/up.py.

What each message may do is for hub.py.
"""

import asyncio
import functools
import logging
from collections.abc import Callable

from aiohttp import WSMsgType, web

from fpvcar import config
from fpvcar.drive.gate import Freshness
from fpvcar.server.auth.access import Rights
from fpvcar.server.auth.remembered_browsers import Device
from fpvcar.server.http.limits import Meter
from fpvcar.server.sockets.fast_path import Shortcut
from fpvcar.server.sockets.session import CLOSE_S, Closing, TextSession
from fpvcar.wire import down, up
from fpvcar.wire.json_text import DRIVE_MAX_BYTES, Down

MESSAGES_PER_S = 250.0
ESTOP = '{"kind":"estop"}'
"""As the page writes it: the one message that passes the meter."""
HELLO_S = 5.0
HEARTBEAT_S = 10.0
DENY_AGAIN_S = 1.0
FLOOD_PER_S, FLOOD_BURST, FLOOD_PAUSE_S = 500.0, 5000.0, 0.001
"""More than a slip: each message too many then takes time, and TCP slows its sender."""
TOO_MANY = down.Error(
    "too many messages",
    "",
    f"{MESSAGES_PER_S:.0f} a second",
    "send fewer; dropped",
    "too_many_messages",
)
log = logging.getLogger("fpvcar.socket")


class Session(TextSession[up.Upward]):
    """One socket of one browser. The hub owns it."""

    def __init__(
        self, address: str, rights: Rights, limits: config.Gate, device: Device | None = None
    ) -> None:
        """`device`: by which it is known, None if by no cookie."""
        super().__init__(address)
        self.rights, self.device = rights, device
        self.ticket = ""
        """For a cookie, until it is used."""
        self.used_s = 0.0
        """When somebody last did something there, not the page by itself."""
        self.client, self.video, self.name = "", "", ""
        self.fresh = Freshness(limits.stale_s, limits.late_s)
        self.meter = Meter(MESSAGES_PER_S, MESSAGES_PER_S)
        self.patience = Meter(FLOOD_PER_S, FLOOD_BURST)
        self.report: up.Report | None = None
        self.lost: float | None = None
        """The share of the packets of its pictures that was sent again lately."""
        self.copies = 0
        """Connections by which its wishes come as well: /ws/copies."""
        self._denied_s: dict[str, float] = {}

    def sent(self, message: Down | str) -> None:
        """Wishes may return the nonce of this message from now on."""
        if isinstance(message, down.State | down.Pong):
            self.fresh.sent(message.nonce, message.clock_us)

    def may_drive(self, what: str, now_s: float) -> bool:
        """May it do `what` of a driver's? Else its page is told how it may."""
        if not self.rights.drive:
            error = down.Error("you may only watch", what, "", "enter the drive code", "watch_only")
            self.deny(error, now_s)
        return self.rights.drive

    def is_grown_up(self, what: str, acts: str, now_s: float) -> bool:
        """Is it a grown-up's? Else its page is told that only a grown-up `acts`."""
        if not self.rights.grown_up:
            words = f"only a grown-up {acts}"
            next_step = "enter the grown-up code"
            self.deny(down.Error(words, what, "", next_step, "grown_up_only"), now_s)
        return self.rights.grown_up

    def deny(self, error: down.Error, now_s: float) -> None:
        """Answers a well-formed message that is not allowed, at most once a second."""
        if now_s - self._denied_s.get(error.what, -DENY_AGAIN_S) >= DENY_AGAIN_S:
            self._denied_s[error.what] = now_s
            self.send(error)


async def serve(
    request: web.Request,
    session: Session,
    receive: Callable[[Session, up.Upward], None],
    clock_s: Callable[[], float],
) -> web.WebSocketResponse:
    """Runs one /ws/drive socket until it ends. `receive` is the hub's."""
    ws = web.WebSocketResponse(
        compress=False,
        max_msg_size=16 * DRIVE_MAX_BYTES,
        heartbeat=HEARTBEAT_S,
        timeout=CLOSE_S,
        autoping=False,
    )
    await ws.prepare(request)
    transport = request.transport
    if transport is None:  # gone meanwhile
        return ws
    behind = transport.get_protocol()
    assert isinstance(behind, asyncio.Protocol)
    direct = functools.partial(_direct, session, receive, clock_s)
    shortcut = Shortcut(behind, direct, session.close, session.fresh.forget)
    transport.set_protocol(shortcut)
    listening = _listen(ws, session, receive, clock_s, shortcut)
    await session.run(ws, transport, listening, log)
    return ws


def _direct(
    session: Session,
    receive: Callable[[Session, up.Upward], None],
    clock_s: Callable[[], float],
    text: str,
) -> bool:
    """Acts on a message in the callback that read it. False: it is for `_listen`, as a
    hello is, what is too much, and whatever ends the session."""
    if not session.client or session.closing or not session.meter.allow(clock_s()):
        return False
    try:
        heard = session.read(WSMsgType.TEXT, text, up.parse_upward)
        if heard is not None:
            receive(session, heard)
    except Closing as reason:
        session.closing = str(reason)
        return False
    return True


async def _listen(
    ws: web.WebSocketResponse,
    session: Session,
    receive: Callable[[Session, up.Upward], None],
    clock_s: Callable[[], float],
    shortcut: Shortcut,
) -> None:
    """Hears the browser until it goes. Raises Closing."""
    try:
        async with asyncio.timeout(HELLO_S) as waiting:
            async for message in ws:
                if message.type is WSMsgType.TEXT:
                    shortcut.heard()
                if session.closing:
                    raise Closing(session.closing)
                now_s = clock_s()
                allowed = session.meter.allow(now_s) or message.data == ESTOP
                pause_s = 0.0
                if not allowed:
                    session.deny(TOO_MANY, now_s)
                    if not session.patience.allow(now_s):
                        pause_s = FLOOD_PAUSE_S
                        session.fresh.forget()
                elif message.type is WSMsgType.PING:
                    await ws.pong(message.data)
                elif message.type is not WSMsgType.PONG:
                    heard = session.read(message.type, message.data, up.parse_upward)
                    if heard is not None:
                        receive(session, heard)
                if session.client:
                    waiting.reschedule(None)
                # Frames that wait already are read without a pause: let others in.
                await asyncio.sleep(pause_s)
    except TimeoutError:
        raise Closing(f"no hello within {HELLO_S:.0f} s") from None

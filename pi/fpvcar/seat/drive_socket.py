"""/ws/drive: one session per socket, with rate limits for its browser. See wire/up.py.

hub.py decides the effect of each message.
"""

import asyncio
import logging
from collections.abc import Callable

from aiohttp import WSMsgType, web

from fpvcar import config
from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import Device
from fpvcar.drive.gate import Freshness
from fpvcar.http import addresses
from fpvcar.http.fast_path import FastPath
from fpvcar.http.limits import TokenBucket
from fpvcar.http.text_session import NO_HELLO, SessionClosed, TextSession, open_socket
from fpvcar.runtime.texts import VERBATIM, fault_text
from fpvcar.wire import down, up
from fpvcar.wire.json_text import DRIVE_MAX_BYTES, Down

MESSAGES_PER_S = 250.0
ESTOP = '{"kind":"estop"}'
"""E-stop message exactly as the page writes it. Only this message bypasses the meter."""
HELLO_S = 5.0
HEARTBEAT_S = 10.0
DENY_AGAIN_S = 1.0
RENAMES_PER_S, RENAMES_BURST = 0.1, 5.0
"""Rate limit on new names of one socket. Each name of a driver is recorded."""
FLOOD_PER_S, FLOOD_BURST, FLOOD_PAUSE_S = 500.0, 5000.0, 0.001
"""Limits of a flood, beyond an accidental burst: each excess message then costs a pause, and TCP
slows its sender down."""
TOO_MANY = down.Error(
    "too many messages",
    "",
    f"{MESSAGES_PER_S:.0f} a second",
    "send fewer; dropped",
    "too_many_messages",
)
WITH_CODE = up.Hello | up.Unlock
WITH_NONCE = down.State | down.Pong
log = logging.getLogger("fpvcar.socket")


class Session(TextSession[up.Upward]):
    """Session of one socket of one browser. The hub owns it."""

    def __init__(
        self, address: str, rights: Rights, limits: config.Gate, device: Device | None = None
    ) -> None:
        """Create a session; `device` is the device that its cookie proves, None without a
        cookie."""
        super().__init__(address)
        self.rights, self.device = rights, device
        self.ticket = ""
        """Ticket for a cookie, until it is used."""
        self.used_s = 0.0
        """Time of the last action by a person; automatic messages of the page do not count."""
        self.client, self.video, self.name = "", "", ""
        self.way: addresses.Way = "near"
        self.fresh = Freshness(limits.stale_s, limits.late_s)
        self.meter = TokenBucket(MESSAGES_PER_S, MESSAGES_PER_S)
        self.patience = TokenBucket(FLOOD_PER_S, FLOOD_BURST)
        self.renames = TokenBucket(RENAMES_PER_S, RENAMES_BURST)
        self.report: up.Report | None = None
        self.lost: float | None = None
        """Share of its picture packets that was lost lately."""
        self.large = self.preferred = ""
        """Camera of the page's large picture, and with priority on the link; "" is the first."""
        self.copies = 0
        """Number of redundant connections that also carry its wishes: /ws/copies."""
        self._denied_s: dict[str, float] = {}

    def sent(self, message: Down | str) -> None:
        """Register a message's nonce: wishes may return it from now on."""
        if isinstance(message, WITH_NONCE):
            self.fresh.sent(message.nonce, message.clock_us)

    def deny(self, error: down.Error, now_s: float) -> None:
        """Answer a well-formed but forbidden message with an error, at most once a second."""
        if now_s - self._denied_s.get(error.what, -DENY_AGAIN_S) >= DENY_AGAIN_S:
            self._denied_s[error.what] = now_s
            self.send(error)


Receive = Callable[[Session, up.Upward], None]


async def serve(
    request: web.Request,
    session: Session,
    receive: Receive,
    clock_s: Callable[[], float],
    identified: Callable[[Session], None],
) -> web.WebSocketResponse:
    """Run one /ws/drive socket until it ends.

    `receive` belongs to the hub. `identified` is called after each message with a code.
    """
    ws = await open_socket(request, 16 * DRIVE_MAX_BYTES, HEARTBEAT_S)
    transport = request.transport
    if transport is None:  # disconnected during the handshake
        return ws
    behind = transport.get_protocol()
    assert isinstance(behind, asyncio.Protocol)
    reader = SessionReader(session, receive, clock_s, identified)

    def refuse(reason: str) -> None:
        session.close(VERBATIM(text=reason))

    fast_path = FastPath(behind, reader.take_at_once, refuse, session.fresh.forget)
    transport.set_protocol(fast_path)
    await session.run(ws, transport, reader.listen(ws, fast_path), log)
    return ws


class SessionReader:
    """Reader of one session's messages, by the fast path or by aiohttp."""

    def __init__(
        self,
        session: Session,
        receive: Receive,
        clock_s: Callable[[], float],
        identified: Callable[[Session], None],
    ) -> None:
        self._session, self._receive, self._clock_s = session, receive, clock_s
        self._identified = identified

    def take_at_once(self, text: str) -> bool:
        """Handle a message in the callback that read it; return False to leave it to `listen`.

        Left to `listen` are a hello, messages beyond the meter, and messages that end the session.
        """
        session = self._session
        if not session.client or session.closing or not session.meter.allow(self._clock_s()):
            return False
        try:
            self._take(WSMsgType.TEXT, text)
        except SessionClosed as reason:
            session.closing = fault_text(reason)
            return False
        return True

    def _take(self, kind: WSMsgType, data: str | bytes) -> None:
        message = self._session.read(kind, data, up.parse_upward)
        if message is not None:
            self._receive(self._session, message)
            if isinstance(message, WITH_CODE):
                self._identified(self._session)

    async def listen(self, ws: web.WebSocketResponse, fast_path: FastPath) -> None:
        """Read messages until the browser disconnects. Raises SessionClosed."""
        session = self._session
        try:
            async with asyncio.timeout(HELLO_S) as waiting:
                async for message in ws:
                    if message.type is WSMsgType.TEXT:
                        fast_path.acknowledge()
                    if session.closing:
                        raise SessionClosed(session.closing)
                    now_s = self._clock_s()
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
                        self._take(message.type, message.data)
                    if session.client:
                        waiting.reschedule(None)
                    # Frames already received are read without a pause: let other tasks run.
                    await asyncio.sleep(pause_s)
        except TimeoutError:
            raise SessionClosed(NO_HELLO(seconds=f"{HELLO_S:.0f}")) from None

"""/ws/drive: one session a socket; what each message may do. See wire/up.py.

A session never blocks another: each has a sender of its own, in which the newest
state replaces an older one that was not sent yet.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from aiohttp import WSMsgType, web

from fpvcar import config
from fpvcar.drive.gate import Freshness
from fpvcar.server.access import Rights
from fpvcar.server.limits import Meter
from fpvcar.wire import down, up
from fpvcar.wire.errors import WireError
from fpvcar.wire.json_text import DRIVE_MAX_BYTES, encode_downward

MESSAGES_PER_S = 250.0
STRIKES = 3
OUTBOX_MAX = 32
ESTOP = '{"kind":"estop"}'
"""As the page writes it: the one message that passes the meter."""
HELLO_S = 5.0
CLOSE_S = 1.0
FLOOD_PER_S, FLOOD_BURST, FLOOD_PAUSE_S = 500.0, 5000.0, 0.001
"""More than a slip: each message too many then takes time, and TCP slows its sender."""
TOO_MANY = down.Error(
    "too many messages", "", f"{MESSAGES_PER_S:.0f} a second", "send fewer; dropped"
)
log = logging.getLogger("fpvcar.socket")


class Closing(Exception):
    """The session ends; the text is the reason that the browser is told."""


class Session:
    """One socket of one browser. The hub owns it."""

    def __init__(self, address: str, rights: Rights, limits: config.Gate) -> None:
        self.address, self.rights = address, rights
        self.client, self.name = "", ""
        self.fresh = Freshness(limits.stale_s, limits.late_s)
        self.meter = Meter(MESSAGES_PER_S, MESSAGES_PER_S)
        self.patience = Meter(FLOOD_PER_S, FLOOD_BURST)
        self.report: up.Report | None = None
        self.unknown = 0
        self.closing = ""
        self._strikes = 0
        self._said_s: dict[str, float] = {}
        self._state: down.State | None = None
        self._outbox: deque[down.Downward] = deque(maxlen=OUTBOX_MAX)
        self._wake = asyncio.Event()

    def say(self, message: down.Downward) -> None:
        """Queues a message; of states only the newest waits."""
        if isinstance(message, down.State):
            self._state = message
        else:
            self._outbox.append(message)
        self._wake.set()

    def close(self, reason: str) -> None:
        """Ends the session from outside: said once everything else was sent."""
        self.closing = self.closing or reason
        self._wake.set()

    def refuse(self, error: down.Error) -> None:
        """A malformed message: an error, and the third in a row closes."""
        self.say(error)
        self._strikes += 1
        if self._strikes >= STRIKES:
            raise Closing(f"{STRIKES} bad messages in a row: {error.what}")

    def fine(self) -> None:
        """A good message ends the row of bad ones."""
        self._strikes = 0

    def deny(self, error: down.Error, now_s: float) -> None:
        """A well-formed message that may not be: said at most once a second."""
        if now_s - self._said_s.get(error.what, -1.0) >= 1.0:
            self._said_s[error.what] = now_s
            self.say(error)

    async def send_all(self, ws: web.WebSocketResponse) -> None:
        """The sender: one slow browser waits here, alone."""
        while not ws.closed:
            await self._wake.wait()
            self._wake.clear()
            while self._outbox:
                await ws.send_str(encode_downward(self._outbox.popleft()))
            if self._state is not None:
                state, self._state = self._state, None
                await ws.send_str(encode_downward(state))
            if self.closing and not self._outbox:
                await ws.close(code=4000, message=self.closing.encode()[:120])


async def serve(
    request: web.Request,
    session: Session,
    receive: Callable[[Session, up.Upward], None],
    clock_s: Callable[[], float],
) -> web.WebSocketResponse:
    """Runs one /ws/drive socket until it ends. `receive` is the hub's."""
    ws = web.WebSocketResponse(
        compress=False, max_msg_size=16 * DRIVE_MAX_BYTES, heartbeat=10.0,
        timeout=CLOSE_S, autoping=False,
    )  # fmt: skip
    await ws.prepare(request)
    sender = asyncio.create_task(session.send_all(ws))
    try:
        async with asyncio.timeout(HELLO_S) as waiting:
            async for message in ws:
                now_s = clock_s()
                allowed = session.meter.allow(now_s) or message.data == ESTOP
                pause_s = 0.0
                if not allowed:
                    session.deny(TOO_MANY, now_s)
                    pause_s = 0.0 if session.patience.allow(now_s) else FLOOD_PAUSE_S
                elif message.type is WSMsgType.PING:
                    await ws.pong(message.data)
                elif message.type is not WSMsgType.PONG:
                    _take(session, message.type, message.data, receive)
                if session.client:
                    waiting.reschedule(None)
                # Frames that wait already are read without a pause: let others in.
                await asyncio.sleep(pause_s)
    except TimeoutError:
        await _end(session, sender, f"no hello within {HELLO_S:.0f} s")
    except Closing as reason:
        await _end(session, sender, str(reason))
    finally:
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)
    return ws


async def _end(session: Session, sender: "asyncio.Task[None]", reason: str) -> None:
    """Lets the sender say what waits, and the reason; it has a second for that."""
    log.info("%s: closed: %s", session.address, reason)
    session.close(reason)
    await asyncio.wait([sender], timeout=1.0)


def _take(
    session: Session,
    kind: WSMsgType,
    data: str | bytes,
    receive: Callable[[Session, up.Upward], None],
) -> None:
    if kind is not WSMsgType.TEXT:
        session.refuse(down.Error("binary frame refused", "", "JSON text frames"))
        return
    try:
        message = up.parse_upward(data)
    except WireError as fault:
        session.refuse(down.Error(fault.what, fault.value, fault.limit))
        return
    session.fine()
    if message is None:
        session.unknown += 1
    else:
        receive(session, message)

"""/ws/buttons: one page of the children's. See wire/buttons.py for what passes.

Whoever may watch may push: it is light, and nothing here leads to the gate. A page that
sends too much is read slowly, so that it waits and nobody else does; one that is silent
for SILENCE_S is gone, and its fingers with it.
"""

import asyncio
import contextlib
import itertools
import logging
import time

from aiohttp import WSMessage, WSMsgType, web

from fpvcar.buttons.panel import Panel
from fpvcar.server.limits import Meter
from fpvcar.wire import down
from fpvcar.wire.buttons import ButtonsUpward, Choose, Hold, parse_buttons_upward
from fpvcar.wire.errors import WireError
from fpvcar.wire.json_text import DRIVE_MAX_BYTES, encode_downward

SILENCE_S = 3.0
"""A page says twice a second what it holds."""
MESSAGES_PER_S, BURST, PAUSE_S = 30.0, 60.0, 0.05
STRIKES = 3
CLOSE_S = 1.0
log = logging.getLogger("fpvcar.buttons")
_numbers = itertools.count(1)


class Closing(Exception):
    """The session ends; the text is the reason that the page is told."""


class Session:
    """One page. Of what it has not been sent yet only the newest waits."""

    def __init__(self) -> None:
        self.source = f"page {next(_numbers)}"
        self.joined = False
        self._strikes = 0
        self._newest: str | None = None
        self._wake = asyncio.Event()

    def say(self, text: str) -> None:
        """Sends it, or the next one instead."""
        self._newest = text
        self._wake.set()

    def fine(self) -> None:
        """A good message ends the row of bad ones."""
        self._strikes = 0

    def refuse(self, fault: WireError) -> str:
        """What the page is told; the third in a row raises Closing."""
        self._strikes += 1
        if self._strikes >= STRIKES:
            raise Closing(f"{STRIKES} bad messages in a row: {fault.what}")
        error = down.Error(fault.what, fault.value, fault.limit)
        return encode_downward(error)

    async def send_all(self, ws: web.WebSocketResponse) -> None:
        """The sender: one slow browser waits here, alone."""
        while not ws.closed:
            await self._wake.wait()
            self._wake.clear()
            text, self._newest = self._newest, None
            if text is not None:
                await ws.send_str(text)


async def serve(request: web.Request, panel: Panel) -> web.WebSocketResponse:
    """Runs one socket until it ends."""
    ws = web.WebSocketResponse(
        compress=False, max_msg_size=DRIVE_MAX_BYTES, timeout=CLOSE_S,
        autoping=False,
    )  # fmt: skip
    await ws.prepare(request)
    session = Session()
    sender = asyncio.create_task(session.send_all(ws))
    reason = ""
    try:
        await _listen(ws, session, panel)
    except Closing as ending:
        reason = str(ending)
    except ConnectionError:  # it went while it was spoken to
        pass
    finally:
        panel.leave(session)
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)
    if reason:
        log.info("%s: closed: %s", request.remote, reason)
        await _close(ws, reason)
    return ws


async def _listen(ws: web.WebSocketResponse, session: Session, panel: Panel) -> None:
    """Until the page goes. Raises Closing."""
    meter, loop = Meter(MESSAGES_PER_S, BURST), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(SILENCE_S) as waiting:
            async for message in ws:
                if not meter.allow(time.monotonic()):
                    await asyncio.sleep(PAUSE_S)
                if message.type is WSMsgType.PING:
                    await ws.pong(message.data)
                elif message.type is not WSMsgType.PONG:
                    await _hear(message, ws, session, panel)
                    waiting.reschedule(loop.time() + SILENCE_S)
                # Frames that wait already are read without a pause: let others in.
                await asyncio.sleep(0)
    except TimeoutError:
        raise Closing(f"no word for {SILENCE_S:.0f} s") from None


async def _hear(
    message: WSMessage, ws: web.WebSocketResponse, session: Session, panel: Panel
) -> None:
    try:
        heard = _read(message, session)
    except WireError as fault:
        await ws.send_str(session.refuse(fault))
        return
    session.fine()
    if isinstance(heard, Hold | Choose):
        panel.receive(session, heard)
    elif heard is not None and not session.joined:
        session.joined = True
        await ws.send_str(encode_downward(panel.welcome()))
        panel.join(session)


def _read(message: WSMessage, session: Session) -> ButtonsUpward | None:
    """Raises WireError."""
    if message.type is not WSMsgType.TEXT:
        raise WireError("binary frame refused", None, "JSON text")
    heard = parse_buttons_upward(message.data)
    if not session.joined and isinstance(heard, Hold | Choose):
        raise WireError("hello first", None, "hello")
    return heard


async def _close(ws: web.WebSocketResponse, reason: str) -> None:
    with contextlib.suppress(TimeoutError):  # it does not read either
        async with asyncio.timeout(CLOSE_S):
            await ws.close(code=4000, message=reason.encode()[:120])

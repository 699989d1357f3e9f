"""/ws/buttons: one socket of a children's page. See wire/buttons.py for the messages.

Every viewer may push buttons: they cause light effects only, and no code here reaches the gate. A
page that sends too much is read slowly, so that it delays only itself. A page that is silent for
SILENCE_S is disconnected, and its fingers are released.
"""

import asyncio
import itertools
import logging
import time

from aiohttp import WSMessage, WSMsgType, web

from fpvcar.buttons.panel import Panel
from fpvcar.http.limits import TokenBucket
from fpvcar.http.text_session import CLOSE_S, SILENT, SessionClosed, TextSession
from fpvcar.wire.buttons import ButtonsUpward, Choose, Hold, parse_buttons_upward
from fpvcar.wire.errors import WireError
from fpvcar.wire.json_text import DRIVE_MAX_BYTES

SILENCE_S = 3.0
"""Time limit for silence. A page sends its held buttons twice a second."""
MESSAGES_PER_S, BURST, PAUSE_S = 30.0, 60.0, 0.05
log = logging.getLogger("fpvcar.buttons")
_numbers = itertools.count(1)


class Session(TextSession[ButtonsUpward]):
    """Socket of one page; `source` names its fingers to the panel."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.source = f"page {next(_numbers)}"
        self.joined = False

    def parse(self, text: str | bytes) -> ButtonsUpward:
        """Parse the message of one frame. Raises WireError."""
        message = parse_buttons_upward(text)
        if not self.joined and isinstance(message, Hold | Choose):
            raise WireError("hello first", None, "hello")
        return message


async def serve(request: web.Request, panel: Panel) -> web.WebSocketResponse:
    """Run one /ws/buttons socket until it ends."""
    ws = web.WebSocketResponse(
        compress=False, max_msg_size=DRIVE_MAX_BYTES, timeout=CLOSE_S, autoping=False
    )
    await ws.prepare(request)
    session = Session(request.remote or "")
    await session.run(ws, request.transport, _listen(ws, session, panel), log)
    return ws


async def _listen(ws: web.WebSocketResponse, session: Session, panel: Panel) -> None:
    """Read messages until the page disconnects. Raises SessionClosed."""
    meter, loop = TokenBucket(MESSAGES_PER_S, BURST), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(SILENCE_S) as waiting:
            async for message in ws:
                if not meter.allow(time.monotonic()):
                    await asyncio.sleep(PAUSE_S)
                if message.type is WSMsgType.PING:
                    await ws.pong(message.data)
                elif message.type is not WSMsgType.PONG:
                    _take(session, message, panel)
                    waiting.reschedule(loop.time() + SILENCE_S)
                # Frames already received are read without a pause: let other tasks run.
                await asyncio.sleep(0)
    except TimeoutError:
        raise SessionClosed(SILENT(seconds=f"{SILENCE_S:.0f}")) from None
    finally:
        panel.leave(session)


def _take(session: Session, message: WSMessage, panel: Panel) -> None:
    parsed = session.read(message.type, message.data, session.parse)
    if isinstance(parsed, Hold | Choose):
        panel.receive(session, parsed)
    elif parsed is not None and not session.joined:
        session.joined = True
        session.send(panel.welcome())
        panel.join(session)

"""Text socket of a session: incoming messages, outgoing queue, and closing.

    frame -> parse -> malformed: an error; the third in a row closes
                   -> unknown: counted, the first few are answered
                   -> good: for the session's owner
    send, send_newest -> at once, if the queue is empty
                      -> otherwise outbox, or one slot -> send_all (a task of its own)

A slow peer delays only its own sender.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from aiohttp import WSMsgType, web

from fpvcar.http.limits import TokenBucket
from fpvcar.runtime.texts import VERBATIM, Phrase, Text, fault_text
from fpvcar.video.stream import TEXT, frame_head
from fpvcar.wire.down import Closing, Error
from fpvcar.wire.errors import UnknownKind, WireError
from fpvcar.wire.json_text import DRIVE_MAX_BYTES, Down, encode_downward, encoded

CLOSE_MESSAGES = Phrase("close_messages", "{count} bad messages in a row: {what}")

ONLY_DRIVER = Text("close_driver", "only the driver can use it")
NO_HELLO = Phrase("close_hello", "no hello within {seconds} s")
SILENT = Phrase("close_silent", "no message for {seconds} s")

STRIKES = 3
UNKNOWN_ANSWERED = 5
"""Most messages of an unknown kind that are answered per socket."""
OUTBOX_MAX = 32
CLOSE_S = 1.0
"""Time limit in seconds for a peer to read the queued messages and the reason for closing."""
REASON_MOST = 120
"""Bytes of a close frame's reason."""
REFUSED = 4000
"""WebSocket close code of a session that the car ends."""
SILENCE_S = 3.0
"""Time limit for silence of a page at the socket of a feature."""
MESSAGES_PER_S, BURST, PAUSE_S = 30.0, 60.0, 0.05
ELSEWHERE = 4001
"""WebSocket close code of a session that its page has reopened on another socket."""
Message = TypeVar("Message")


def close_reason(text: Text) -> bytes:
    """Return the reason of a close frame: the key of the text, which a Closing has whole."""
    reason = str(text) if text.key == VERBATIM.key else text.key
    return reason.encode()[:REASON_MOST].decode(errors="ignore").encode()


class SessionClosed(Exception):
    """Raised to end the session; its Text is the reason sent to the browser."""


class TextSession(Generic[Message]):
    """Session over one text socket. `unknown` counts messages of a kind that this version cannot
    parse."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.unknown = 0
        self.closing: Text | None = None
        self._close_code = REFUSED
        self._strikes = 0
        self._newest: Down | str | None = None
        self._outbox: deque[Down] = deque(maxlen=OUTBOX_MAX)
        self._wake = asyncio.Event()
        self._ws: web.WebSocketResponse | None = None
        self._transport: asyncio.Transport | None = None

    # --- incoming ---

    def read(
        self, kind: WSMsgType, data: str | bytes, parse: Callable[[str | bytes], Message]
    ) -> Message | None:
        """Return the message of a frame; None if it is refused or unknown.

        Raises SessionClosed for one malformed message too many.
        """
        try:
            if kind is not WSMsgType.TEXT:
                raise WireError("binary frame refused", None, "JSON text frames")
            message = parse(data)
        except UnknownKind as fault:
            self._strikes = 0
            self.unknown += 1
            if self.unknown <= UNKNOWN_ANSWERED:
                next_step = "ignored: reload the page, or update the program"
                error = Error(fault.what, fault.value, fault.limit, next_step, "unknown_kind")
                self.send(error)
            return None
        except WireError as fault:
            self.refuse(Error(fault.what, fault.value, fault.limit))
            return None
        self._strikes = 0
        return message

    def refuse(self, error: Error) -> None:
        """Answer a malformed message with an error. Raises SessionClosed at the third in a row."""
        self.send(error)
        self._strikes += 1
        if self._strikes >= STRIKES:
            raise SessionClosed(CLOSE_MESSAGES(count=STRIKES, what=error.what))

    # --- outgoing ---

    def send(self, message: Down) -> None:
        """Send a message or queue it; a full queue drops its oldest message."""
        if not self._written(message):
            self._outbox.append(message)
            self._wake.set()

    def send_newest(self, message: Down | str) -> None:
        """Send a message behind the queue, unless a newer one replaces it; send a str unchanged."""
        if not self._written(message):
            self._newest = message
            self._wake.set()

    def _written(self, message: Down | str) -> bool:
        """Write a message at once if the kernel has taken all earlier data; return whether it
        was written.

        This runs in the current callback, and bypasses the sender task and aiohttp's writer.
        """
        ws, transport = self._ws, self._transport
        if ws is None or ws.closed or self._outbox or self._newest is not None:
            return False
        if transport is None or transport.is_closing() or self.closing:
            return False
        if transport.get_write_buffer_size():
            return False
        text = message.encode() if isinstance(message, str) else encoded(message)
        transport.write(frame_head(len(text), TEXT) + text)
        self.sent(message)
        return True

    def sent(self, message: Down | str) -> None:
        """Handle a message that was passed to the kernel; subclasses override this."""

    def close(self, reason: Text, code: int = REFUSED) -> None:
        """End the session from outside; the reason is sent behind all queued messages."""
        self._close_code = self._close_code if self.closing else code
        self.closing = self.closing or reason
        self._wake.set()

    # --- life cycle ---

    async def run(
        self,
        ws: web.WebSocketResponse,
        transport: asyncio.Transport | None,
        listening: Coroutine[Any, Any, None],
        log: logging.Logger,
    ) -> None:
        """Send queued messages while `listening` reads, until it ends or raises SessionClosed."""
        self._ws, self._transport = ws, transport
        sender = asyncio.create_task(self._send_all(ws))
        try:
            await listening
        except SessionClosed as reason:
            log.info("%s: closed: %s", self.address, reason)
            self.close(fault_text(reason))
            await asyncio.wait([sender], timeout=CLOSE_S)
        except ConnectionError:  # the peer disconnected during a write
            pass
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def _send_all(self, ws: web.WebSocketResponse) -> None:
        while not ws.closed:
            await self._wake.wait()
            self._wake.clear()
            while self._outbox:
                await self._send(ws, self._outbox.popleft())
            newest, self._newest = self._newest, None
            if newest is not None:
                await self._send(ws, newest)
            if self.closing and not self._outbox:
                if self._close_code != ELSEWHERE:  # its page shows nothing of it
                    await self._send(ws, Closing(self.closing))
                await ws.close(code=self._close_code, message=close_reason(self.closing))

    async def _send(self, ws: web.WebSocketResponse, message: Down | str) -> None:
        self.sent(message)
        text = message if isinstance(message, str) else encode_downward(message)
        await ws.send_str(text)


async def open_socket(
    request: web.Request, longest: int, heartbeat_s: float | None = None
) -> web.WebSocketResponse:
    """Shake hands; frames have at most `longest` bytes. The caller answers pings, within its
    limits."""
    ws = web.WebSocketResponse(
        compress=False, max_msg_size=longest, heartbeat=heartbeat_s, timeout=CLOSE_S, autoping=False
    )
    await ws.prepare(request)
    return ws


async def serve_text(
    request: web.Request,
    session: TextSession[Message],
    parse: Callable[[str | bytes], Message],
    receive: Callable[[Message], None],
    log: logging.Logger,
) -> web.WebSocketResponse:
    """Run the socket of a feature until it ends.

    A page that sends too much is read slowly, so that it delays only itself. A page that is silent
    for SILENCE_S is disconnected.
    """
    meter, loop = TokenBucket(MESSAGES_PER_S, BURST), asyncio.get_running_loop()

    async def listen() -> None:
        try:
            async with asyncio.timeout(SILENCE_S) as waiting:
                async for message in ws:
                    if not meter.allow(loop.time()):
                        await asyncio.sleep(PAUSE_S)
                    if message.type is WSMsgType.PING:
                        await ws.pong(message.data)
                    elif message.type is not WSMsgType.PONG:
                        parsed = session.read(message.type, message.data, parse)
                        if parsed is not None:
                            receive(parsed)
                        waiting.reschedule(loop.time() + SILENCE_S)
                    # Frames already received are read without a pause: let other tasks run.
                    await asyncio.sleep(0)
        except TimeoutError:
            raise SessionClosed(SILENT(seconds=f"{SILENCE_S:.0f}")) from None

    ws = await open_socket(request, DRIVE_MAX_BYTES)
    await session.run(ws, request.transport, listen(), log)
    return ws

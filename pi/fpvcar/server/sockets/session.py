"""One text socket: what it hears, what it is sent, when it is closed.

    frame -> parse -> malformed: an error; the third in a row closes
                   -> unknown: counted, the first few are answered
                   -> good: for the session's owner
    send, send_newest -> at once, where nothing waits before it
                      -> else outbox, or one slot -> send_all (a task of its own)

A peer that reads slowly waits alone: nothing here waits for it but its own sender.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from aiohttp import WSMsgType, web

from fpvcar.video.stream import TEXT, framed
from fpvcar.wire.down import Error
from fpvcar.wire.errors import UnknownKind, WireError
from fpvcar.wire.json_text import Down, encode_downward, encoded

STRIKES = 3
UNKNOWN_ANSWERED = 5
"""Messages of an unknown kind that are answered, for each socket."""
OUTBOX_MAX = 32
CLOSE_S = 1.0
"""How long a peer has to read what waits and why it is closed."""
REFUSED = 4000
"""WebSocket close code of a session that the car ends."""
ELSEWHERE = 4001
"""WebSocket close code of a session that its page has begun anew on another socket."""
Message = TypeVar("Message")


class Closing(Exception):
    """The session ends; the text is the reason that the browser is told."""


class TextSession(Generic[Message]):
    """One socket. `unknown` counts messages of a kind that no version knows."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.unknown = 0
        self.closing = ""
        self._close_code = REFUSED
        self._strikes = 0
        self._newest: Down | str | None = None
        self._outbox: deque[Down] = deque(maxlen=OUTBOX_MAX)
        self._wake = asyncio.Event()
        self._ws: web.WebSocketResponse | None = None
        self._transport: asyncio.Transport | None = None

    # --- what it hears ---

    def read(
        self, kind: WSMsgType, data: str | bytes, parse: Callable[[str | bytes], Message]
    ) -> Message | None:
        """The message of a frame; None if it is refused or unknown.

        Raises Closing for one malformed message too many.
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
        """A malformed message: an error, and the third in a row raises Closing."""
        self.send(error)
        self._strikes += 1
        if self._strikes >= STRIKES:
            raise Closing(f"{STRIKES} bad messages in a row: {error.what}")

    # --- what it is sent ---

    def send(self, message: Down) -> None:
        """Sends it, or queues it; when too many wait, the oldest is dropped."""
        if not self._written(message):
            self._outbox.append(message)
            self._wake.set()

    def send_newest(self, message: Down | str) -> None:
        """Sends it behind the queue, unless a newer one comes first; a str as it is."""
        if not self._written(message):
            self._newest = message
            self._wake.set()

    def _written(self, message: Down | str) -> bool:
        """Writes it now, if all before it is with the kernel: in this callback, past a
        task that would wait for it, and aiohttp's writer."""
        ws, transport = self._ws, self._transport
        if ws is None or ws.closed or self._outbox or self._newest is not None:
            return False
        if transport is None or transport.is_closing() or self.closing:
            return False
        if transport.get_write_buffer_size():
            return False
        text = message.encode() if isinstance(message, str) else encoded(message)
        transport.write(framed(text, TEXT))
        self.sent(message)
        return True

    def sent(self, message: Down | str) -> None:
        """Called for each message that is handed to the kernel."""

    def close(self, reason: str, code: int = REFUSED) -> None:
        """Ends the session from outside; the reason goes out behind all that waits."""
        self._close_code = self._close_code if self.closing else code
        self.closing = self.closing or reason
        self._wake.set()

    # --- its life ---

    async def run(
        self,
        ws: web.WebSocketResponse,
        transport: asyncio.Transport | None,
        listening: Coroutine[Any, Any, None],
        log: logging.Logger,
    ) -> None:
        """Sends while `listening` hears, until that ends or raises Closing."""
        self._ws, self._transport = ws, transport
        sender = asyncio.create_task(self._send_all(ws))
        try:
            await listening
        except Closing as reason:
            log.info("%s: closed: %s", self.address, reason)
            self.close(str(reason))
            await asyncio.wait([sender], timeout=CLOSE_S)
        except ConnectionError:  # it went while it was spoken to
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
                reason = self.closing.encode()[:120]
                await ws.close(code=self._close_code, message=reason)

    async def _send(self, ws: web.WebSocketResponse, message: Down | str) -> None:
        self.sent(message)
        text = message if isinstance(message, str) else encode_downward(message)
        await ws.send_str(text)

"""Whole text frames of a browser, acted on in the callback that read them.

    socket -> Shortcut -> take(text)           an act, at once
                       -> aiohttp's protocol   every other frame, and what take declines

aiohttp hands each frame to a task that waits for it, which costs two more turns of the
loop: for a command as much as the command itself. Frames stay in order: while one that
was handed on is not `heard`, those behind it are handed on as well.
"""

import asyncio
from collections.abc import Callable

TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
"""First byte of a frame that is a whole message (RFC 6455, 5.2)."""
WHOLE = (TEXT, CLOSE, PING, PONG)
MASKED = 0x80
MASK_BYTES = 4
LONGEST = 4096
AT_ONCE = 4
"""Frames of one read that are acted on; a page that drives sends two at most."""
CUT_MOST = 64
"""Frames of one read that are cut: what a link that stood for a second brings."""


class Shortcut(asyncio.Protocol):
    """Stands before `behind`, the protocol of a WebSocket whose handshake is done.

    `take` acts on a text and returns True, or False: it takes the long way.
    """

    def __init__(self, behind: asyncio.Protocol, take: Callable[[str], bool]) -> None:
        self._behind, self._take = behind, take
        self._rest = b""
        self._on_their_way = 0
        self._odd = False
        self.pause_writing = behind.pause_writing  # type: ignore[method-assign]
        self.resume_writing = behind.resume_writing  # type: ignore[method-assign]
        self.eof_received = behind.eof_received  # type: ignore[method-assign]
        self.connection_lost = behind.connection_lost  # type: ignore[method-assign]

    def heard(self) -> None:
        """A text that was handed on has been acted on; or one from before this stood
        here, of a peer that did not await the handshake."""
        self._on_their_way = max(0, self._on_their_way - 1)

    def data_received(self, data: bytes) -> None:
        """Cuts frames; those behind the first few of a read take the long way. From the
        first one on that is not as a page sends them, in one piece and no flood,
        everything is handed on as it comes: to cut a flood would hold the loop up."""
        if self._odd:
            self._behind.data_received(data)
            return
        data, at, frames = self._rest + data, 0, 0
        self._rest = b""
        while at < len(data):
            begin, end = frame(data, at)
            frames += 1
            if end < 0 or frames > CUT_MOST:
                self._odd = True
                self._behind.data_received(data[at:])
                return
            if end > len(data) or not end:
                self._rest = data[at:]
                return
            if data[at] == TEXT:
                if frames <= AT_ONCE and not self._on_their_way:
                    text = unmasked(data, begin, end)
                    if text is not None and self._take(text):
                        at = end
                        continue
                self._on_their_way += 1
            self._behind.data_received(data[at:end])
            at = end


def frame(data: bytes, at: int) -> tuple[int, int]:
    """(begin of the mask, end) of the frame at `at`; the end may lie beyond `data`. End
    0: more is needed to know; -1: it is none of a whole, short, masked message."""
    if len(data) - at < 2:
        return 0, 0
    size, begin = data[at + 1] - MASKED, at + 2
    if data[at] not in WHOLE or not 0 <= size < 127:
        return 0, -1
    if size == 126:
        if len(data) - begin < 2:
            return 0, 0
        size, begin = int.from_bytes(data[begin : begin + 2]), begin + 2
    return begin, begin + MASK_BYTES + size if size <= LONGEST else -1


def unmasked(data: bytes, begin: int, end: int) -> str | None:
    """The text of a frame whose mask is at `begin` (RFC 6455, 5.3); None: it is not
    UTF-8, and aiohttp knows what to answer."""
    size = end - begin - MASK_BYTES
    mask = data[begin : begin + MASK_BYTES] * (size // MASK_BYTES + 1)
    payload = int.from_bytes(data[begin + MASK_BYTES : end])
    try:
        return (payload ^ int.from_bytes(mask[:size])).to_bytes(size).decode()
    except UnicodeDecodeError:
        return None

"""Whole text frames of a browser, acted on in the callback that read them.

    socket -> Shortcut -> take(text)           an act, at once
                       -> aiohttp's protocol   every other frame, and what take declines
                       -> refuse(reason)       a frame that no client may send

aiohttp hands each frame to a task that waits for it, which costs two more turns of the
loop: for a command as much as the command itself. Frames stay in order: while one that
was handed on is not `heard`, those behind it are handed on as well. Nothing behind a
CLOSE or a refused frame is read.
"""

import asyncio
from collections.abc import Callable

TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
"""First byte of a frame that is a whole message (RFC 6455, 5.2)."""
WHOLE = (TEXT, CLOSE, PING, PONG)
CONTROL = 0x08
"""The bit of a first byte that CLOSE, PING and PONG have in common (5.5)."""
MASKED = 0x80
CONTROL_MOST = 125
MASK_BYTES = 4
LONGEST = 4096
AT_ONCE = 4
"""Frames of one read that are acted on; a page that drives sends two at most."""
CUT_MOST = 64
"""Frames of one read that are cut: what a link that stood for a second brings."""
HEADS_MOST = 256
"""Frames of one read that are handed on; of the shortest that a page sends, an e-stop,
190 fill a read."""


class Shortcut(asyncio.Protocol):
    """Stands before `behind`, the protocol of a WebSocket whose handshake is done.

    `take` acts on a text and returns True, or False: it takes the long way.
    `refuse(reason)` ends the session. `paced()` is called when the peer had to wait
    because it sends too fast.
    """

    def __init__(
        self,
        behind: asyncio.Protocol,
        take: Callable[[str], bool],
        refuse: Callable[[str], None],
        paced: Callable[[], None],
    ) -> None:
        self._behind, self._take, self._refuse = behind, take, refuse
        self.paced = paced
        self._rest = b""
        self._on_their_way = 0
        self._odd = self._ended = False
        self._payload = 0
        """Bytes still to come of the frame that was handed on in part."""
        self.pause_writing = behind.pause_writing  # type: ignore[method-assign]
        self.resume_writing = behind.resume_writing  # type: ignore[method-assign]
        self.eof_received = behind.eof_received  # type: ignore[method-assign]
        self.connection_lost = behind.connection_lost  # type: ignore[method-assign]

    def heard(self) -> None:
        """A text that was handed on has been acted on; or one from before this stood
        here, of a peer that did not await the handshake."""
        self._on_their_way = max(0, self._on_their_way - 1)

    def data_received(self, data: bytes) -> None:
        """Acts on the first few texts of a read; frames behind them take the long way.
        From the first frame on that is not as a page sends it, in one piece and no
        flood, only heads are checked: to cut a flood would hold the loop up."""
        if self._ended:
            return
        data, at, frames = self._rest + data, 0, 0
        self._rest = b""
        while at < len(data) and not self._odd:
            begin, end = frame(data, at)
            frames += 1
            if end < 0 or frames > CUT_MOST:
                self._odd = True
                data, at = data[at:], 0
            elif end > len(data) or not end:
                self._rest = data[at:]
                return
            elif frames <= AT_ONCE and self._took(data, at, begin, end):
                at = end
            else:
                self._on_their_way += data[at] == TEXT
                self._behind.data_received(data[at:end])
                if data[at] == CLOSE:
                    self._ended = True
                    return
                at = end
        if self._odd:
            self._hand_on(data)

    def _took(self, data: bytes, at: int, begin: int, end: int) -> bool:
        if data[at] != TEXT or self._on_their_way:
            return False
        text = unmasked(data, begin, end)
        return text is not None and self._take(text)

    def _hand_on(self, data: bytes) -> None:
        """Hands frames on, up to a CLOSE or to one that no client may send."""
        at, frames, reason = self._payload, 0, ""
        while at < len(data):
            end, reason = head(data, at)
            frames += 1
            if frames > HEADS_MOST:
                reason = f"more than {HEADS_MOST} frames at once"
            if reason or not end or (data[at] == CLOSE and end > len(data)):
                self._rest, data = data[at:], data[:at]
                break
            if data[at] == CLOSE:
                self._ended, data = True, data[:end]
            at = end
        self._payload = max(0, at - len(data))
        if data:
            self._behind.data_received(data)
        if reason:
            self._ended = True
            self._refuse(reason)


def head(data: bytes, at: int) -> tuple[int, str]:
    """(end of the frame at `at`, why no client may send it). End 0: more is needed to
    know."""
    if len(data) - at < 2:
        return 0, ""
    size, begin = data[at + 1] - MASKED, at + 2
    if size < 0:
        return 0, "frame without a mask"
    if size > CONTROL_MOST:
        if data[at] & CONTROL:
            return 0, f"control frame of more than {CONTROL_MOST} bytes"
        length = 2 if size == 126 else 8
        if len(data) - begin < length:
            return 0, ""
        size, begin = int.from_bytes(data[begin : begin + length]), begin + length
    return begin + MASK_BYTES + size, ""


def frame(data: bytes, at: int) -> tuple[int, int]:
    """(begin of the mask, end) of the frame at `at`; the end may lie beyond `data`. End
    0: more is needed to know; -1: it is none of a whole, short, masked message."""
    if len(data) - at < 2:
        return 0, 0
    size, begin = data[at + 1] - MASKED, at + 2
    if data[at] not in WHOLE or not 0 <= size < 127:
        return 0, -1
    if size == 126:
        if data[at] != TEXT:  # control frames are short
            return 0, -1
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

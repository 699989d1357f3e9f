"""Downloads of large answers: read in a thread, sent in pieces, slower while the car is driven.

    card -> (one thread) a piece -> RateLimit: wait for its turn -> socket, if it has room
                                                                 -> the next piece

The event loop that drives the car reads no card, waits for no client, and holds no whole file.
aiohttp's FileResponse would pass a file to sendfile(2), which reads the card on the loop: a slow
card would stop the car.
"""

import asyncio
import contextlib
import math
import os
import time
import urllib.parse
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

from aiohttp import ETag, web

from fpvcar.http.slots import Slot, Slots
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.units import MB

PIECE_BYTES = 64 * 1024
SHARED_BYTES_S = MB
"""Byte rate of all answers together while the car is driven. Half of the Wi-Fi throughput of a
small Pi remains for pictures."""
STALLED_S = 20.0
"""Time limit for a client that takes no data. A file removed by the ring keeps its space on the
card while it is being read."""
BUSY_S, BUSY_MOST_S = 0.001, 0.05
T = TypeVar("T")


class RateLimit:
    """Limit on the bytes per second of all answers together. Time is an argument."""

    def __init__(self) -> None:
        self._free_s = -math.inf

    def wait_s(self, size: int, rate: float, now_s: float) -> float:
        """Return the seconds these bytes have to wait for earlier ones."""
        begin_s = max(self._free_s, now_s)
        self._free_s = begin_s + size / rate
        return begin_s - now_s


Driven = Callable[[], bool]
"""Function that returns whether a driver has the wheel now."""


class CpuThrottle:
    """Throttle for the reading thread: while the car is driven, it uses the interpreter for a
    fifth of the time, since the gate needs it too. `used_s()` is the thread's CPU time."""

    def __init__(
        self,
        driven: Driven,
        used_s: Clock = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._driven, self._used_s, self._sleep = driven, used_s, sleep
        self._rested_s = 0.0

    def rest(self) -> None:
        """Sleep if the thread was busy for long enough; otherwise return at once."""
        busy_s = self._used_s() - self._rested_s
        if busy_s < BUSY_S:
            return
        if self._driven():
            self._sleep(4.0 * min(busy_s, BUSY_MOST_S))
        self._rested_s = self._used_s()


class Part(NamedTuple):
    """Requested part of a file: bytes `begin` to before `end`."""

    status: int
    begin: int
    end: int


def part_of(request: web.BaseRequest, etag: str, size: int) -> Part:
    """Return the requested part by RFC 9110, sections 13 and 14, without dates.

    Raises HTTPException.
    """
    accepted, known_etags = request.if_match, request.if_none_match
    if accepted is not None and not _among(accepted, etag, weak=False):
        raise web.HTTPPreconditionFailed(text="The recording has changed.\n")
    if known_etags is not None and _among(known_etags, etag, weak=True):
        raise web.HTTPNotModified(headers={"ETag": f'"{etag}"'})
    unchanged = request.headers.get("If-Range", f'"{etag}"') == f'"{etag}"'
    if "Range" not in request.headers or not unchanged:
        return Part(200, 0, size)
    try:
        requested = range(size)[request.http_range]
    except ValueError:  # no range, several, or backwards
        requested = range(0)
    if not requested:
        raise web.HTTPRequestRangeNotSatisfiable(
            text=f"This range cannot be sent: there are {size} bytes.\n",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return Part(206, requested.start, requested.stop)


def _among(etags: tuple[ETag, ...], etag: str, weak: bool) -> bool:
    return any(tag.value in ("*", etag) and (weak or not tag.is_weak) for tag in etags)


class Downloads:
    """Sender of all answers of one car. `driven()` returns whether a driver holds the wheel."""

    def __init__(self, driven: Driven, clock_s: Clock, stalled_s: float = STALLED_S) -> None:
        self._driven, self._clock_s, self._stalled_s = driven, clock_s, stalled_s
        # One thread: the car has other work.
        self._thread = ThreadPoolExecutor(1, "recordings")
        self._limit = RateLimit()
        self._slots = Slots(clock_s)

    async def in_thread(self, act: Callable[[], T]) -> T:
        """Run blocking work in the thread. Raises the errors of `act`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)

    def later(self, act: Callable[[], None]) -> None:
        """Run `act` after all queued work; its result and errors are discarded."""
        with contextlib.suppress(RuntimeError):  # it is closed already
            self._thread.submit(act)

    def close(self) -> None:
        """End the thread and cancel queued work."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def send(
        self, request: web.Request, headers: Mapping[str, str], make: Callable[[], bytes]
    ) -> web.StreamResponse:
        """Send an answer that `make` builds as a whole in the thread. Raises the errors of
        `make`."""
        slot = Slot(partial(cut_off, request))
        await self._slots.enter(slot)
        try:
            body = memoryview(await self.in_thread(make))
            response = web.StreamResponse(headers=headers)
            response.content_length = len(body)
            await response.prepare(request)
            if request.method != "HEAD":
                for at in range(0, len(body), PIECE_BYTES):
                    piece = body[at : at + PIECE_BYTES]
                    await self._turn(len(piece))
                    slot.blocked(self._clock_s())
                    await self._write(request, response, piece)
                    slot.written(self._clock_s())
        finally:
            self._slots.leave(slot)
        await response.write_eof()
        return response

    async def send_file(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        opened: Callable[[], int],
        etag: str = "",
    ) -> web.StreamResponse:
        """Send a file or the requested part of it; `opened` opens it, and this method closes it.

        The default `etag` is derived from inode, time and size. Raises HTTPException, and the
        errors of `opened`.
        """
        file = await self.in_thread(opened)
        try:
            status = await self.in_thread(partial(os.fstat, file))
            etag = etag or f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
            part = part_of(request, etag, status.st_size)
            response = web.StreamResponse(status=part.status, headers=headers)
            response.etag = etag
            response.headers["Accept-Ranges"] = "bytes"
            if part.status == 206:
                response.headers["Content-Range"] = (
                    f"bytes {part.begin}-{part.end - 1}/{status.st_size}"
                )
            response.content_length = part.end - part.begin
            await response.prepare(request)
            if request.method != "HEAD":
                await self._pour(request, response, file, part)
            await response.write_eof()
            return response
        finally:
            self.later(partial(os.close, file))  # after the last queued read of this file

    async def stream(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        pieces: Generator[bytes, None, None],
        size: int | None,
        sent: Callable[[int], None],
    ) -> web.StreamResponse:
        """Send an answer that is produced piece by piece, in the thread, during sending.

        `size` is the total size if known. `sent` is called with the size of each piece. The work
        ends with the connection. Raises ConnectionError, and the errors of `pieces`: then the
        connection is aborted, so that the client detects the incomplete answer.
        """
        response = web.StreamResponse(headers=headers)
        try:
            if size is None:
                response.enable_chunked_encoding()
            else:
                response.content_length = size
            await response.prepare(request)
            if request.method != "HEAD":
                following = partial(next, pieces, None)
                while (piece := await self.in_thread(following)) is not None:
                    if piece:
                        await self._send(request, response, piece)
                        sent(len(piece))
                    elif request.transport is None or request.transport.is_closing():
                        raise ConnectionResetError("the client has disconnected")
            await response.write_eof()
        except Exception:
            cut_off(request)
            raise
        finally:
            self.later(pieces.close)
        return response

    async def _pour(
        self, request: web.Request, response: web.StreamResponse, file: int, part: Part
    ) -> None:
        at = part.begin
        while at < part.end:
            size = min(PIECE_BYTES, part.end - at)
            try:
                piece = await self.in_thread(partial(os.pread, file, size, at))
            except OSError:  # the card fails: the head of the answer has been sent
                piece = b""
            if not piece:  # or the file was truncated
                raise cut_off(request)
            await self._send(request, response, piece)
            at += len(piece)

    async def _send(
        self, request: web.Request, response: web.StreamResponse, piece: bytes | memoryview
    ) -> None:
        """Send a piece in its turn. Raises ConnectionError."""
        await self._turn(len(piece))
        await self._write(request, response, piece)

    async def _turn(self, size: int) -> None:
        """Wait until so many bytes may be sent: while the car is driven, all answers share a
        rate."""
        if self._driven():
            wait_s = self._limit.wait_s(size, SHARED_BYTES_S, self._clock_s())
            await asyncio.sleep(wait_s)

    async def _write(
        self, request: web.Request, response: web.StreamResponse, piece: bytes | memoryview
    ) -> None:
        try:
            async with asyncio.timeout(self._stalled_s):
                await response.write(piece)
        except TimeoutError:
            raise cut_off(request) from None


def as_file(name: str) -> str:
    """Return the Content-Disposition of a download; RFC 6266, with both kinds of name."""
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "_"
        for letter in name
    )
    if plain == name:
        return f'attachment; filename="{name}"'
    coded = urllib.parse.quote(name, safe="")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{coded}"


def cut_off(request: web.Request) -> ConnectionError:
    """Abort the connection, because the rest of the promised answer cannot be sent."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("the answer was cut off")

"""Sends answers of many bytes: read in a thread, sent in pieces, slower beside a
driver.

    card -> (one thread) a piece -> RateLimit: is it its turn? -> socket, if it has room
                                                               -> the next piece

The loop that drives the car reads no card, waits for nobody, and holds no file whole.
aiohttp's FileResponse would hand a file to sendfile(2), which reads the card on the
loop: a slow one would stop the car.
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

from fpvcar.runtime.units import MB
from fpvcar.server.http.slots import Slot, Slots

PIECE_BYTES = 64 * 1024
SHARED_BYTES_S = MB
"""What all answers together get while somebody drives: half of what the Wi-Fi of a
small Pi carries is left for pictures."""
STALLED_S = 20.0
"""How long a client may take nothing. A file that the ring removes keeps its place on
the card while somebody reads it."""
BUSY_S, BUSY_MOST_S = 0.001, 0.05
T = TypeVar("T")


class RateLimit:
    """Limits the bytes a second of all together. Time is an argument."""

    def __init__(self) -> None:
        self._free_s = -math.inf

    def wait_s(self, size: int, rate: float, now_s: float) -> float:
        """How long these bytes have to wait for those before them."""
        begin_s = max(self._free_s, now_s)
        self._free_s = begin_s + size / rate
        return begin_s - now_s


class CpuThrottle:
    """Makes the thread that reads rest: while somebody drives it has the interpreter,
    which the gate needs too, for a fifth of the time. `used_s()` is its CPU so far."""

    def __init__(
        self,
        driven: Callable[[], bool],
        used_s: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._driven, self._used_s, self._sleep = driven, used_s, sleep
        self._rested_s = 0.0

    def rest(self) -> None:
        """Sleeps if the thread was busy for long enough; mostly it does nothing."""
        busy_s = self._used_s() - self._rested_s
        if busy_s < BUSY_S:
            return
        if self._driven():
            self._sleep(4.0 * min(busy_s, BUSY_MOST_S))
        self._rested_s = self._used_s()


class Part(NamedTuple):
    """What a request wants of a file: bytes `begin` to before `end`."""

    status: int
    begin: int
    end: int


def part_of(request: web.BaseRequest, etag: str, size: int) -> Part:
    """Finds what is wanted, by RFC 9110, sections 13 and 14, without dates. Raises
    HTTPException."""
    wanted_etags, known_etags = request.if_match, request.if_none_match
    if wanted_etags is not None and not _among(wanted_etags, etag, weak=False):
        raise web.HTTPPreconditionFailed(text="The recording is another one now.\n")
    if known_etags is not None and _among(known_etags, etag, weak=True):
        raise web.HTTPNotModified(headers={"ETag": f'"{etag}"'})
    whole = request.headers.get("If-Range", f'"{etag}"') == f'"{etag}"'
    if "Range" not in request.headers or not whole:
        return Part(200, 0, size)
    try:
        wanted = range(size)[request.http_range]
    except ValueError:  # no range, several, or backwards
        wanted = range(0)
    if not wanted:
        raise web.HTTPRequestRangeNotSatisfiable(
            text=f"This range cannot be sent: there are {size} bytes.\n",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return Part(206, wanted.start, wanted.stop)


def _among(etags: tuple[ETag, ...], etag: str, weak: bool) -> bool:
    return any(one.value in ("*", etag) and (weak or not one.is_weak) for one in etags)


class Downloads:
    """Sends all answers of one car. `driven()`: is somebody at the wheel?"""

    def __init__(
        self, driven: Callable[[], bool], clock_s: Callable[[], float], stalled_s: float = STALLED_S
    ) -> None:
        self._driven, self._clock_s, self._stalled_s = driven, clock_s, stalled_s
        # One at a time: the car has other work.
        self._thread = ThreadPoolExecutor(1, "recordings")
        self._limit = RateLimit()
        self._slots = Slots(clock_s)

    async def in_thread(self, act: Callable[[], T]) -> T:
        """Does in the thread what may block. Raises what that raises."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)

    def later(self, act: Callable[[], None]) -> None:
        """Does something after all that waits; nobody hears what comes of it."""
        with contextlib.suppress(RuntimeError):  # it is closed already
            self._thread.submit(act)

    def close(self) -> None:
        """Ends the thread; what still waits is not done."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def made(
        self, request: web.Request, headers: Mapping[str, str], make: Callable[[], bytes]
    ) -> web.StreamResponse:
        """Sends an answer that `make` makes whole, in the thread. Raises what that
        raises."""
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

    async def file(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        opened: Callable[[], int],
        etag: str = "",
    ) -> web.StreamResponse:
        """Sends a file, or what is wanted of it; `opened` opens it, and we close it.
        Without an `etag` it has that of its inode, time and size.

        Raises HTTPException, and what `opened` raises.
        """
        file = await self.in_thread(opened)
        try:
            about = await self.in_thread(partial(os.fstat, file))
            etag = etag or f"{about.st_ino:x}-{about.st_mtime_ns:x}-{about.st_size:x}"
            part = part_of(request, etag, about.st_size)
            response = web.StreamResponse(status=part.status, headers=headers)
            response.etag = etag
            response.headers["Accept-Ranges"] = "bytes"
            if part.status == 206:
                response.headers["Content-Range"] = (
                    f"bytes {part.begin}-{part.end - 1}/{about.st_size}"
                )
            response.content_length = part.end - part.begin
            await response.prepare(request)
            if request.method != "HEAD":
                await self._pour(request, response, file, part)
            await response.write_eof()
            return response
        finally:
            self.later(partial(os.close, file))  # behind whatever is still read of it

    async def streamed(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        pieces: Generator[bytes, None, None],
        size: int | None,
        sent: Callable[[int], None],
    ) -> web.StreamResponse:
        """Sends what is made piece by piece, in the thread, while it is sent; `size` of
        all if that is known. `sent` hears of each piece.

        The work ends with the connection. Raises ConnectionError, and what making
        raises: then the connection is cut, so that nobody takes the part for the whole.
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
                        raise ConnectionResetError("nobody takes the answer")
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
            except OSError:  # the card fails: the head of the answer is under way
                piece = b""
            if not piece:  # or somebody cut the file
                raise cut_off(request)
            await self._send(request, response, piece)
            at += len(piece)

    async def _send(
        self, request: web.Request, response: web.StreamResponse, piece: bytes | memoryview
    ) -> None:
        """Sends a piece, when it is its turn. Raises ConnectionError."""
        await self._turn(len(piece))
        await self._write(request, response, piece)

    async def _turn(self, size: int) -> None:
        """Waits until so many bytes may be sent: beside a driver all share a rate."""
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
    """Writes Content-Disposition of a download; RFC 6266, with both kinds of name."""
    plain = "".join(
        one if one.isascii() and one.isprintable() and one not in '"\\' else "_" for one in name
    )
    if plain == name:
        return f'attachment; filename="{name}"'
    coded = urllib.parse.quote(name, safe="")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{coded}"


def cut_off(request: web.Request) -> ConnectionError:
    """Ends the connection: what was promised cannot be sent."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("the answer was cut off")

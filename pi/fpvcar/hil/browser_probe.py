"""Receives the brightness of pictures from a browser that shows the car's page /hil.

    page -> hil   picture   after each picture shown, timed by this process's clock
    page -> hil   ping      every 100 ms, answered by pong with our clock

The page is synchronised to this process's clock, which also times the LED; no other
clocks need to agree.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Annotated

import msgspec
from aiohttp import WSMsgType, web
from msgspec import Meta, Struct
from yarl import URL

from fpvcar.hil.led_detector import COLUMNS, ROWS
from fpvcar.hil.rig import CheckFailed, SeenPicture

MESSAGE_MAX_BYTES = 16_384
SILENCE_S = 5.0
START_S, END_S = 5.0, 1.0
Bright = Annotated[float, Meta(ge=0.0, le=255.0)]


class Picture(Struct, tag_field="kind", tag="picture", frozen=True):
    """Picture on the screen since `shown_us`, by this process's CLOCK_MONOTONIC.
    `captured_us` is by the car's clock, the same one on the same computer."""

    shown_us: int
    captured_us: int
    path: str
    cells: Annotated[tuple[Bright, ...], Meta(min_length=COLUMNS * ROWS, max_length=COLUMNS * ROWS)]


class Ping(Struct, tag_field="kind", tag="ping", frozen=True):
    """Heartbeat of the page; `t` is the browser's clock in ms."""

    t: float


class Pong(Struct, tag_field="kind", tag="pong", frozen=True):
    """Answer to a ping, with the time of this process's clock in µs."""

    t: float
    clock_us: int


_decoder: msgspec.json.Decoder[Picture | Ping] = msgspec.json.Decoder(Picture | Ping)


def answer(text: str, clock_us: int) -> Picture | str:
    """Return the picture, or the answer to a ping. Raises msgspec.DecodeError."""
    message: Picture | Ping = _decoder.decode(text)
    if isinstance(message, Ping):
        return msgspec.json.encode(Pong(message.t, clock_us)).decode()
    return message


def own_page(origin: str, host: str) -> bool:
    """Return True for a page of this computer, on any port."""
    try:
        origin_host, own_host = URL(origin).host, URL(f"http://{host}").host
    except ValueError:
        return False
    return origin_host is not None and origin_host == own_host


class BrowserProbe(AbstractContextManager["BrowserProbe"]):
    """Server for the page /hil on `port` while the context lasts; the newest page wins."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._pictures: queue.SimpleQueue[Picture] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self._page: web.WebSocketResponse | None = None

    def __enter__(self) -> "BrowserProbe":
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(START_S)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._runner is not None:
            cleaned = self._runner.cleanup()
            asyncio.run_coroutine_threadsafe(cleaned, self._loop).result(START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._listen)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=END_S)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()

    async def _listen(self, request: web.Request) -> web.WebSocketResponse:
        if not own_page(request.headers.get("Origin", ""), request.host):
            raise web.HTTPForbidden(text="Open the car's own page /hil.\n")
        page = web.WebSocketResponse(compress=False, max_msg_size=MESSAGE_MAX_BYTES, timeout=END_S)
        await page.prepare(request)
        old, self._page = self._page, page
        if old is not None:
            await old.close()
        async for message in page:
            if message.type is not WSMsgType.TEXT:
                break
            try:
                reply = answer(message.data, time.monotonic_ns() // 1000)
            except msgspec.DecodeError:
                break
            if isinstance(reply, str):
                await page.send_str(reply)
            else:
                self._pictures.put(reply)
        return page

    def opened(self, wait_s: float) -> bool:
        """Wait up to `wait_s` for a page that shows pictures."""
        try:
            self._pictures.get(timeout=wait_s)
        except queue.Empty:
            return False
        return True

    def pictures(self) -> Iterator[SeenPicture]:
        """Yield each picture as it is shown. Raises CheckFailed after SILENCE_S without one."""
        while True:
            try:
                shown = self._pictures.get(timeout=SILENCE_S)
            except queue.Empty:
                raise CheckFailed(f"no picture from the browser for {SILENCE_S:g} s") from None
            yield SeenPicture(shown.shown_us * 1000, shown.captured_us * 1000, shown.cells)

"""Client of the page's sockets without a browser: drives, pushes buttons, receives video.

A thread owns the sockets; checks call it from another thread.
"""

import asyncio
import contextlib
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any

from aiohttp import ClientError, ClientSession, ClientWebSocketResponse, ClientWSTimeout, WSMsgType

from fpvcar.wire.errors import VERSION
from fpvcar.wire.video import VideoHeader, parse_video

EVERY_S = 0.04
ANSWER_S = 5.0
SEAT_S = 20.0
CLOSE_S = 0.5
NO_ANSWER = "no answer"
UNIT_MAX_BYTES = 8_000_000


def wait_for(condition: Callable[[], bool], fault: str, timeout_s: float = ANSWER_S) -> None:
    """Wait until `condition()` is true. Raises TimeoutError with `fault`."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError(f"{fault}: not within {timeout_s:g} s")
        time.sleep(0.001)


def stop_cause(port: int) -> str | None:
    """Return the cause of the car's stop, None if it is not stopped, or NO_ANSWER."""
    url = f"http://localhost:{port}/api/status"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
            stop = json.load(answer)["stop"]
    except OSError:
        return NO_ANSWER
    return str(stop["cause"]) if stop else None


class Driver(AbstractContextManager["Driver"]):
    """Page of the car. While `sending` it sends its command every 40 ms; while
    `pinging` it sends heartbeats."""

    def __init__(self, port: int, client: str) -> None:
        """A client with the same id gets its seat back at once."""
        self.wish = (0.0, 0.0)
        self.sending = self.pinging = True
        self.state: dict[str, Any] = {}
        self.welcome: dict[str, Any] = {}
        self.glow: dict[str, Any] = {}
        self.units: list[tuple[int, VideoHeader, bytes]] = []
        """Access units in order of arrival: CLOCK_MONOTONIC in ns, header, bytes."""
        self._base, self._client = f"localhost:{port}", client
        self._seq = self._seen = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[Future[None]] = []
        self._session: ClientSession | None = None
        self._drives: ClientWebSocketResponse | None = None
        self._sockets: list[ClientWebSocketResponse] = []

    def __enter__(self) -> "Driver":
        self._thread.start()
        try:
            wait_for(self._opened, f"no car at {self._base}", SEAT_S)
        except BaseException:
            self._close()
            raise
        return self

    def _opened(self) -> bool:
        """Open the sockets; return False while a restarted service is not back yet."""
        try:
            self._call(self._open())
        except (OSError, ClientError, TimeoutError):
            time.sleep(EVERY_S)
            return False
        return True

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        # a hung car does not answer the closing handshake
        with contextlib.suppress(Exception):
            self._call(self._leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for pending in asyncio.all_tasks(self._loop):
            pending.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _leave(self) -> None:
        for connection in self._sockets:
            await connection.close()
        if self._session is not None:
            await self._session.close()

    def _call(self, act: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(ANSWER_S)

    def _start(self, act: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.run_coroutine_threadsafe(act, self._loop))

    async def _socket(self, path: str) -> ClientWebSocketResponse:
        assert self._session is not None
        connection = await self._session.ws_connect(
            f"http://{self._base}{path}",
            origin=f"http://{self._base}",
            max_msg_size=UNIT_MAX_BYTES,
            timeout=ClientWSTimeout(ws_close=CLOSE_S),
        )
        self._sockets.append(connection)
        return connection

    async def _open(self) -> None:
        self._session = self._session or ClientSession()
        self._drives = await self._socket("/ws/drive")
        await self._say(kind="hello", v=VERSION, client=self._client, name="hil")
        self._start(self._listen(self._drives))
        self._start(self._send())

    async def _say(self, **message: Any) -> None:
        assert self._drives is not None
        with contextlib.suppress(ConnectionError, ClientError):
            await self._drives.send_str(json.dumps(message))

    async def _listen(self, page: ClientWebSocketResponse) -> None:
        async for message in page:
            if message.type != WSMsgType.TEXT:
                continue
            content = json.loads(message.data)
            if content["kind"] in ("state", "pong"):
                self._seen = content["nonce"]
            if content["kind"] in ("state", "welcome", "glow"):
                setattr(self, content["kind"], content)

    async def _wish(self) -> None:
        self._seq += 1
        throttle, steer = self.wish
        await self._say(
            kind="drive",
            seq=self._seq,
            t=time.monotonic() * 1000.0,
            throttle=throttle,
            steer=steer,
            seen=self._seen,
        )

    async def _send(self) -> None:
        while True:
            if self.sending:
                await self._wish()
            if self.pinging:
                now_ms = time.monotonic() * 1000.0
                await self._say(kind="ping", seq=self._seq, t=now_ms)
            await asyncio.sleep(EVERY_S)

    @property
    def seen(self) -> int:
        """Newest nonce of the car."""
        return self._seen

    def say(self, **message: Any) -> None:
        self._call(self._say(**message))

    def drive(self, throttle: float, steer: float) -> None:
        """Change the command and send it at once, as the page does."""
        self.wish = (throttle, steer)
        self._call(self._wish())

    def ready(self) -> "Driver":
        """Take the wheel, release the stick and press Resume, until the car may drive. Raises
        TimeoutError."""
        self.wish, self.sending, self.pinging = (0.0, 0.0), True, True
        asked_s = 0.0

        def free() -> bool:
            nonlocal asked_s
            stop, now_s = self.state.get("stop"), time.monotonic()
            seated = self.state.get("role") == "driver"
            if now_s > asked_s and self.state:
                asked_s = now_s + 0.1
                if not seated:
                    self.say(kind="take")
                elif stop and stop["clears"] != "neutral":
                    self.say(kind="resume")
            parts = (self.state.get("wheels"), self.state.get("camera"))
            return seated and stop is None and parts == ("ok", "ok")

        wait_for(free, "the car cannot be driven", SEAT_S)
        return self

    def fall_silent(self) -> None:
        """Behave like a page that lost its Wi-Fi: send nothing more and close nothing."""
        self.sending = self.pinging = False

    def cut(self) -> None:
        """Shut the connection down without a closing handshake."""
        self.fall_silent()
        assert self._drives is not None
        self._drives.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def look(self) -> None:
        """Receive the car's pictures from now on."""
        wait_for(lambda: bool(self.welcome), "no welcome")
        self._start(self._look(self.welcome["video"]))

    async def _look(self, name: str) -> None:
        video = await self._socket(f"/ws/video?id={name}")
        hello = {"kind": "hello", "v": VERSION, "client": self._client}
        await video.send_str(json.dumps(hello))
        async for message in video:
            if message.type == WSMsgType.BINARY:
                header, unit = parse_video(message.data)
                self.units.append((time.monotonic_ns(), header, unit))

    def see_buttons(self) -> None:
        """Subscribe to the buttons page."""
        self._start(self._buttons())
        wait_for(lambda: bool(self.glow), "no buttons")

    async def _buttons(self) -> None:
        page = await self._socket("/ws/buttons")
        await page.send_str(json.dumps({"kind": "hello", "v": VERSION}))
        listening = asyncio.ensure_future(self._listen(page))
        while not listening.done():  # a page sends its held buttons twice a second
            await page.send_str(json.dumps({"kind": "hold", "held": 0}))
            await asyncio.sleep(0.5)

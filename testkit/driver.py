"""A driver without a browser: a thread that speaks /ws/drive as the page does."""

import contextlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from fpvcar.wire.errors import VERSION
from testkit.harness import PinWatch, RunningBench, wait_for
from testkit.network.attacks import frame


def open_socket(
    port: int,
    path: str,
    *,
    own_origin: bool = True,
    max_queue: int = 16,
    host: str = "localhost",
    link: socket.socket | None = None,
    headers: Mapping[str, str] | None = None,
) -> ClientConnection:
    """Open a WebSocket to the bench, with the Origin of its own page, or without one.

    `link` is an existing connection, for example from another network.
    """
    base = f"{host}:{port}"
    return connect(
        f"ws://{base}{path}",
        compression=None,
        max_queue=max_queue,
        legacy=True,
        origin=Origin(f"http://{base}") if own_origin else None,
        sock=link,
        additional_headers=headers,
        close_timeout=1.0,  # a dead link sends no close frame
    )


class Driver(AbstractContextManager["Driver"]):
    """Driver on one socket. While `sending`, it sends the wish and pings every 40 ms."""

    def __init__(
        self,
        port: int,
        *,
        client: str | None = None,
        name: str = "Ann",
        code: str = "",
        own_origin: bool = True,
        host: str = "localhost",
        link: socket.socket | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.client = client or uuid.uuid4().hex
        self.wish = (0.0, 0.0)
        self.sending = True
        self.pinging = True
        self.heard: list[dict[str, Any]] = []
        self.claim: Callable[[], int] | None = None
        """A false value of `seen` in place of the last nonce received."""
        self.closed = threading.Event()
        self._seq = self._seen = 0
        self._lock = threading.Lock()
        self._socket = open_socket(
            port, "/ws/drive", own_origin=own_origin, host=host, link=link, headers=headers
        )
        self.say(kind="hello", v=VERSION, client=self.client, name=name, code=code)
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._send, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self._socket.close()
        for thread in self._threads:
            thread.join()

    def abandon(self) -> None:
        """Close a socket whose other end died without a close frame."""
        with contextlib.suppress(ConnectionClosed):
            self._socket.close()
        for thread in self._threads:
            thread.join()

    @property
    def seen(self) -> int:
        """Newest nonce of the car."""
        return self._seen

    def say(self, **message: Any) -> None:
        """Send one message, also an invalid one."""
        self.say_text(json.dumps(message))

    def say_text(self, text: str | bytes) -> None:
        """Send one WebSocket frame of text or bytes."""
        self._socket.send(text)

    def drive(self, throttle: float, steer: float) -> None:
        """Change the wish and send it at once, as the page does."""
        self.wish = (throttle, steer)
        self._drive()

    def _drive(self) -> None:
        with self._lock:
            self._seq += 1
            self.say(
                kind="drive",
                seq=self._seq,
                t=time.monotonic() * 1000.0,
                throttle=self.wish[0],
                steer=self.wish[1],
                seen=self.claim() if self.claim else self._seen,
            )

    def prepare(self, at_s: Iterable[float], size: int) -> bytes:
        """Return frames of full throttle, padded to `size` bytes and dated so many seconds from
        now. `seen` is the car's clock at those moments."""
        now_s, frames = time.monotonic(), []
        for seq, after_s in enumerate(at_s, self._seq + 1):
            then_s = now_s + after_s
            wish = {
                "kind": "drive",
                "seq": seq,
                "t": then_s * 1000.0,
                "throttle": 1.0,
                "steer": 0.0,
                "seen": int(then_s * 1e6),
            }
            frames.append(frame(json.dumps(wish).encode().ljust(size)))
        return b"".join(frames)

    def push(self, data: bytes) -> None:
        """Send raw bytes from a thread, for as long as the car takes to read them."""

        def send() -> None:
            with contextlib.suppress(OSError):
                self._socket.socket.sendall(data)

        self.sending = self.pinging = False
        time.sleep(0.045)  # past the last message of the other thread
        self._threads.append(threading.Thread(target=send, daemon=True))
        self._threads[-1].start()

    def _send(self) -> None:
        number = 0
        while not self.closed.wait(0.04):
            number += 1
            try:
                if self.sending:
                    self._drive()
                if self.pinging and number % 2 == 0:
                    self.say(kind="ping", seq=number, t=time.monotonic() * 1000.0)
            except ConnectionClosed:
                return

    def _listen(self) -> None:
        try:
            for frame in self._socket:
                message = json.loads(frame)
                self.heard.append(message)
                if message["kind"] in ("state", "pong"):
                    self._seen = message["nonce"]
        except ConnectionClosed:
            pass
        self.closed.set()

    @property
    def state(self) -> dict[str, Any]:
        """Return the newest state, {} before the first."""
        states = [one for one in self.heard if one["kind"] == "state"]
        return states[-1] if states else {}

    @property
    def video(self) -> str:
        """Return the id for the pictures: /ws/video?id=..."""
        said = [one for one in self.heard if one["kind"] == "welcome"]
        return str(said[-1]["video"])

    def errors(self) -> list[dict[str, Any]]:
        """Return every error received so far."""
        return [one for one in self.heard if one["kind"] == "error"]

    def stop_cause(self) -> str | None:
        """Return the cause of the car's stop, None while it may drive."""
        stop = self.state.get("stop")
        return stop["cause"] if stop else None

    @property
    def close_reason(self) -> str:
        """Return the key of the reason that the car gave when it closed the socket."""
        return self._socket.close_reason or ""


def sit_down(driver: Driver) -> None:
    """Request the wheel until it is granted."""

    def seated() -> bool:
        if driver.state.get("role") == "watching":
            driver.say(kind="take")
        return bool(driver.state.get("role") == "driver")

    wait_for(seated, "no seat", 15.0, every_s=0.1)


def stand_up(driver: Driver) -> None:
    """Stop and release the wheel; repeat if a flood had used up the allowed messages."""
    driver.drive(0.0, 0.0)

    def stood_up() -> bool:
        if driver.state["role"] != "watching":
            driver.say(kind="release")
        return bool(driver.state["role"] == "watching")

    wait_for(stood_up, "still seated", every_s=0.1)


def free(driver: Driver) -> None:
    """Release the stick, press Resume, and wait until the car may drive."""
    driver.wish = (0.0, 0.0)

    def freed() -> bool:
        stop = driver.state.get("stop")
        if stop and stop["clears"] != "neutral":
            driver.say(kind="resume")
        ready = driver.state["wheels"] == "ok" and driver.state["camera"] == "ok"
        return ready and stop is None

    wait_for(freed, f"still held: {driver.state}", 20.0, every_s=0.03)


def set_off(driver: Driver, watch: PinWatch) -> None:
    """Push the stick until the motors turn.

    The wheels of a machine that was busy for a moment rightly wait for a neutral stick. As a
    person would, this lets go and pushes again.
    """
    for _ in range(6):
        driver.drive(1.0, 0.0)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: watch.now.driving, "", 3.0, every_s=0.001)
            return
        free(driver)
    raise AssertionError(f"the car does not drive: {driver.state}")


def make_whole(bench: RunningBench) -> None:
    """Let a grown-up take the wheel, free the car and leave the seat empty."""
    codes = json.loads((bench.state / "codes.json").read_text())
    with Driver(bench.port, name="Mum", code=codes["grown_up"]) as mum:
        sit_down(mum)
        free(mum)
        stand_up(mum)

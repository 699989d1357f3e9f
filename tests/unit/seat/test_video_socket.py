"""Socket /ws/video by a real aiohttp server and real clients: slow, stalled, rude."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import websockets
from aiohttp import web
from testkit.hub import until
from websockets.asyncio.client import ClientConnection, connect

from fpvcar.http import certificates
from fpvcar.seat import video_socket
from fpvcar.seat.video_socket import Sender, serve_viewer
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Stream, Viewer
from fpvcar.wire.video import VideoHeader, parse_video

HELLO = '{"kind":"hello","v":1,"client":"the-page"}'
STRANGER = HELLO.replace("the", "not-the")
FRAME_S = 0.02
KEY_BYTES, UNIT_BYTES = 30_000, 6_000


class Car:
    """Server with a stream and a camera that obeys; key frames every 50 units."""

    def __init__(self) -> None:
        self.stream = Stream(self)
        self.port = 0
        self.key = True
        self.asked = 0
        self.late_s: list[float] = []
        self.lost: list[float | None] = []
        self.senders: dict[str, Sender] = {}
        self._filming: asyncio.Task[None] | None = None

    def request_key(self) -> bool:
        self.key = True
        self.asked += 1
        return True

    def set_bitrate(self, bitrate: int) -> bool:
        return True

    def set_fps(self, most: int) -> bool:
        return True

    def publish(self) -> None:
        key = self.key or self.stream.sequence % 50 == 0
        self.key = False
        now_us = time.monotonic_ns() // 1000
        size = KEY_BYTES if key else UNIT_BYTES
        self.stream.publish(AccessUnit(key, now_us, b"\0" * size))

    def film(self) -> None:
        """Publish from now on; `late_s` records the lateness of each unit."""
        self._filming = asyncio.create_task(self._film())

    async def _film(self) -> None:
        due_s = time.monotonic()
        while True:
            self.publish()
            due_s = max(due_s + FRAME_S, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())
            self.late_s.append(time.monotonic() - due_s)

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        drives = request.query.get("driver") == "1"
        return await serve_viewer(
            request,
            self.stream,
            greet=lambda client: None if client == "the-page" else "the id is another page's",
            is_driver=lambda: drives,
            tell_lost=self.lost.append,
            senders=self.senders,
        )

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["Car"]:
        application = web.Application()
        application.router.add_get("/ws/video", self.handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        assert site._server is not None
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        try:
            yield self
        finally:
            if self._filming is not None:
                self._filming.cancel()
                await asyncio.wait([self._filming])
            await runner.cleanup()

    def viewer(self, query: str = "", **more: object) -> connect:
        address = f"ws://127.0.0.1:{self.port}/ws/video{query}"
        return connect(address, compression=None, max_queue=None, **more)  # type: ignore[arg-type]


@pytest.fixture
async def car() -> AsyncIterator[Car]:
    async with Car().serving() as running:
        yield running


async def take(viewer: ClientConnection, count: int) -> list[tuple[VideoHeader, float]]:
    """Return the next headers and their pictures' ages on arrival."""
    got: list[tuple[VideoHeader, float]] = []
    async with asyncio.timeout(20.0):
        while len(got) < count:
            data = await viewer.recv()
            assert isinstance(data, bytes)
            header = parse_video(data)[0]
            got.append((header, time.monotonic() - header.capture_us / 1e6))
    return got


async def stall(car: Car, query: str = "") -> socket.socket:
    """Open a viewer that requests video and never reads."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", car.port))
    request = (
        f"GET /ws/video{query} HTTP/1.1\r\nHost: car\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
    )
    before = list(car.stream.viewers)
    await loop.sock_sendall(sock, request.encode())
    await until(lambda: any(one not in before for one in car.stream.viewers))
    return sock


async def test_viewer_starts_at_a_key_frame_and_misses_no_frame(car: Car) -> None:
    car.film()
    await asyncio.sleep(5 * FRAME_S)
    async with car.viewer() as viewer:
        got = [header for header, _ in await take(viewer, 60)]
    assert got[0].key
    first = got[0].sequence
    assert [one.sequence for one in got] == list(range(first, first + 60))
    await until(lambda: not car.stream.viewers)


async def test_text_key_asks_for_a_key_frame(car: Car) -> None:
    car.film()
    async with car.viewer("?driver=1") as viewer:
        await viewer.send(HELLO)
        await take(viewer, 5)
        asked = car.asked
        await viewer.send("key")
        await until(lambda: car.asked > asked)
        assert any(header.key for header, _ in await take(viewer, 20))


async def test_stalled_viewers_hold_two_units_and_delay_no_driver(car: Car) -> None:
    stalled = [await stall(car) for _ in range(8)]
    car.film()
    viewers = list(car.stream.viewers)
    async with car.viewer("?driver=1") as good:
        await good.send(HELLO)
        got: list[tuple[VideoHeader, float]] = []
        most = 0
        for _ in range(100):
            got += await take(good, 1)
            most = max(most, *(one.waiting for one in viewers))
    ages = sorted(age for _, age in got)
    assert most <= 2
    assert all(viewer.dropped > 20 for viewer in viewers)
    assert all(viewer.frames < 60 for viewer in viewers)
    assert ages[50] < 0.5
    sequences = [header.sequence for header, _ in got]
    assert sequences == list(range(sequences[0], sequences[0] + 100))
    for sock in stalled:
        sock.close()


async def test_viewer_is_current_again_after_a_stall(car: Car) -> None:
    car.film()
    async with car.viewer("?driver=1") as viewer:
        await viewer.send(HELLO)
        await take(viewer, 10)
        viewer.transport.pause_reading()
        await until(lambda: car.stream.viewers[0].dropped > 20)
        viewer.transport.resume_reading()
        resumed_s = time.monotonic()
        while (await take(viewer, 1))[0][0].capture_us / 1e6 < resumed_s:
            pass


async def test_viewer_without_progress_is_cut(car: Car, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_socket, "NO_PROGRESS_S", 0.5)
    sock = await stall(car)
    car.film()
    async with car.viewer() as good:
        await until(lambda: len(car.stream.viewers) == 1)
        await take(good, 10)
    sock.close()


@pytest.mark.parametrize(
    ("said", "code", "reason"),
    [
        ("keys", 1008, '"keys" refused (expected "key", "fps N" or a hello)'),
        ("", 1008, '"" refused (expected "key", "fps N" or a hello)'),
        ('{"kind":"take"}', 1008, '"{"kind":"take"}" refused (expected "key", "fps N" or a hello)'),
        (STRANGER, 1008, "hello refused: the id is another page's"),
        (b"key", 1003, 'binary frame refused (expected "key", "fps N" or a hello)'),
        ("k" * 5000, 1009, ""),
    ],
)
async def test_bad_message_closes_the_viewer_with_code_and_reason(
    car: Car, said: str, code: int, reason: str
) -> None:
    async with car.viewer() as viewer:
        await viewer.send(said)
        with pytest.raises(websockets.ConnectionClosed):
            await take(viewer, 1000)
        assert (viewer.close_code, viewer.close_reason) == (code, reason)
    await until(lambda: not car.stream.viewers)


async def test_page_says_how_many_pictures_it_can_show(car: Car) -> None:
    async with car.viewer() as viewer:
        await viewer.send("fps 12")
        await until(lambda: car.stream.viewers[0].fps_most == 12)
        await viewer.send("fps 0")
        with pytest.raises(websockets.ConnectionClosed):
            await take(viewer, 1000)
    assert viewer.close_code == 1008


async def test_flood_of_key_requests_closes_the_viewer(car: Car) -> None:
    car.film()
    async with car.viewer() as viewer:
        with pytest.raises(websockets.ConnectionClosed):
            for _ in range(10_000):
                await viewer.send("key")
                await asyncio.sleep(0)
        await viewer.wait_closed()
        assert viewer.close_code == 1008
        assert viewer.close_reason == 'too many "key" (expected at most 5 a second)'
    assert car.asked < 10


async def test_stalled_viewer_sending_garbage_is_removed_soon(car: Car) -> None:
    sock = await stall(car)
    car.film()
    await until(lambda: car.stream.viewers[0].needs_key)
    mask = b"\0\0\0\0"
    await asyncio.get_running_loop().sock_sendall(sock, b"\x81\x83" + mask + b"bad")
    await until(lambda: not car.stream.viewers)
    sock.close()


async def test_offered_compression_is_declined(car: Car) -> None:
    async with connect(f"ws://127.0.0.1:{car.port}/ws/video") as viewer:
        assert viewer.protocol.extensions == []


async def test_reset_viewers_leave_no_viewer_and_no_timer(car: Car) -> None:
    car.film()
    for _ in range(10):
        sock = await stall(car)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()  # a reset
    await until(lambda: not car.stream.viewers)
    timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    assert [one for one in timers if "look" in repr(one) and not one.cancelled()] == []


async def test_failing_sender_ends_only_its_own_viewer(
    car: Car, caplog: pytest.LogCaptureFixture
) -> None:
    car.film()
    async with car.viewer() as good, car.viewer() as bad:
        await take(bad, 3)
        broken = car.stream.viewers[1]
        broken.next = None  # type: ignore[assignment,method-assign]
        with pytest.raises(websockets.ConnectionClosed):
            await take(bad, 100)
        await take(good, 10)
    assert "viewer's sender failed" in caplog.text


async def test_tls_viewer_misses_no_frame_and_recovers_from_a_stall(tmp_path: Path) -> None:
    server = certificates.server_context(tmp_path, ("localhost",))
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    async with Car().serving(server) as car:
        car.film()
        address = f"wss://127.0.0.1:{car.port}/ws/video?driver=1"
        async with connect(address, compression=None, ssl=client) as viewer:
            await viewer.send(HELLO)
            got = await take(viewer, 30)
            assert [one.sequence for one, _ in got] == list(
                range(got[0][0].sequence, got[0][0].sequence + 30)
            )
            viewer.transport.pause_reading()
            await until(lambda: car.stream.viewers[0].dropped > 20)
            viewer.transport.resume_reading()
            resumed_s = time.monotonic()
            while (await take(viewer, 1))[0][0].capture_us / 1e6 < resumed_s:
                pass


async def test_viewer_with_a_stolen_driver_id_sets_no_bitrate(
    car: Car, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Viewer] = []
    monkeypatch.setattr(car.stream, "report", lambda viewer, _: reports.append(viewer))
    car.film()
    sock = await stall(car, "?driver=1&id=ann")
    await until(lambda: car.stream.viewers and car.stream.viewers[0].dropped > 20)
    eve = car.stream.viewers[0]
    assert not eve.is_driver() and not car.senders and not reports
    async with car.viewer("?driver=1&id=ann") as driver:
        await driver.send(HELLO)
        await until(lambda: "ann" in car.senders)
        late = await stall(car, "?driver=1&id=ann")
        await until(lambda: len(car.stream.viewers) == 3)
        own = car.stream.viewers[1]
        assert [viewer.is_driver() for viewer in car.stream.viewers] == [False, True, False]
        await take(driver, 50)
        assert set(reports) == {own}
        late.close()
        await until(lambda: len(car.stream.viewers) == 2)
        assert own.is_driver(), "only its own end takes the sender away"
    await until(lambda: not car.senders)
    sock.close()


async def test_newest_video_socket_of_a_page_sets_the_bitrate(car: Car) -> None:
    car.film()
    async with car.viewer("?driver=1&id=ann") as first, car.viewer("?driver=1&id=ann") as second:
        await first.send(HELLO)
        await until(lambda: "ann" in car.senders)
        await take(second, 1)
        await second.send(HELLO)
        await until(lambda: car.stream.viewers[1].is_driver())
        assert not car.stream.viewers[0].is_driver()


async def test_drivers_link_is_reported_and_a_watchers_is_not(
    car: Car, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[object] = []
    monkeypatch.setattr(car.stream, "report", lambda _, link: reports.append(link))
    car.film()
    async with car.viewer() as watcher:
        await take(watcher, 20)
        assert reports == []
    async with car.viewer("?driver=1") as driver:
        await driver.send(HELLO)
        await take(driver, 50)
        assert len(reports) >= 3
        sock = await stall(car)
        sock.close()

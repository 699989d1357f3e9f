"""Socket /ws/video by a real server and real clients: slow, stalled, rude."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from testkit.car import Car, Socket
from testkit.hub import until

from fpvcar.http import certificates
from fpvcar.seat import video_socket
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.video import VideoHeader, parse_video

FRAME_S = 0.02
KEY_BYTES, UNIT_BYTES = 30_000, 6_000


class Filming(Car):
    """Car whose driver is at the wheel; its camera gives key frames on request, and every 50
    units."""

    video: str
    """Id of the driver's page."""

    @property
    def asked(self) -> int:
        return self.camera.lines.count("key")

    async def film(self) -> None:
        """Publish from now on."""
        due_s, answered = time.monotonic(), -1
        while True:
            key = self.asked > answered or self.stream.sequence % 50 == 0
            answered = self.asked
            now_us = time.monotonic_ns() // 1000
            size = KEY_BYTES if key else UNIT_BYTES
            self.stream.publish(AccessUnit(key, now_us, b"\0" * size))
            due_s = max(due_s + FRAME_S, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())

    async def viewer(self, name: str = "", page: str = "") -> Socket:
        """Open a viewer of the page with this id; the page called `name` says hello there."""
        return await self.opens(f"/ws/video?id={page or self.video}", name)

    async def stall(self, page: str = "") -> socket.socket:
        """Open a viewer that requests video and never reads."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", self.client.port))
        request = (
            f"GET /ws/video?id={page} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
        )
        before = list(self.stream.viewers)
        await loop.sock_sendall(sock, request.encode())
        await until(lambda: any(one not in before for one in self.stream.viewers))
        return sock


@pytest.fixture(params=["http"])
async def car(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Filming]:
    car, tls = Filming(), None
    if request.param == "https":
        tls = certificates.server_context(tmp_path, ("localhost",))
    async with car.serve(tls=tls):
        _, car.video = await car.sits_down()
        yield car


@pytest.fixture
async def films(car: Filming) -> AsyncIterator[None]:
    """Film during a test."""
    filming = asyncio.create_task(car.film())
    yield
    filming.cancel()
    await asyncio.wait([filming])


both = pytest.mark.parametrize("car", ["http", "https"], indirect=True)
filmed = pytest.mark.usefixtures("films")


async def take(viewer: Socket, count: int) -> list[tuple[VideoHeader, float]]:
    """Return the next headers and their pictures' ages on arrival."""
    got: list[tuple[VideoHeader, float]] = []
    while len(got) < count:
        header = parse_video(await viewer.receive_bytes(timeout=20))[0]
        got.append((header, time.monotonic() - header.capture_us / 1e6))
    return got


async def end_of(viewer: Socket) -> tuple[int, str]:
    """Return code and reason of the car's close."""
    async with asyncio.timeout(20.0):
        while (message := await viewer.receive()).type is not aiohttp.WSMsgType.CLOSE:
            assert message.type is aiohttp.WSMsgType.BINARY
    return message.data, str(message.extra or "")


def transport_of(viewer: Socket) -> asyncio.Transport:
    connection = viewer._response.connection
    assert connection and isinstance(connection.transport, asyncio.Transport)
    return connection.transport


@both
@filmed
async def test_viewer_starts_at_a_key_frame_and_misses_no_frame(car: Filming) -> None:
    await asyncio.sleep(5 * FRAME_S)
    viewer = await car.viewer()
    got = [header for header, _ in await take(viewer, 60)]
    assert got[0].key
    first = got[0].sequence
    assert [one.sequence for one in got] == list(range(first, first + 60))
    await viewer.close()
    await until(lambda: not car.stream.viewers)


@filmed
async def test_text_key_asks_for_a_key_frame(car: Filming) -> None:
    viewer = await car.viewer("driver")
    await take(viewer, 5)
    asked = car.asked
    await viewer.send_str("key")
    await until(lambda: car.asked > asked)
    assert any(header.key for header, _ in await take(viewer, 20))


async def test_stalled_viewers_hold_two_units_and_delay_no_driver(car: Filming) -> None:
    stalled = [await car.stall() for _ in range(8)]
    viewers = list(car.stream.viewers)
    filming = asyncio.create_task(car.film())
    good = await car.viewer("driver")
    got: list[tuple[VideoHeader, float]] = []
    most = 0
    for _ in range(100):
        got += await take(good, 1)
        most = max(most, *(one.waiting for one in viewers))
    filming.cancel()
    ages = sorted(age for _, age in got)
    assert most <= 2
    assert all(viewer.dropped > 20 for viewer in viewers)
    assert all(viewer.frames < 60 for viewer in viewers)
    assert ages[50] < 0.5
    sequences = [header.sequence for header, _ in got]
    assert sequences == list(range(sequences[0], sequences[0] + 100))
    for sock in stalled:
        sock.close()


@both
@filmed
async def test_viewer_is_current_again_after_a_stall(car: Filming) -> None:
    viewer = await car.viewer("driver")
    await take(viewer, 10)
    transport_of(viewer).pause_reading()
    await until(lambda: car.stream.viewers[0].dropped > 20)
    transport_of(viewer).resume_reading()
    resumed_s = time.monotonic()
    while (await take(viewer, 1))[0][0].capture_us / 1e6 < resumed_s:
        pass


@filmed
async def test_viewer_without_progress_is_cut(
    car: Filming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_socket, "NO_PROGRESS_S", 0.5)
    sock = await car.stall()
    good = await car.viewer()
    await until(lambda: len(car.stream.viewers) == 1)
    await take(good, 10)
    sock.close()


@pytest.mark.parametrize(
    ("said", "code", "reason"),
    [
        ("keys", 1008, '"keys" refused (expected "key", "fps N" or a hello)'),
        ("", 1008, '"" refused (expected "key", "fps N" or a hello)'),
        ('{"kind":"take"}', 1008, '"{"kind":"take"}" refused (expected "key", "fps N" or a hello)'),
        (
            '{"kind":"hello","v":1,"client":"client-eve"}',
            1008,
            "hello refused: the id is another page's",
        ),
        (b"key", 1003, 'binary frame refused (expected "key", "fps N" or a hello)'),
        ("k" * 5000, 1009, ""),
    ],
)
async def test_bad_message_closes_the_viewer_with_code_and_reason(
    car: Filming, said: str | bytes, code: int, reason: str
) -> None:
    viewer = await car.viewer()
    await (viewer.send_str(said) if isinstance(said, str) else viewer.send_bytes(said))
    assert await end_of(viewer) == (code, reason)
    await until(lambda: not car.stream.viewers)


async def test_page_says_how_many_pictures_it_can_show(car: Filming) -> None:
    viewer = await car.viewer()
    await viewer.send_str("fps 12")
    await until(lambda: car.stream.viewers[0].fps_most == 12)
    await viewer.send_str("fps 0")
    assert (await end_of(viewer))[0] == 1008


@filmed
async def test_flood_of_key_requests_closes_the_viewer(car: Filming) -> None:
    viewer = await car.viewer()
    for _ in range(100):
        await viewer.send_str("key")
    assert await end_of(viewer) == (1008, 'too many "key" (expected at most 5 a second)')
    assert car.asked < 10


@filmed
async def test_stalled_viewer_sending_garbage_is_removed_soon(car: Filming) -> None:
    sock = await car.stall()
    await until(lambda: car.stream.viewers[0].needs_key)
    mask = b"\0\0\0\0"
    await asyncio.get_running_loop().sock_sendall(sock, b"\x81\x83" + mask + b"bad")
    await until(lambda: not car.stream.viewers)
    sock.close()


async def test_offered_compression_is_declined(car: Filming) -> None:
    viewer = await car.client.ws_connect("/ws/video", compress=15)
    assert viewer.compress == 0


@filmed
async def test_reset_viewers_leave_no_viewer_and_no_timer(car: Filming) -> None:
    for _ in range(10):
        sock = await car.stall()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()  # a reset
    await until(lambda: not car.stream.viewers)
    timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    assert [one for one in timers if "look" in repr(one) and not one.cancelled()] == []


@filmed
async def test_failing_sender_ends_only_its_own_viewer(
    car: Filming, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = await car.viewer(), await car.viewer()
    await take(bad, 3)
    broken = car.stream.viewers[1]
    broken.next = None  # type: ignore[assignment,method-assign]
    async with asyncio.timeout(20.0):
        async for _ in bad:  # until its end
            pass
    await take(good, 10)
    assert "viewer's sender failed" in caplog.text


@filmed
async def test_viewer_with_a_stolen_driver_id_sets_no_bitrate(
    car: Filming, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[object] = []
    monkeypatch.setattr(car.stream, "report", lambda viewer, _: reports.append(viewer))
    senders = car.routes._senders[""]
    sock = await car.stall(car.video)
    await until(lambda: car.stream.viewers and car.stream.viewers[0].dropped > 20)
    eve = car.stream.viewers[0]
    assert not eve.is_driver() and not senders and not reports
    driver = await car.viewer("driver")
    await until(lambda: car.video in senders)
    late = await car.stall(car.video)
    await until(lambda: len(car.stream.viewers) == 3)
    own = car.stream.viewers[1]
    assert [viewer.is_driver() for viewer in car.stream.viewers] == [False, True, False]
    await take(driver, 50)
    assert set(reports) == {own}
    late.close()
    await until(lambda: len(car.stream.viewers) == 2)
    assert own.is_driver(), "only its own end takes the sender away"
    await driver.close()
    await until(lambda: not senders)
    sock.close()


@filmed
async def test_newest_video_socket_of_a_page_sets_the_bitrate(car: Filming) -> None:
    await car.viewer("driver")
    await until(lambda: car.video in car.routes._senders[""])
    await take(await car.viewer("driver"), 1)
    await until(lambda: car.stream.viewers[1].is_driver())
    assert not car.stream.viewers[0].is_driver()


@filmed
async def test_drivers_link_is_reported_and_a_watchers_is_not(
    car: Filming, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[object] = []
    monkeypatch.setattr(car.stream, "report", lambda _, link: reports.append(link))
    await take(await car.viewer(page="eve"), 20)
    assert reports == []
    await take(await car.viewer("driver"), 50)
    assert len(reports) >= 3

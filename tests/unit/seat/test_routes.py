"""Routes alone: admission and files. No camera behind them."""

import asyncio
import time
from collections.abc import AsyncIterator, Hashable
from typing import Any

import aiohttp
import msgspec
import pytest
from testkit.car import Car, Socket, closing
from testkit.hub import until
from testkit.profiles import profile_of

from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import COOKIE
from fpvcar.http.admission import Admission
from fpvcar.http.limits import RESERVED, Places, Rank
from fpvcar.runtime.texts import Text
from fpvcar.seat import routes
from fpvcar.seat.vehicle import Channel
from fpvcar.video.camera import Camera
from fpvcar.video.picture import PictureSettings
from fpvcar.video.stream import Stream

MOST = 2
FEW = profile_of("bench", f"server.max_viewers = {MOST}")
ENDS = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING)
UPGRADE = (
    b"GET /ws/drive HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture
async def car() -> AsyncIterator[Car]:
    """Serve a car with few places."""
    car = Car(FEW)
    async with car.serve():
        yield car


def second_camera(car: Car) -> Channel:
    """Add a camera without a program."""
    camera = Camera(["true"], True)
    channel = Channel(camera, Stream(camera, 2_000_000), asyncio.Event())
    car.vehicle.cameras.add("rear", channel)
    return channel


async def stays_open(ws: Socket) -> bool:
    """Return whether the car still answers on a socket."""
    await ws.ping(b"?")
    try:
        message = await ws.receive(timeout=20)
    except TimeoutError:
        return False
    return message.type is aiohttp.WSMsgType.PONG


async def strangers(car: Car, count: int, video: str = "eve") -> list[Socket]:
    """Open sockets at /ws/video that say no hello."""
    return [await car.opens(f"/ws/video?id={video}") for _ in range(count)]


async def raw(car: Car, request: bytes, end: bytes) -> bytes:
    """Return the answer to a request, up to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", car.client.port)
    writer.write(request)
    answer = await reader.readuntil(end)
    writer.close()
    return answer


async def test_full_video_socket_still_admits_the_driver(car: Car) -> None:
    viewers = await strangers(car, MOST)
    answer = await car.client.get("/ws/video?id=eve")
    assert answer.status == 503
    assert "2 are open already at /ws/video" in await answer.text()
    _, video = await car.joins("driver", "123456")
    pictures = await car.opens(f"/ws/video?id={video}", "driver")
    assert await stays_open(pictures)
    assert not any(one.closed for one in viewers)


@pytest.mark.parametrize("proof", ["origin", "cookie"])
async def test_video_with_own_origin_or_cookie_needs_no_hello(car: Car, proof: str) -> None:
    viewers = await strangers(car, MOST)
    device = car.devices.add("Ann", "10.0.0.1", Rights(drive=True), time.time())
    head = {
        "origin": {"Origin": f"http://{car.client.host}:{car.client.port}"},
        "cookie": {"Cookie": f"{COOKIE}={car.devices.cookie(device)}"},
    }[proof]
    pictures = await car.client.ws_connect("/ws/video?id=x", headers=head, autoping=False)
    assert await stays_open(pictures)
    assert not any(one.closed for one in viewers)


async def test_strangers_with_a_driver_id_take_no_drivers_place() -> None:
    """The same address as the driver's: the worst case. The newest waiting socket stays."""
    ranks: list[Rank] = []

    class Connections(Places):
        def promote(self, owner: Hashable, rank: Rank) -> None:
            ranks.append(rank)

    car = Car(FEW)
    async with car.serve(admission=Admission(Connections(999, 999), MOST)):
        _, video = await car.joins("driver", "123456")
        ranks.clear()
        before = await strangers(car, MOST + RESERVED, video)
        assert set(ranks) == {Rank.WATCHES}
        pictures = await car.opens(f"/ws/video?id={video}", "driver")
        await until(lambda: Rank.DRIVES in ranks)
        after = await strangers(car, MOST + RESERVED, video)
        assert await stays_open(pictures)
        assert await stays_open(after[-1])
        assert (await before[MOST].receive(timeout=20)).type in ENDS


async def test_waiting_video_socket_without_a_hello_ends(
    car: Car, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewers = await strangers(car, MOST)
    _, video = await car.joins("driver", "123456")
    liar = await car.opens(f"/ws/video?id={video}", "eve")
    end = await liar.receive(timeout=20)
    assert (end.type, end.data) == (aiohttp.WSMsgType.CLOSE, 1008)
    pictures = await car.opens(f"/ws/video?id={video}", "driver")
    assert await stays_open(pictures)
    monkeypatch.setattr(routes, "HELLO_S", 0.05)
    (stranger,) = await strangers(car, 1, video)
    assert (await stranger.receive(timeout=20)).type in ENDS
    assert await stays_open(pictures)
    assert not any(one.closed for one in viewers)


@pytest.mark.parametrize("known", ["one of rear", "none: this car has one camera"])
async def test_unknown_camera_is_refused_with_the_known_names(known: str) -> None:
    car = Car(FEW)
    if "rear" in known:
        second_camera(car)
    async with car.serve() as client:
        answer = await client.get("/ws/video?id=eve&camera=side")
        words = f"camera side refused: expected {known}."
        assert (answer.status, (await answer.text()).strip()) == (404, words)


async def test_second_camera_is_woken_by_its_viewers_and_has_its_own_places() -> None:
    car = Car(FEW)
    second = second_camera(car)
    async with car.serve():
        first = await strangers(car, MOST)
        assert not second.wanted.is_set() and not second.stream.viewers
        rear = await car.opens("/ws/video?id=eve&camera=rear")
        assert second.wanted.is_set() and len(second.stream.viewers) == 1
        assert all([await stays_open(one) for one in (*first, rear)])
        await rear.close()
        await until(lambda: not second.stream.viewers)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/healthz", b"x", 413),
        ("/healthz", None, 200),
        (f"/{'a' * 300}.js", None, 404),
        ("/%ff%fe.js", None, 404),
        ("/a%00b.js", None, 404),
    ],
)
async def test_request_body_and_impossible_path_are_refused(
    car: Car, path: str, body: bytes | None, status: int
) -> None:
    assert (await car.client.get(path, data=body)).status == status


async def test_full_drive_socket_keeps_a_place_for_a_driver(car: Car) -> None:
    """Two may watch. The third is refused, the driver gets in and stays."""
    watchers = [(await car.joins(name))[0] for name in ("one", "two")]
    third, _ = await car.joins("three")
    text = "2 viewers are here already (server.max_viewers)"
    assert await closing(third) == (text, "close_full")
    driver, _ = await car.joins("driver", "123456")
    assert (await driver.receive_json(timeout=20))["kind"] == "pass"
    await driver.send_json({"kind": "ping", "seq": 1, "t": 0})
    assert (await driver.receive_json(timeout=20))["kind"] == "pong"
    assert not any(watcher.closed for watcher in watchers)


async def test_drive_sockets_without_a_hello_are_counted(car: Car) -> None:
    most = MOST + RESERVED
    silent = [await car.opens("/ws/drive") for _ in range(most)]
    answer = await raw(car, UPGRADE, b"max_viewers")
    assert answer.startswith(b"HTTP/1.1 503")
    assert f"{most} are open from 127.0.0.1".encode() in answer
    assert not any(one.closed for one in silent)


@pytest.mark.parametrize("name", ["Upgrade", "Sec-WebSocket-Version"])
async def test_handshake_with_non_ascii_header_is_a_bad_request(car: Car, name: str) -> None:
    head = f"GET /ws/drive HTTP/1.1\r\nHost: localhost\r\n{name}: \xe9\r\n\r\n"
    answer = await raw(car, head.encode("latin-1"), b"ASCII")
    assert answer.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("name", ["Host", "Origin"])
async def test_refused_undecodable_name_is_shown_escaped_and_cut(car: Car, name: str) -> None:
    head = {"Host": "localhost", name: "caf\xe9" + "x" * 200}
    lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())
    answer = await raw(car, f"GET / HTTP/1.1\r\n{lines}\r\n".encode("latin-1"), b"refused")
    assert answer.startswith(b"HTTP/1.1 403") and b"caf\\udce9" in answer
    assert b"x" * 77 not in answer


async def test_picture_settings_give_the_mode_as_texts() -> None:
    camera = Camera([], True)
    camera.sensor = "imx219"
    picture: Any = PictureSettings(FEW, None, None, camera)
    async with Car().serve(picture=picture) as client:
        sent = await (await client.get("/api/picture")).json()
    texts = msgspec.convert(sent["mode"], list[Text])
    assert texts and texts == picture.as_json()["mode"]


async def test_page_at_another_scheme_may_ping(car: Car) -> None:
    """The trust page, at http, pings the car at https; browsers withhold a private answer."""
    answer = await car.client.get("/api/ping")
    assert (await answer.json())["clock_us"] > 0
    assert "Cross-Origin-Resource-Policy" not in answer.headers

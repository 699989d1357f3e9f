"""Routes alone: admission and files. No car behind them."""

import asyncio
import time
from collections.abc import Hashable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from testkit.hub import House, cameras_of, server_of, until

from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import COOKIE
from fpvcar.config import profiles
from fpvcar.http.limits import RESERVED, Places, Rank
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text
from fpvcar.seat import routes
from fpvcar.seat.sessions import Sessions
from fpvcar.seat.vehicle import Channel
from fpvcar.video.camera import Camera
from fpvcar.video.picture import PictureSettings
from fpvcar.video.stream import Stream
from tests.unit.seat.test_redundant_link import closing

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")
ENDS = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING)
UPGRADE = (
    b"GET /ws/drive HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
FEW = msgspec.structs.replace(
    PROFILE, server=msgspec.structs.replace(PROFILE.server, max_viewers=2)
)


def serving(hub: Any, root: Path, **more: Any) -> web.Application:
    """Return the routes of a car with few places."""
    source = SimpleNamespace(request_key=lambda: None)
    stream = Stream(source, PROFILE.camera.bitrate)
    if second := more.pop("second", None):
        more["cameras"] = cameras_of(stream, Sessions())
        more["cameras"].add("rear", second)
    return server_of(FEW, hub, stream, web_root=root, **more).application()


def rear_camera() -> Channel:
    """Return a further camera without a program."""
    camera = Camera(["true"], True)
    return Channel(camera, Stream(camera, 2_000_000), asyncio.Event())


def status(path: str, root: Path, *, body: bytes | None = None) -> int:
    """Return the status of GET `path`."""

    async def ask() -> int:
        async with TestClient(TestServer(serving(SimpleNamespace(), root))) as client:
            return (await client.get(path, data=body)).status

    return asyncio.run(ask())


async def says_hello(
    client: TestClient[Any, Any], name: str, code: str = ""
) -> tuple[aiohttp.ClientWebSocketResponse, str]:
    """Return the socket, and the page's video id."""
    ws = await client.ws_connect("/ws/drive")
    await ws.send_json({"kind": "hello", "v": 1, "client": f"client-{name}", "code": code})
    welcome = await ws.receive_json(timeout=20)
    assert welcome["kind"] == "welcome"
    return ws, welcome["video"]


async def opens_video(
    client: TestClient[Any, Any], video: str, page: str = ""
) -> aiohttp.ClientWebSocketResponse:
    """A socket at /ws/video; `page` says hello there."""
    ws = await client.ws_connect(f"/ws/video?id={video}", autoping=False)
    if page:
        await ws.send_json({"kind": "hello", "v": 1, "client": page})
    return ws


async def stays_open(ws: aiohttp.ClientWebSocketResponse) -> bool:
    """Whether the car still answers on a socket."""
    await ws.ping(b"?")
    try:
        message = await ws.receive(timeout=20)
    except TimeoutError:
        return False
    return message.type is aiohttp.WSMsgType.PONG


class Connections(Places):
    """The ranks that connections were promoted to."""

    def __init__(self) -> None:
        super().__init__(999, 999)
        self.ranks: list[Rank] = []

    def promote(self, owner: Hashable, rank: Rank) -> None:
        self.ranks.append(rank)


async def test_full_video_socket_still_admits_the_driver(tmp_path: Path) -> None:
    async with TestClient(TestServer(serving(House(FEW).hub, tmp_path))) as client:
        viewers = [await client.ws_connect("/ws/video?id=eve") for _ in range(2)]
        answer = await client.get("/ws/video?id=eve")
        assert answer.status == 503
        assert "2 are open already at /ws/video" in await answer.text()
        _, video = await says_hello(client, "driver", "123456")
        pictures = await opens_video(client, video, "client-driver")
        assert await stays_open(pictures)
        assert not any(one.closed for one in viewers)


@pytest.mark.parametrize("proof", ["origin", "cookie"])
async def test_video_with_own_origin_or_cookie_needs_no_hello(tmp_path: Path, proof: str) -> None:
    house = House(FEW)
    app = serving(house.hub, tmp_path, devices=house.devices)
    async with TestClient(TestServer(app)) as client:
        viewers = [await opens_video(client, "eve") for _ in range(2)]
        device = house.devices.add("Ann", "10.0.0.1", Rights(drive=True), time.time())
        cookie = house.devices.cookie(device)
        head = {
            "origin": {"Origin": f"http://{client.host}:{client.port}"},
            "cookie": {"Cookie": f"{COOKIE}={cookie}"},
        }[proof]
        pictures = await client.ws_connect("/ws/video?id=x", headers=head, autoping=False)
        assert await stays_open(pictures)
        assert not any(one.closed for one in viewers)


async def test_strangers_with_a_driver_id_take_no_drivers_place(tmp_path: Path) -> None:
    """The same address as the driver's: the worst case. The newest waiting socket stays."""
    connections = Connections()
    app = serving(House(FEW).hub, tmp_path, connections=connections)
    async with TestClient(TestServer(app)) as client:
        _, video = await says_hello(client, "driver", "123456")
        connections.ranks.clear()
        most = FEW.server.max_viewers + RESERVED
        strangers = [await opens_video(client, video) for _ in range(most)]
        ranks = set(connections.ranks)
        pictures = await opens_video(client, video, "client-driver")
        await until(lambda: Rank.DRIVES in connections.ranks)
        strangers += [await opens_video(client, video) for _ in range(most)]
        assert await stays_open(pictures)
        assert await stays_open(strangers[-1])
        assert (await strangers[FEW.server.max_viewers].receive(timeout=20)).type in ENDS
        assert ranks == {Rank.WATCHES}


async def test_waiting_video_socket_without_a_hello_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with TestClient(TestServer(serving(House(FEW).hub, tmp_path))) as client:
        viewers = [await opens_video(client, "eve") for _ in range(2)]
        _, video = await says_hello(client, "driver", "123456")
        liar = await opens_video(client, video, "client-eve")
        end = await liar.receive(timeout=20)
        assert (end.type, end.data) == (aiohttp.WSMsgType.CLOSE, 1008)
        pictures = await opens_video(client, video, "client-driver")
        assert await stays_open(pictures)
        monkeypatch.setattr(routes, "HELLO_S", 0.05)
        stranger = await opens_video(client, video)
        assert (await stranger.receive(timeout=20)).type in ENDS
        assert await stays_open(pictures)
        assert not any(one.closed for one in viewers)


async def test_unknown_camera_is_refused_with_the_known_names(tmp_path: Path) -> None:
    for more, words in (
        ({"second": rear_camera()}, "camera side refused: expected one of rear."),
        ({}, "camera side refused: expected none: this car has one camera."),
    ):
        application = serving(House(FEW).hub, tmp_path, **more)
        async with TestClient(TestServer(application)) as client:
            answer = await client.get("/ws/video?id=eve&camera=side")
            assert (answer.status, (await answer.text()).strip()) == (404, words)


async def test_second_camera_is_woken_by_its_viewers_and_has_its_own_places(tmp_path: Path) -> None:
    second = rear_camera()
    application = serving(House(FEW).hub, tmp_path, second=second)
    async with TestClient(TestServer(application)) as client:
        first = [await opens_video(client, "eve") for _ in range(2)]
        assert not second.wanted.is_set() and not second.stream.viewers
        rear = [await client.ws_connect("/ws/video?id=eve&camera=rear", autoping=False)]
        assert second.wanted.is_set() and len(second.stream.viewers) == 1
        assert all([await stays_open(one) for one in (*first, *rear)])
        await rear[0].close()
        await until(lambda: not second.stream.viewers)


def test_request_body_is_refused(tmp_path: Path) -> None:
    assert status("/healthz", tmp_path, body=b"x") == 413
    assert status("/healthz", tmp_path) == 200


async def test_full_drive_socket_keeps_a_place_for_a_driver(tmp_path: Path) -> None:
    """Two may watch. The third is refused, the driver gets in and stays."""
    async with TestClient(TestServer(serving(House(FEW).hub, tmp_path))) as client:
        watchers = [(await says_hello(client, name))[0] for name in ("one", "two")]
        third, _ = await says_hello(client, "three")
        text = "2 viewers are here already (server.max_viewers)"
        assert await closing(third) == (text, "close_full")
        driver, _ = await says_hello(client, "driver", "123456")
        assert (await driver.receive_json(timeout=20))["kind"] == "pass"
        await driver.send_json({"kind": "ping", "seq": 1, "t": 0})
        assert (await driver.receive_json(timeout=20))["kind"] == "pong"
        assert not any(watcher.closed for watcher in watchers)


async def test_drive_sockets_without_a_hello_are_counted(tmp_path: Path) -> None:
    most = FEW.server.max_viewers + RESERVED
    async with TestClient(TestServer(serving(House(FEW).hub, tmp_path))) as client:
        url = client.make_url("/ws/drive")
        silent = [await client.session.ws_connect(url) for _ in range(most)]
        reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
        writer.write(UPGRADE)
        answer = await reader.readuntil(b"max_viewers")
        assert answer.startswith(b"HTTP/1.1 503")
        assert f"{most} are open from 127.0.0.1".encode() in answer
        assert not any(one.closed for one in silent)
        writer.close()


@pytest.mark.parametrize("name", ["Upgrade", "Sec-WebSocket-Version"])
def test_handshake_with_non_ascii_header_is_a_bad_request(tmp_path: Path, name: str) -> None:
    hub: Any = SimpleNamespace()
    app = serving(hub, tmp_path)

    async def ask() -> bytes:
        async with TestServer(app) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            head = f"GET /ws/drive HTTP/1.1\r\nHost: localhost\r\n{name}: \xe9\r\n\r\n"
            writer.write(head.encode("latin-1"))
            answer = await reader.readuntil(b"ASCII")
            writer.close()
            return answer

    assert asyncio.run(ask()).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_refused_undecodable_name_is_shown_escaped_and_cut(tmp_path: Path, name: str) -> None:
    hub: Any = SimpleNamespace()
    app = serving(hub, tmp_path)
    head = {"Host": "localhost", name: "caf\xe9" + "x" * 200}
    lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())

    async def ask() -> bytes:
        async with TestServer(app) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(f"GET / HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
            answer = await reader.readuntil(b"refused")
            writer.close()
            return answer

    answer = asyncio.run(ask())
    assert answer.startswith(b"HTTP/1.1 403") and b"caf\\udce9" in answer
    assert b"x" * 77 not in answer


def test_path_impossible_for_a_file_is_not_found(tmp_path: Path) -> None:
    assert status(f"/{'a' * 300}.js", tmp_path) == 404
    assert status("/%ff%fe.js", tmp_path) == 404
    assert status("/a%00b.js", tmp_path) == 404


async def test_picture_settings_give_the_mode_as_texts(tmp_path: Path) -> None:
    camera = Camera([], True)
    camera.sensor = "imx219"
    picture = PictureSettings(PROFILE, None, None, camera)
    app = serving(SimpleNamespace(), tmp_path, picture=picture)
    async with TestClient(TestServer(app)) as client:
        sent = await (await client.get("/api/picture")).json()
    texts = msgspec.convert(sent["mode"], list[Text])
    assert texts and texts == picture.as_json()["mode"]


async def test_page_at_another_scheme_may_ping(tmp_path: Path) -> None:
    """The trust page, at http, pings the car at https; browsers withhold a private answer."""
    async with TestClient(TestServer(serving(SimpleNamespace(), tmp_path))) as client:
        answer = await client.get("/api/ping")
        assert (await answer.json())["clock_us"] > 0
    assert "Cross-Origin-Resource-Policy" not in answer.headers

"""The routes by themselves: who is let in, what is served. No car behind them."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer

from fpvcar import paths
from fpvcar.config import profiles
from fpvcar.server.routes import Server
from tests.rigs.hub import House, NoFigures

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")
FEW = msgspec.structs.replace(
    PROFILE, server=msgspec.structs.replace(PROFILE.server, max_viewers=2)
)


def status(
    path: str, root: Path, *, viewers: int = 0, body: bytes | None = None
) -> int:
    """What GET `path` answers while so many are here; 101 opens a WebSocket."""
    hub: Any = SimpleNamespace(
        leave=lambda _: None, page_of=lambda video: video,
        may_drive=lambda page: page == "driver",
    )  # fmt: skip
    stream: Any = SimpleNamespace(viewers=[None] * viewers)

    async def ask() -> int:
        app = Server(FEW, hub, stream, root, NoFigures()).application()
        async with TestClient(TestServer(app)) as client:
            if not path.startswith("/ws/"):
                return (await client.get(path, data=body)).status
            try:
                async with client.ws_connect(path):
                    return 101
            except aiohttp.WSServerHandshakeError as refused:
                return refused.status

    return asyncio.run(ask())


def test_a_crowd_at_the_video_bars_nobody_from_the_stop_button(tmp_path: Path) -> None:
    assert status("/ws/drive", tmp_path, viewers=2) == 101
    assert status("/ws/video?id=eve", tmp_path, viewers=2) == 503
    assert status("/ws/video?id=driver", tmp_path, viewers=2) == 101


def test_a_body_is_refused(tmp_path: Path) -> None:
    assert status("/healthz", tmp_path, body=b"x") == 413
    assert status("/healthz", tmp_path) == 200


def test_a_full_house_keeps_a_place_for_whoever_may_drive(tmp_path: Path) -> None:
    """Two may watch. The third goes again, the driver gets in and stays."""
    stream: Any = SimpleNamespace(viewers=[])
    app = Server(FEW, House(FEW).hub, stream, tmp_path, NoFigures()).application()

    async def says_hello(
        client: TestClient[Any, Any], name: str, code: str = ""
    ) -> aiohttp.ClientWebSocketResponse:
        ws = await client.ws_connect("/ws/drive")
        await ws.send_json(
            {"kind": "hello", "v": 1, "client": f"client-{name}", "code": code}
        )
        assert (await ws.receive_json(timeout=3))["kind"] == "welcome"
        return ws

    async def crowd() -> None:
        async with TestClient(TestServer(app)) as client:
            driver = await says_hello(client, "driver", "123456")
            await driver.close()
            watchers = [await says_hello(client, name) for name in ("one", "two")]
            third = await says_hello(client, "three")
            end = await third.receive(timeout=3)
            assert end.type is aiohttp.WSMsgType.CLOSE
            assert end.extra == "2 viewers are here already (server.max_viewers)"
            driver = await says_hello(client, "driver", "123456")
            await driver.send_json({"kind": "ping", "seq": 1, "t": 0})
            assert (await driver.receive_json(timeout=3))["kind"] == "pong"
            assert not any(watcher.closed for watcher in watchers)

    asyncio.run(crowd())


def test_sockets_that_never_say_hello_are_counted(tmp_path: Path) -> None:
    stream: Any = SimpleNamespace(viewers=[])
    app = Server(FEW, House(FEW).hub, stream, tmp_path, NoFigures()).application()

    async def crowd() -> None:
        async with TestClient(TestServer(app)) as client:
            for _ in range(2):
                await client.ws_connect("/ws/drive")
            answer = await client.get("/ws/drive")
            assert answer.status == 503
            assert "2 are open from 127.0.0.1" in await answer.text()

    asyncio.run(crowd())


@pytest.mark.parametrize("name", ["Upgrade", "Sec-WebSocket-Version"])
def test_a_handshake_of_odd_bytes_is_a_bad_request(tmp_path: Path, name: str) -> None:
    hub: Any = SimpleNamespace()
    app = Server(FEW, hub, hub, tmp_path, NoFigures()).application()

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
def test_a_refused_name_that_is_no_text_is_shown_all_the_same(
    tmp_path: Path, name: str
) -> None:
    hub: Any = SimpleNamespace()
    app = Server(FEW, hub, hub, tmp_path, NoFigures()).application()
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


def test_a_path_that_no_file_can_have_is_not_found(tmp_path: Path) -> None:
    assert status(f"/{'a' * 300}.js", tmp_path) == 404
    assert status("/%ff%fe.js", tmp_path) == 404
    assert status("/a%00b.js", tmp_path) == 404

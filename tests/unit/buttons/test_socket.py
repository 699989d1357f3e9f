"""Socket /ws/buttons on a real loop: admission, refusals, the cost of a flood."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import WSMsgType
from aiohttp.test_utils import TestClient, TestServer
from testkit.harness import running
from testkit.hub import House, server_of

from fpvcar.buttons.socket import feature
from fpvcar.config import profiles
from fpvcar.http import text_session
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text
from fpvcar.wire.down import Closing

BARE = profiles.load(
    paths.HARDWARE / "bench.toml", ["buttons = {}", "lights = {}", "server.max_viewers = 3"]
)
Ws = aiohttp.ClientWebSocketResponse


@asynccontextmanager
async def house() -> AsyncIterator[TestClient[Any, Any]]:
    """Serve a server with only the panel in it."""
    nobody: Any = None
    house = House(BARE, feature=feature)
    server = server_of(BARE, house.hub, nobody, features=house.features)
    _, run = house.features[0].parts[0].loops
    async with running(run()), TestClient(TestServer(server.application())) as client:
        yield client


async def page(client: TestClient[Any, Any]) -> Ws:
    """Open a page that has sent its hello and received the panel."""
    ws = await client.ws_connect("/ws/buttons")
    await ws.send_json({"kind": "hello", "v": 1})
    panel = await ws.receive_json(timeout=20)
    assert panel["kind"] == "panel" and len(panel["buttons"]) == 4
    assert panel["car"] == "Plague"
    assert (await ws.receive_json(timeout=20))["kind"] == "glow"
    return ws


async def glows(ws: Ws, lit: int) -> None:
    """Read until these buttons are lit."""
    async with asyncio.timeout(20):
        while (await ws.receive_json())["lit"] != lit:
            pass


async def closed(ws: Ws) -> Text:
    """Return the reason of the close, whose frame has its key."""
    last = ""
    async with asyncio.timeout(20):
        while (message := await ws.receive()).type is not WSMsgType.CLOSE:
            assert message.type is WSMsgType.TEXT, message
            last = message.data
    text = msgspec.json.decode(last, type=Closing).text
    assert message.extra == text.key
    return text


async def test_push_lights_other_pages_until_its_page_closes() -> None:
    async with house() as client:
        one, other = await page(client), await page(client)
        await one.send_json({"kind": "hold", "held": 0b10})
        await glows(other, 0b10)
        await glows(one, 0b10)
        await one.close()
        await glows(other, 0)


async def test_game_begins_on_all_pages() -> None:
    async with house() as client:
        one, other = await page(client), await page(client)
        await one.send_json({"kind": "choose", "mode": "game"})
        async with asyncio.timeout(20):
            while (await other.receive_json())["mode"] != "show":
                pass


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"kind":"hold","held":64}', "message refused"),
        ('{"kind":"choose","mode":"fast"}', "message refused"),
        ("{", "malformed JSON"),
        ("x" * 4000, "malformed JSON"),
    ],
)
async def test_three_bad_messages_in_a_row_close_the_socket(text: str, what: str) -> None:
    async with house() as client:
        ws = await page(client)
        for good_in_between in (False, True, False):
            await ws.send_str(text)
            async with asyncio.timeout(20):
                while "what" not in (answer := await ws.receive_json()):
                    pass
            assert answer["what"] == what
            if good_in_between:
                await ws.send_json({"kind": "hold", "held": 0})
        for _ in range(2):
            await ws.send_str(text)
        assert str(await closed(ws)) == f"3 bad messages in a row: {what}"


async def test_hello_comes_first_in_its_version_and_as_text() -> None:
    async with house() as client:
        ws = await client.ws_connect("/ws/buttons")
        await ws.send_json({"kind": "hold", "held": 1})
        assert (await ws.receive_json(timeout=20))["what"] == "hello first"
        await ws.send_json({"kind": "hello", "v": 2})
        answer = await ws.receive_json(timeout=20)
        assert answer["what"] == "wrong version" and "reload" in answer["limit"]
        await ws.send_bytes(b"\x00")
        assert "binary frame refused" in str(await closed(ws))


async def test_drive_messages_are_ignored_by_the_buttons_socket() -> None:
    async with house() as client:
        ws, other = await page(client), await page(client)
        for kind in ("drive", "take", "estop", "lights"):
            await ws.send_json({"kind": kind, "throttle": 1.0, "steer": 1.0})
        await ws.send_json({"kind": "hello", "v": 1})  # a second one changes nothing
        await ws.send_json({"kind": "hold", "held": 0b1})
        await glows(other, 0b1)


async def test_silent_page_is_closed_and_its_buttons_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_session, "SILENCE_S", 0.3)
    async with house() as client:
        ws = await page(client)
        await ws.send_json({"kind": "hold", "held": 0b1})
        begin_s = time.monotonic()
        assert "no message for" in str(await closed(ws))
        assert time.monotonic() - begin_s > 0.2
        monkeypatch.undo()
        await glows(await page(client), 0)


async def test_flood_of_a_page_does_not_delay_other_pages() -> None:
    async with house() as client:
        flood, calm, eyes = [await page(client) for _ in range(3)]
        for number in range(400):
            await flood.send_json({"kind": "hold", "held": number % 2})
        begin_s = time.monotonic()
        for held in (0b1000, 0, 0b1000):
            await calm.send_json({"kind": "hold", "held": held})
            async with asyncio.timeout(20):
                while ((await eyes.receive_json())["lit"] ^ held) & 0b1000:
                    pass
        assert time.monotonic() - begin_s < 2.5
        flood.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        await glows(eyes, 0b1000)
        for _ in range(2):  # its unread messages are dropped
            assert (await eyes.receive_json(timeout=20))["lit"] == 0b1000


async def test_pings_are_answered() -> None:
    async with house() as client:
        ws = await client.ws_connect("/ws/buttons", autoping=False)
        await ws.ping(b"are you there")
        message = await ws.receive(timeout=20)
        assert message.type is WSMsgType.PONG and message.data == b"are you there"


async def test_full_buttons_socket_answers_503() -> None:
    async with house() as client:
        pages = [await page(client) for _ in range(3)]
        answer = await client.get("/ws/buttons")
        assert answer.status == 503 and "max_viewers" in await answer.text()
        await pages[0].close()
        await asyncio.sleep(0.05)
        await page(client)


async def test_foreign_origin_is_refused() -> None:
    async with house() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect("/ws/buttons", origin="http://evil.example")
        assert refused.value.status == 403


@pytest.mark.parametrize("path", ["/buttons", "/buttons.html"])
async def test_buttons_page_is_served(path: str) -> None:
    async with house() as client:
        answer = await client.get(path)
        assert answer.status == 200 and answer.content_type == "text/html"
        assert 'data-part="buttons"' in await answer.text()


def test_buttons_page_and_its_files_stay_below_50_kb() -> None:
    """Limit: a third of the driver's first screen."""
    files = [paths.WEB / "buttons.html", *(paths.WEB / "buttons").iterdir()]
    shared = [paths.WEB / "lib" / name for name in ("wire.js", "awake.js", "storage.js")]
    assert sum(Path(file).stat().st_size for file in files + shared) < 50_000

"""The routes by themselves: who is let in, what is served. No car behind them."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
from aiohttp.test_utils import TestClient, TestServer

from fpvcar import config, paths
from fpvcar.server import Server

PROFILE = config.load(paths.HARDWARE / "bench.toml")
FEW = msgspec.structs.replace(
    PROFILE, server=msgspec.structs.replace(PROFILE.server, max_viewers=2)
)


def status(path: str, root: Path, *, sessions: int = 0, viewers: int = 0) -> int:
    """What GET `path` answers while so many are here; 101 opens a WebSocket."""
    hub: Any = SimpleNamespace(
        sessions=[None] * sessions, receive=None, leave=lambda _: None
    )
    stream: Any = SimpleNamespace(viewers=[None] * viewers)

    async def ask() -> int:
        app = Server(FEW, hub, stream, root, dict).application()
        async with TestClient(TestServer(app)) as client:
            if not path.startswith("/ws/"):
                return (await client.get(path)).status
            try:
                async with client.ws_connect(path):
                    return 101
            except aiohttp.WSServerHandshakeError as refused:
                return refused.status

    return asyncio.run(ask())


def test_a_crowd_at_the_video_bars_nobody_from_the_stop_button(tmp_path: Path) -> None:
    assert status("/ws/drive", tmp_path, viewers=2) == 101
    assert status("/ws/video", tmp_path, viewers=2) == 503
    assert status("/ws/drive", tmp_path, sessions=2) == 503


def test_a_path_that_no_file_can_have_is_not_found(tmp_path: Path) -> None:
    assert status("/a%00b.js", tmp_path) == 404

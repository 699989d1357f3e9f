"""Client of the car's API: a grown-up's, a driver's or a stranger's device."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from fpvcar.access.codes import CodeCheck
from fpvcar.access.remembered_browsers import Devices
from fpvcar.access.rights import CODE, DeviceRights
from fpvcar.seat.routes import Server
from testkit.hub import CODES, PROFILE, House, server_of

Client = TestClient[Any, Any]


@asynccontextmanager
async def unlocked(server: Server, code: str) -> AsyncIterator[Client]:
    """Yield a client that gave this code, "" for no code."""
    async with TestClient(TestServer(server.application())) as client:
        if code:
            said = await client.post("/api/recordings/unlock", headers={CODE: code})
            assert said.status == 204
        yield client


class GrownUpsApi:
    """Route of grown-ups; its API takes `rights`."""

    def __init__(self, tmp_path: Path) -> None:
        self.house = House()
        self.devices = Devices(bytes(32), CODES, tmp_path / "devices.json")
        self.rights = DeviceRights(CodeCheck(CODES), self.devices)

    @asynccontextmanager
    async def serve(self, code: str, api: Any, **more: object) -> AsyncIterator[Client]:
        """Serve a client that gave this code, "" for no code; `more` are parameters of `Server`."""
        server = server_of(
            PROFILE,
            self.house.hub,
            SimpleNamespace(),
            devices=self.devices,
            apis=(self.rights, api),
            **more,
        )
        async with unlocked(server, code) as client:
            yield client

"""Client of the car's API: a grown-up's, a driver's or a stranger's device."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from fpvcar.server.api.recordings_rights import CODE, DeviceRights
from fpvcar.server.auth.access import CodeCheck
from fpvcar.server.auth.remembered_browsers import Devices
from fpvcar.server.routes import Api
from tests.support.hub import CODES, PROFILE, House, server_of

Act = Callable[[TestClient[Any, Any]], Awaitable[None]]


class GrownUpsApi:
    """Route of grown-ups; its API takes `rights`."""

    def __init__(self, tmp_path: Path) -> None:
        self.devices = Devices(bytes(32), CODES, tmp_path / "devices.json")
        self.rights = DeviceRights(CodeCheck(CODES), self.devices)

    def serve(self, act: Act, code: str, api: Api, **more: object) -> None:
        """Run `act` with a client that gave this code, "" for no code; `more` are parameters of
        `Server`."""
        server = server_of(
            PROFILE,
            House().hub,
            SimpleNamespace(),
            devices=self.devices,
            apis=(self.rights, api),
            **more,
        )

        async def run() -> None:
            async with TestClient(TestServer(server.application())) as client:
                if code:
                    unlock = "/api/recordings/unlock"
                    said = await client.post(unlock, headers={CODE: code})
                    assert said.status == 204
                await act(client)

        asyncio.run(run())

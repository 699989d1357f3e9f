"""Car that a test serves: the hub of testkit/hub.py, its routes, and browsers with real sockets."""

import dataclasses
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.access.rights import CODE
from fpvcar.runtime import paths
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.routes import Server
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Stream
from fpvcar.wire import down
from testkit.hub import House, NoFigures, until

Client = TestClient[Any, Any]
Socket = aiohttp.ClientWebSocketResponse
CORE = {field.name for field in dataclasses.fields(Core)}


class Car(House):
    """Car with routes and browsers; its options are those of House."""

    client: Client
    """Browsers at the served car."""
    routes: Server

    @property
    def stream(self) -> Stream:
        return self.vehicle.cameras.stream

    def publish(self) -> None:
        """Publish a key frame of the camera."""
        self.stream.publish(AccessUnit(True, time.monotonic_ns() // 1000, b"unit"))

    def server(self, *apis: Any, **parts: Any) -> Server:
        """Return the routes with those of these APIs; `parts` replace parts of the core, or are
        given to the server. `bodies` and `hosts` are those of a feature."""
        of_feature = {name: parts.pop(name) for name in ("bodies", "hosts") if name in parts}
        features = [Feature(name="api", routes=api.add_to) for api in apis]
        features.append(Feature(name="api", **of_feature))
        core = {name: parts.pop(name) for name in CORE & parts.keys()}
        given = {
            "figures": NoFigures(),
            "web_root": paths.WEB,
            "devices": self.devices,
            "features": (*features, *self.features),
            **parts,
        }
        return Server(core=dataclasses.replace(self.vehicle, **core), hub=self.hub, **given)

    @asynccontextmanager
    async def serve(
        self, *apis: Any, code: str = "", tls: ssl.SSLContext | None = None, **parts: Any
    ) -> AsyncIterator[Client]:
        """Serve the routes; yield a client that gave this code. The rights' route comes with a
        code."""
        rights = (self.vehicle.rights,) if apis else ()
        self.routes = self.server(*rights, *apis, **parts)
        server = TestServer(self.routes.application(), scheme="https" if tls else "http")
        await server.start_server(ssl=tls)
        assert server.runner and server.runner.server  # made by start_server
        served = server.runner.server
        served.request_handler = self.embedding.around(served.request_handler)
        async with TestClient(server) as self.client:
            if code:
                said = await self.client.post("/api/recordings/unlock", headers={CODE: code})
                assert said.status == 204
            yield self.client

    async def opens(self, path: str, name: str = "", **more: Any) -> Socket:
        """Open a socket; the page called `name` says hello there."""
        ws = await self.client.ws_connect(path, ssl=False, autoping=False)
        if name:
            await ws.send_json({"kind": "hello", "v": 1, "client": f"client-{name}", **more})
        return ws

    async def joins(self, name: str, code: str = "") -> tuple[Socket, str]:
        """Open a page; return its socket, and its id for the pictures."""
        drive = await self.opens("/ws/drive", name, code=code)
        welcome = await drive.receive_json(timeout=20)
        assert welcome["kind"] == "welcome"
        return drive, welcome["video"]

    async def sits_down(self, name: str = "driver") -> tuple[Socket, str]:
        """Open a page that takes the wheel."""
        drive, video = await self.joins(name, "123456")
        await drive.send_json({"kind": "take"})
        await until(lambda: self.hub.sessions.at_the_wheel(f"client-{name}"))
        return drive, video


async def closing(ws: Socket) -> tuple[str, str]:
    """Return the text of the car's Closing, and the reason in its close frame."""
    text = ""
    while True:
        end = await ws.receive(timeout=20)
        if end.type is aiohttp.WSMsgType.TEXT and json.loads(end.data)["kind"] == "closing":
            text = str(msgspec.json.decode(end.data, type=down.Closing).text)
        if end.type is aiohttp.WSMsgType.CLOSE:
            return text, str(end.extra)

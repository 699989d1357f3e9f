"""Route /api/station of a car over a folder, and a client in the role of a base station."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.access.codes import CodeCheck
from fpvcar.access.rights import RecordingRights
from fpvcar.access.stations import FILE, Stations
from fpvcar.library import recording_index
from fpvcar.library.api.recordings_api import ListContext, RecordingsApi
from fpvcar.library.api.station_api import StationApi
from fpvcar.wire import station as wire
from testkit.recordings import CODES

Client = TestClient[Any, Any]


def stations_of(state: Path) -> Stations:
    """Return the list of a car whose key is all zeros."""
    return Stations(bytes(32), CODES, state / FILE)


def car_application(
    folder: Path,
    stations: Stations,
    car: str = "Plague",
    remote: str = "127.0.0.1",
    certificate: str = "",
) -> web.Application:
    """Return the routes of a car for stations."""

    @web.middleware
    async def elsewhere(request: web.Request, handler: Any) -> web.StreamResponse:
        answer: web.StreamResponse = await handler(request.clone(remote=remote))
        return answer

    recordings = RecordingsApi(
        lambda: recording_index.files_in(folder), ListContext(car, True), RecordingRights()
    )
    app = web.Application(middlewares=[elsewhere])
    api = StationApi(
        car, folder, stations, CodeCheck(CODES), recordings.downloads, certificate=certificate
    )
    recordings.add_to(app)
    api.add_to(app)
    return app


@asynccontextmanager
async def ask_car(
    folder: Path, stations: Stations | None = None, **more: Any
) -> AsyncIterator[Client]:
    """Run the routes for a client."""
    app = car_application(folder, stations or stations_of(folder), **more)
    async with TestClient(TestServer(app)) as client:
        yield client


async def paired(client: Client, name: str = "workshop") -> wire.Pairing:
    headers = {wire.CODE: CODES.grown_up, wire.NAME: name}
    answer = await client.post(wire.BASE + "/pair", headers=headers)
    assert answer.status == 200, await answer.text()
    return msgspec.json.decode(await answer.read(), type=wire.Pairing)


async def signed(
    client: Client, pairing: wire.Pairing, method: str, path: str, **headers: str
) -> ClientResponse:
    """Send a request like an older station, with a random nonce."""
    said = signature(pairing, method, path)
    return await client.request(method, wire.BASE + path, headers={**said, **headers})


def signature(pairing: wire.Pairing, method: str, path: str, nonce: str = "") -> dict[str, str]:
    """Return headers that sign a request."""
    nonce, key = nonce or secrets.token_hex(16), bytes.fromhex(pairing.key)
    mac = wire.request_mac(key, nonce, method, wire.BASE + path)
    return {wire.STATION: pairing.station, wire.NONCE: nonce, wire.MAC: mac}

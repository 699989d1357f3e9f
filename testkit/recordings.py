"""Routes of recordings for tests: a folder with one recording, and its clients."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.access.codes import CodeCheck, Codes
from fpvcar.access.remembered_browsers import Devices
from fpvcar.access.rights import DeviceRights, RecordingRights
from fpvcar.library import recording_index
from fpvcar.library.api.recordings_api import ListContext, RecordingsApi
from fpvcar.wire.video import VIDEO_HEADER, VideoHeader, parse_video
from testkit import mcaps
from testkit.mcaps import Logged, McapFile

CODES = Codes("123456", "grownups")
SECONDS = 4.0
NAME = "Plague-20251121T200000Z-0001.mcap"
Client = TestClient[Any, Any]


def drive_messages() -> list[Logged]:
    """Return a short drive: pictures and senses."""
    return [*mcaps.pictures(SECONDS), *mcaps.measured(SECONDS)]


def one_drive(tmp_path: Path) -> Path:
    """Make a folder with one whole recording, and a secret beside it."""
    made = tmp_path / "recordings"
    made.mkdir()
    (tmp_path / "secret.mcap").write_bytes(b"secret")
    McapFile(drive_messages()).to(made / NAME)
    return made


def no_devices() -> Devices:
    """Return an empty list of devices, which is not saved."""
    return Devices(bytes(32), CODES, Path("/nowhere/devices.json"))


def routes_of(
    folder: Path, rights: RecordingRights | None = None, driven: bool = False
) -> RecordingsApi:
    """Return the routes to a folder's files; by default behind the car's codes."""
    return RecordingsApi(
        lambda: recording_index.files_in(folder),
        ListContext("Plague", True),
        rights or DeviceRights(CodeCheck(CODES), no_devices()),
        lambda: driven,
        folder=folder,
    )


@asynccontextmanager
async def ask(
    folder: Path, *, at_home: bool = True, stalled_s: float = 20.0, **more: Any
) -> AsyncIterator[Client]:
    """Run the routes for a client; `at_home=False` means from another machine. A reader that takes
    nothing for `stalled_s` is cut; `more`: see `routes_of`."""

    @web.middleware
    async def elsewhere(request: web.Request, handler: Any) -> web.StreamResponse:
        answer: web.StreamResponse = await handler(
            request if at_home else request.clone(remote="192.0.2.7")
        )
        return answer

    app = web.Application(middlewares=[elsewhere])
    routes = routes_of(folder, **more)
    routes.downloads._stalled_s = stalled_s
    routes.add_to(app)
    async with TestClient(TestServer(app)) as client:
        yield client


def units(body: bytes) -> list[tuple[VideoHeader, bytes]]:
    """Return the frames of an answer, cut like on the page."""
    found, at = [], 0
    while at < len(body):
        size = VIDEO_HEADER.size + int.from_bytes(body[at + 16 : at + 20], "little")
        found.append(parse_video(body[at : at + size]))
        at += size
    return found

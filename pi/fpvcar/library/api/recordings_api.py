"""/api/recordings: list of recordings, file downloads, pictures and plots for playback.

Drives: drives_api.py. Films and zips: exports.py. Sending while the car is driven: downloads.py. A
name is looked up among the existing recordings and never used to build a path.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from fpvcar.access.rights import RecordingRights
from fpvcar.http.responses import BYTES, JSON, RECORDING_GONE, answering, refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import OBJECT, answers, query_of
from fpvcar.library.api.downloads import CpuThrottle, Downloads, Driven, as_file
from fpvcar.library.api.drives_api import DrivesApi
from fpvcar.library.api.drives_api import ListContext as ListContext
from fpvcar.library.api.export_jobs import JobFactory
from fpvcar.library.api.exports import ExportsApi
from fpvcar.library.cache import RecordingCache
from fpvcar.library.drive_repository import DriveRepository, FolderRepository
from fpvcar.library.recording_index import RecordingIndex
from fpvcar.recordings.export import pictures, plots
from fpvcar.recordings.export.pictures import Frame
from fpvcar.recordings.export.thumbnail import first_picture
from fpvcar.recordings.reader import Recording
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Text
from fpvcar.runtime.units import SECOND_NS
from fpvcar.wire.video import pack_video

RECORDING_OPEN = Phrase("recording_open", "{name} is still being written: try again in a minute.")

IDLE_S = 30.0


From = Annotated[float, Meta(ge=0.0, le=1e9)]
"""Seconds from the start of the recording."""


class PageQuery(Struct):
    """Part of the list: the last `most` names before `before`."""

    most: Annotated[int, Meta(ge=1, le=sys.maxsize)] = sys.maxsize
    before: str = ""


class UnitsQuery(Struct, rename={"from_s": "from"}):
    """Range of a recording for playback; 30 s have about 8 MB."""

    from_s: From = 0.0
    seconds: Annotated[float, Meta(ge=0.0, le=30.0)] = 8.0


class SheetQuery(Struct, rename={"from_s": "from"}):
    """Range of a contact sheet: one picture per second."""

    from_s: From = 0.0
    seconds: Annotated[float, Meta(ge=0.0, le=60.0)] = 60.0


class ThumbnailQuery(Struct, rename={"from_s": "from"}):
    """Time of a thumbnail in the recording."""

    from_s: From = 0.0


class TableQuery(Struct):
    """Approximate number of points of a line."""

    points: Annotated[int, Meta(ge=2, le=10_000)] = plots.POINTS


class RecordingsApi:
    """Routes of recordings. `files()` returns the recordings, or a repository is passed instead.

    `driven()` returns whether a driver has the wheel; answers are then sent more slowly.
    """

    def __init__(
        self,
        files: Callable[[], Iterable[Path]] | DriveRepository,
        context: ListContext,
        rights: RecordingRights,
        driven: Driven = lambda: False,
        clock_s: Clock = time.monotonic,
        folder: Path | None = None,
    ) -> None:
        """Create the routes; `folder` may store an index of the recordings."""
        throttle = CpuThrottle(driven)
        rest = throttle.rest
        self.repository: DriveRepository
        if callable(files):
            index = RecordingIndex(files, rest=rest, folder=folder)
            self.repository = FolderRepository(index, folder, context.seat, rest)
        else:
            self.repository = files
        self._context = context
        self._cache = RecordingCache(clock_s, rest)
        self.downloads = Downloads(driven, clock_s)
        """Other senders of this folder's files use the same object, to share its thread and its
        rate."""
        self._rights = rights
        self._drives = DrivesApi(self.repository, self.downloads, rights, context)
        factory = JobFactory(self.repository, context.car, rest)
        self._exports = ExportsApi(factory, self.downloads, rights, clock_s)
        self._closing: asyncio.TimerHandle | None = None

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding a catch-all route."""
        base = "/api/recordings"
        app.router.add_get(base, self._list)
        self._rights.add_to(app)
        self._drives.add_to(app)
        self._exports.add_to(app)
        app.router.add_get(base + "/{name}", self._file)
        app.router.add_get(base + "/{name}/units", self._units)
        app.router.add_get(base + "/{name}/sheet", self._sheet)
        app.router.add_get(base + "/{name}/thumbnail", self._thumbnail)
        app.router.add_get(base + "/{name}/table", self._table)
        app.on_cleanup.append(self._end)

    async def _end(self, _: web.Application) -> None:
        if self._closing is not None:
            self._closing.cancel()
        self.downloads.close()

    # --- the recordings ---

    @answers(Right.DRIVER, OBJECT, query=PageQuery)
    async def _list(self, request: web.Request) -> web.StreamResponse:
        """List the recordings, oldest first."""
        car, seat = self._context[:2]
        query = query_of(request, PageQuery)
        paged = not request.query.keys().isdisjoint(PageQuery.__struct_fields__)

        def listed() -> bytes:
            entries, more = self.repository.page(query.before, query.most)
            answer = {"car": car, "seat": seat, "recordings": entries}
            return _json({**answer, "more": more} if paged else answer)

        return await self.downloads.send(request, JSON, answering(listed))

    @answers(Right.DRIVER)
    async def _file(self, request: web.Request) -> web.StreamResponse:
        """Return the MCAP file; takes Range and If-Range."""
        path, writing = await self._look_up(request)
        if writing:
            raise refused(web.HTTPConflict, RECORDING_OPEN(name=path.name))
        headers = {**BYTES, "Content-Disposition": as_file(path.name)}
        opened = answering(partial(os.open, path, os.O_RDONLY | os.O_CLOEXEC))
        return await self.downloads.send_file(request, headers, opened)

    @answers(Right.DRIVER, query=UnitsQuery)
    async def _units(self, request: web.Request) -> web.StreamResponse:
        """Return access units, framed as on /ws/video."""
        query = query_of(request, UnitsQuery)
        from_s, seconds = query.from_s, query.seconds

        def frames(recording: Recording) -> bytes:
            # The first picture was captured before it was recorded.
            start_ns = from_s and recording.start_ns + round(from_s * SECOND_NS)
            end_ns = recording.start_ns + round((from_s + seconds) * SECOND_NS)
            return _pictures(pictures.frames_between(recording, int(start_ns), end_ns))

        return await self._reading(request, BYTES, frames)

    @answers(Right.DRIVER, query=SheetQuery)
    async def _sheet(self, request: web.Request) -> web.StreamResponse:
        """Return a key frame of each second, framed likewise."""
        query = query_of(request, SheetQuery)
        from_s, seconds = query.from_s, query.seconds

        def frames(recording: Recording) -> bytes:
            start_ns = recording.start_ns + round(from_s * SECOND_NS)
            end_ns = start_ns + round(seconds * SECOND_NS)
            return _pictures(pictures.each_second(recording, start_ns, end_ns))

        return await self._reading(request, BYTES, frames)

    @answers(Right.DRIVER, query=ThumbnailQuery)
    async def _thumbnail(self, request: web.Request) -> web.StreamResponse:
        """Return the first key frame, framed likewise."""
        path, _ = await self._look_up(request)
        from_s = query_of(request, ThumbnailQuery).from_s

        def first() -> bytes:
            frame = first_picture(path, from_s)
            if frame is None:
                raise refused(web.HTTPNotFound, Text("no_picture", "No picture was recorded here."))
            return _pictures([frame])

        return await self.downloads.send(request, BYTES, answering(first))

    @answers(Right.DRIVER, OBJECT, query=TableQuery)
    async def _table(self, request: web.Request) -> web.StreamResponse:
        """Return lines for plots."""
        points = query_of(request, TableQuery).points
        return await self._reading(
            request, JSON, lambda recording: _json(plots.plots_of(recording, points))
        )

    # --- reading, in a thread ---

    async def _look_up(self, request: web.Request) -> tuple[Path, bool]:
        """Return the path of the file, and whether it is being written. Raises HTTPNotFound."""
        name = request.match_info["name"]

        def find() -> tuple[Path, bool]:
            path = self.repository.paths([name]).get(name)
            if path is None:
                raise refused(web.HTTPNotFound, RECORDING_GONE)
            return path, self.repository.writing(path)

        return await self.downloads.in_thread(answering(find))

    async def _reading(
        self, request: web.Request, headers: dict[str, str], act: Callable[[Recording], bytes]
    ) -> web.StreamResponse:
        path, writing = await self._look_up(request)
        self._close_later()
        return await self.downloads.send(
            request, headers, answering(lambda: act(self._cache.get(path, writing)))
        )

    def _close_later(self) -> None:
        """Schedule closing of the open recordings soon after the last request.

        A file removed by the ring keeps its space on the card while it is open.
        """
        if self._closing is not None:
            self._closing.cancel()
        loop = asyncio.get_running_loop()
        self._closing = loop.call_later(IDLE_S, lambda: self.downloads.later(self._cache.close))


def _json(answer: object) -> bytes:
    return msgspec.json.encode(answer)


def _pictures(frames: Iterable[Frame]) -> bytes:
    """Pack units, each behind the header of /ws/video, one after the other; capture times UTC."""
    return b"".join(
        pack_video(frame.key, number, frame.capture_ns // 1000, frame.unit)
        for number, frame in enumerate(frames)
    )

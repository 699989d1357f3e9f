"""/api/recordings: list of recordings, file downloads, pictures and plots for playback.

    GET  /api/recordings                   the files, JSON; drives: drives_api.py
    GET  /api/recordings/NAME              the file, with Range and ETag
    GET  /api/recordings/NAME/units?from=S&seconds=S    pictures, as on /ws/video
    GET  /api/recordings/NAME/sheet?from=S&seconds=S    a key frame of each second
    GET  /api/recordings/NAME/thumbnail?from=S    the first key frame, in the same format
    GET  /api/recordings/NAME/table        lines for plots, JSON
    /api/recordings/exports                films and zips: exports.py

Access rights: recordings_rights.py. A name is looked up among the existing recordings and never
used to build a path. Sending while the car is driven: downloads.py.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec
from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.http.responses import BYTES, JSON, answering, number_of, refused
from fpvcar.library.api.downloads import CpuThrottle, Downloads, as_file
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
from fpvcar.runtime.units import SECOND_NS
from fpvcar.wire.refusals import Refusal
from fpvcar.wire.video import pack_video

IDLE_S = 30.0
PAGED = ("most", "before")
"""Query parameters that request a part of the list: the last `most` names before `before`."""
STRETCH_MAX_S = 30.0
"""Most seconds of pictures per request; about 8 MB."""
SHEET_MAX_S = 60.0
"""Most seconds of a contact sheet per request: one picture per second."""


class RecordingsApi:
    """Routes of recordings. `files()` returns the recordings, or a repository is passed instead.

    `driven()` returns whether a driver has the wheel; answers are then sent more slowly.
    """

    def __init__(
        self,
        files: Callable[[], Iterable[Path]] | DriveRepository,
        context: ListContext,
        rights: RecordingRights,
        driven: Callable[[], bool] = lambda: False,
        clock_s: Callable[[], float] = time.monotonic,
        folder: Path | None = None,
    ) -> None:
        """Create the routes; `folder` may store an index of the recordings."""
        throttle = CpuThrottle(driven)
        rest = throttle.rest
        self._repository: DriveRepository
        if callable(files):
            index = RecordingIndex(files, rest=rest, folder=folder)
            self._repository = FolderRepository(index, folder, context.seat, rest)
        else:
            self._repository = files
        self._context = context
        self._cache = RecordingCache(clock_s, rest)
        self.downloads = Downloads(driven, clock_s)
        """Other senders of this folder's files use the same object, to share its thread and its
        rate."""
        self._rights = rights
        self._drives = DrivesApi(self._repository, self.downloads, rights, context)
        factory = JobFactory(self._repository, context.car, rest)
        self._exports = ExportsApi(factory, self.downloads, rights.let_in, clock_s)
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

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        car, seat = self._context[:2]
        query = request.query
        before, paged = query.get("before", ""), not query.keys().isdisjoint(PAGED)
        most = int(number_of(request, "most", sys.maxsize, 1, sys.maxsize))

        def listed() -> bytes:
            entries, more = self._repository.page(before, most)
            answer = {"car": car, "seat": seat, "recordings": entries}
            return _json({**answer, "more": more} if paged else answer)

        return await self.downloads.send(request, JSON, answering(listed))

    async def _file(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        path, writing = await self._look_up(request)
        if writing:
            raise refused(web.HTTPConflict, Refusal("recording_open", name=path.name))
        headers = {**BYTES, "Content-Disposition": as_file(path.name)}
        opened = answering(partial(os.open, path, os.O_RDONLY | os.O_CLOEXEC))
        return await self.downloads.send_file(request, headers, opened)

    async def _units(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        from_s = number_of(request, "from", 0.0, 0.0, 1e9)
        seconds = number_of(request, "seconds", 8.0, 0.0, STRETCH_MAX_S)

        def frames(recording: Recording) -> bytes:
            # The first picture was captured before it was recorded.
            start_ns = from_s and recording.start_ns + round(from_s * SECOND_NS)
            end_ns = recording.start_ns + round((from_s + seconds) * SECOND_NS)
            return _pictures(pictures.frames_between(recording, int(start_ns), end_ns))

        return await self._reading(request, BYTES, frames)

    async def _sheet(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        from_s = number_of(request, "from", 0.0, 0.0, 1e9)
        seconds = number_of(request, "seconds", SHEET_MAX_S, 0.0, SHEET_MAX_S)

        def frames(recording: Recording) -> bytes:
            start_ns = recording.start_ns + round(from_s * SECOND_NS)
            end_ns = start_ns + round(seconds * SECOND_NS)
            return _pictures(pictures.each_second(recording, start_ns, end_ns))

        return await self._reading(request, BYTES, frames)

    async def _thumbnail(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        path, _ = await self._look_up(request)
        from_s = number_of(request, "from", 0.0, 0.0, 1e9)

        def first() -> bytes:
            frame = first_picture(path, from_s)
            if frame is None:
                raise refused(web.HTTPNotFound, Refusal("no_picture"))
            return _pictures([frame])

        return await self.downloads.send(request, BYTES, answering(first))

    async def _table(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        points = int(number_of(request, "points", plots.POINTS, 2, 10_000))
        return await self._reading(
            request, JSON, lambda recording: _json(plots.plots_of(recording, points))
        )

    # --- reading, in a thread ---

    async def _look_up(self, request: web.Request) -> tuple[Path, bool]:
        """Return the path of the file, and whether it is being written. Raises HTTPNotFound."""
        name = request.match_info["name"]

        def find() -> tuple[Path, bool]:
            path = self._repository.paths([name]).get(name)
            if path is None:
                raise refused(web.HTTPNotFound, Refusal("recording_gone"))
            return path, self._repository.writing(path)

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

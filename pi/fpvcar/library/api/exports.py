"""/api/recordings/exports: export of a drive as a film or a zip, produced while it is sent.

    planning -> ready -> sending -> sent | stopped | failed

A film is planned first, to determine its size and its missing data. A plan ends if the page stops
polling it; sending ends with the connection. All work runs in steps in the thread that reads
recordings, and yields to a driver: downloads.py.
"""

import asyncio
import time
from collections import Counter
from functools import partial

import msgspec
from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.http.responses import PRIVATE, failed, refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers
from fpvcar.library.api.downloads import Downloads, as_file, cut_off
from fpvcar.library.api.export_jobs import (
    TYPES,
    Export,
    ExportRequest,
    Job,
    JobFactory,
    State,
    advance,
    name_of,
)
from fpvcar.library.drive_repository import UNREAD
from fpvcar.recordings.export.mp4_export import Mp4Export
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Text, fault_text

EXPORTS_BUSY = Phrase(
    "exports_busy", "{most} exports are under way: wait for one to end, or cancel it."
)

EXPORT_GONE = Text("export_gone", "There is no such export: begin it again.")

EXPORTS = "/api/recordings/exports"
"""Address that accepts a request body (names of files); no other address does."""
AT_ONCE_MAX, KEPT_MAX = 2, 8
ASKED_MAX = 64 * 1024
"""Most bytes of a request: the names of a day's files."""
UNSEEN_S = 90.0
"""Time without a poll after which a plan ends. A page in the background may poll only once a
minute."""


class ExportsApi:
    """Routes of exports, for clients that may view recordings."""

    def __init__(
        self,
        factory: JobFactory,
        downloads: Downloads,
        rights: RecordingRights,
        clock_s: Clock = time.monotonic,
    ) -> None:
        self._factory, self._downloads = factory, downloads
        self._rights, self._clock_s = rights, clock_s
        self._jobs: dict[str, Job] = {}
        self._plans = set[asyncio.Task[None]]()
        self._beginning = 0

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding routes that accept any name."""
        app.router.add_post(EXPORTS, self._begin)
        app.router.add_get(EXPORTS + "/{id}", self._show)
        app.router.add_delete(EXPORTS + "/{id}", self._cancel)
        app.router.add_get(EXPORTS + "/{id}/file", self._send)
        app.on_shutdown.append(self._end)

    async def _end(self, _: web.Application) -> None:
        for job in self._jobs.values():
            job.cancel()
        for plan in self._plans:
            plan.cancel()

    # --- the routes ---

    @answers(Right.DRIVER, body=ExportRequest, status=201)
    async def _begin(self, request: web.Request) -> Export:
        """Begin the export of a film, or of a zip of files, CSV or Parquet."""
        export_request = await _parse_request(request)
        self._rights.let_in(request)  # rights may end during a slow upload
        self._refuse_more()
        make = partial(self._factory.job, export_request, self._clock_s())
        self._beginning += 1
        try:
            job = await self._downloads.in_thread(make)
        except FileNotFoundError as fault:
            raise failed(web.HTTPNotFound, fault) from None
        except OSError as fault:
            raise failed(web.HTTPUnprocessableEntity, fault) from None
        finally:
            self._beginning -= 1
        finished = [job_id for job_id, job in self._jobs.items() if not job.active]
        for old in finished[: max(0, len(self._jobs) + 1 - KEPT_MAX)]:
            del self._jobs[old]
        self._jobs[job.export.id] = job
        if job.export.state == "planning":
            plan = asyncio.create_task(self._plan(job), name="plan of a film")
            self._plans.add(plan)
            plan.add_done_callback(self._plans.discard)
        return job.status()

    @answers(Right.DRIVER)
    async def _show(self, request: web.Request) -> Export:
        """Return the progress of an export."""
        return self._job_of(request).status()

    @answers(Right.DRIVER)
    async def _cancel(self, request: web.Request) -> Export:
        """End an export at once."""
        job = self._job_of(request)
        job.cancel()
        return job.status()

    @answers(Right.DRIVER)
    async def _send(self, request: web.Request) -> web.StreamResponse:
        """Return the film or the zip, once it is ready."""
        job = self._job_of(request)
        export = job.export
        if export.state == "planning":
            raise refused(web.HTTPConflict, UNREAD)
        if isinstance(job.work, Mp4Export) and not job.work.size:
            raise refused(web.HTTPGone, export.fault or EXPORT_GONE)
        headers = {
            **PRIVATE,
            "Content-Type": TYPES[export.kind][0],
            "Content-Disposition": as_file(export.name),
        }
        send = partial(
            self._downloads.stream,
            request,
            headers,
            job.pieces(),
            export.total if export.exact else None,
        )
        if request.method == "HEAD":
            return await send(lambda _: None)
        if export.state != "sending":
            self._refuse_more()
        number = job.begin(partial(cut_off, request))
        state: State = "stopped"
        fault = None
        try:
            response = await send(partial(job.sent, number))
            state = "sent"
            return response
        except ConnectionError:
            raise
        except (RecordingError, OSError) as error:
            state, fault = "failed", fault_text(error)
            raise ConnectionResetError("the export was cut off") from error
        finally:
            job.over(number, state, fault)

    # --- the work ---

    def _refuse_more(self) -> None:
        """Raise HTTPTooManyRequests if too many exports are under way."""
        active = sum(job.active for job in self._jobs.values())
        if active + self._beginning >= AT_ONCE_MAX:
            raise refused(web.HTTPTooManyRequests, EXPORTS_BUSY(most=AT_ONCE_MAX))

    def _job_of(self, request: web.Request) -> Job:
        job = self._jobs.get(request.match_info["id"])
        if job is None:
            raise refused(web.HTTPNotFound, EXPORT_GONE)
        job.seen_s = self._clock_s()
        return job

    async def _plan(self, job: Job) -> None:
        film, export = job.work, job.export
        assert isinstance(film, Mp4Export)
        steps = film.plan()
        try:
            while (done := await self._downloads.in_thread(partial(advance, steps))) >= 0:
                export.done = done
                if self._clock_s() - job.seen_s > UNSEEN_S:
                    job.cancelled = True
                if job.cancelled:
                    export.state = "stopped"
                    return
            if not film.size:
                raise RecordingError(
                    Text("export_no_picture", "no picture was recorded in this drive")
                )
            export.state, export.done, export.exact = "ready", 0, True
            export.total = film.size
            export.name = name_of(export.name, bool(job.status().missing))
        except (RecordingError, OSError) as fault:
            export.state, export.fault = "failed", fault_text(fault)
        finally:
            self._downloads.later(steps.close)


async def _parse_request(request: web.Request) -> ExportRequest:
    """Read and validate a request. Raises HTTPBadRequest, HTTPRequestEntityTooLarge."""
    body = b""
    async for piece in request.content.iter_chunked(ASKED_MAX):
        body += piece
        if len(body) > ASKED_MAX:
            raise web.HTTPRequestEntityTooLarge(
                ASKED_MAX,
                len(body),
                text=f"More than {ASKED_MAX} bytes of names: ask for fewer files.\n",
            )
    try:
        export_request = msgspec.json.decode(body, type=ExportRequest)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise web.HTTPBadRequest(text=f"Refused: {fault}.\n") from None
    if not export_request.files or not 0.0 <= export_request.from_ms <= export_request.to_ms:
        raise web.HTTPBadRequest(text="Refused: expected files, and a time in them.\n")
    named = Counter(export_request.files).most_common(1)
    if named[0][1] > 1:
        raise web.HTTPBadRequest(
            text=f"Refused: {named[0][0][:80]!r} is named twice: name each file once.\n"
        )
    return export_request

"""Web page of the station: the car's own recordings page, over all cars of the store.

    /                            recordings.html of the car, the same modules
    /api/recordings...           as on the car: library/api/recordings_api.py
    POST, DELETE /api/recordings/drives/ID/recall   begins, cancels: replicas/recalls.py
    /api/datasets                as on the car, in the state directory: datasets/api.py
    /api/status                  state of each car and remote, queues, recalls, disk usage
    /api/query                   SQL over all recordings: query_api.py
    /api/moments                 search by conditions, figures of each week: moments_api.py
    /size                        picture of the storage pyramid: size_page.py
    /metrics /healthz            for Prometheus and monitors, without a password; a machine that
                                 has not entered it gets only the number of faults

Other machines are redirected from http to https.
"""

import asyncio
import socket
import time
from pathlib import Path

import msgspec
from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.datasets.api import DatasetsApi
from fpvcar.http.languages import language_of
from fpvcar.http.pages import HEADERS, Handler, errors_as_pages, page_response, refuse_foreign
from fpvcar.http.prometheus_text import CONTENT_TYPE, exposition
from fpvcar.http.responses import JSON, PRIVATE, failed, refused
from fpvcar.library.api.recordings_api import ListContext, RecordingsApi
from fpvcar.library.drive_repository import DriveBusy, DriveMissing
from fpvcar.runtime import paths
from fpvcar.runtime.units import counted
from fpvstation.catalogue.catalogue import PAGE_OLD, Catalogue
from fpvstation.errors import StationError
from fpvstation.fetch.scheduler import FetchScheduler
from fpvstation.housekeeping import Chores
from fpvstation.query.sidecar import to_install
from fpvstation.replicas.recalls import Recalls
from fpvstation.replicas.remotes import Remotes
from fpvstation.snapshots.tools import snapshots_of
from fpvstation.web import size_page
from fpvstation.web.health import StationHealth
from fpvstation.web.moments_api import MomentsApi
from fpvstation.web.password import PASSWORD_NEEDED, https_url
from fpvstation.web.query_api import QueryApi

TITLE = "Station"
RECALL = "/api/recordings/drives/{id}/recall"


class Page:
    """Routes of the page. Access: this machine, and browsers that entered the password."""

    def __init__(
        self,
        catalogue: Catalogue,
        scheduler: FetchScheduler,
        remotes: Remotes,
        chores: Chores,
        rights: RecordingRights | None = None,
        state: Path = Path(),
        recalls: Recalls | None = None,
    ) -> None:
        """`state`: the station's state directory, with the figures of `fpvstation measure`."""
        self._catalogue, self._scheduler, self._remotes = catalogue, scheduler, remotes
        self._chores, self._state = chores, state
        self._recalls = recalls or Recalls()
        self._rights = rights or RecordingRights()
        self._rights.locked, self._rights.opened_by = PASSWORD_NEEDED, "password"

    def application(self) -> web.Application:
        """Build the application; call once."""
        app = web.Application(middlewares=[errors_as_pages, _own_pages], client_max_size=64 * 1024)
        app.router.add_get("/api/status", self._status)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/size", self._size)
        app.router.add_post(RECALL, self._recall)
        app.router.add_delete(RECALL, self._cancel)
        queries = QueryApi(self._rights, self._catalogue.root)
        moments = MomentsApi(self._rights, queries, self._catalogue)
        app.router.add_post("/api/query", queries.answer)
        app.router.add_get("/api/moments", moments.find)
        app.router.add_get("/api/moments/weeks", moments.weeks)
        recordings = RecordingsApi(
            self._catalogue,
            ListContext(TITLE, seat=False, station=True, to_search=to_install),
            self._rights,
        )
        recordings.add_to(app)
        folder, downloads = self._state / "datasets", recordings.downloads
        DatasetsApi(self._catalogue, downloads, self._rights, folder).add_to(app)
        app.router.add_get("/{path:.*}", _page)
        return app

    async def _status(self, request: web.Request) -> web.Response:
        self._rights.let_in(request)
        body = msgspec.json.encode(await self.health())
        return web.Response(body=body, headers=JSON)

    async def health(self) -> StationHealth:
        """Return the current state of the station."""
        usage = await asyncio.to_thread(self._catalogue.usage)
        snapshots = await asyncio.to_thread(snapshots_of, Path(usage.path))
        return StationHealth(
            usage,
            list(self._scheduler.states.values()),
            self._remotes.states,
            *self._remotes.alone(),
            self._catalogue.unread,
            self._catalogue.reset_reason,
            self._chores.states,
            len(snapshots),
            snapshots[-1].at_s if snapshots else 0.0,
            self._recalls.states,
        )

    async def _recall(self, request: web.Request) -> web.Response:
        self._rights.let_change(request)
        try:
            archived = await asyncio.to_thread(self._catalogue.archived, request.match_info["id"])
            state = self._recalls.begin(*archived)
        except DriveMissing as fault:
            raise refused(web.HTTPNotFound, fault.text) from None
        except DriveBusy as fault:
            raise refused(web.HTTPConflict, fault.text) from None
        except StationError as fault:
            raise failed(web.HTTPConflict, fault) from None
        return web.Response(body=msgspec.json.encode(state), headers=JSON)

    async def _cancel(self, request: web.Request) -> web.Response:
        self._rights.let_change(request)
        state = self._recalls.cancel(request.match_info["id"])
        if state is None:
            raise refused(web.HTTPNotFound, PAGE_OLD)
        return web.Response(body=msgspec.json.encode(state), headers=JSON)

    async def _size(self, request: web.Request) -> web.Response:
        self._rights.let_in(request)
        language = language_of(request.headers.get("Accept-Language", ""))
        text = await asyncio.to_thread(size_page.page, request.query, self._state, language)
        return web.Response(text=text, content_type="text/html", headers=HEADERS)

    async def _health(self, request: web.Request) -> web.Response:
        try:
            faults = list((await self.health()).faults(time.time()))
        except OSError as fault:
            faults = [str(fault)]
        text = "".join(f"{line}\n" for line in faults) or "ok\n"
        if faults and not self._may_see(request):
            text = f"{counted(len(faults), 'fault')}: fpvstation status\n"
        return web.Response(status=503 if faults else 200, text=text, headers=HEADERS)

    def _may_see(self, request: web.Request) -> bool:
        try:
            self._rights.let_in(request)
        except web.HTTPException:
            return False
        return True

    async def _metrics(self, _: web.Request) -> web.Response:
        headers = {**HEADERS, "Content-Type": CONTENT_TYPE}
        text = exposition((await self.health()).metrics())
        return web.Response(body=text.encode(), headers=headers)


@web.middleware
async def _own_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    refuse_foreign(request, socket.gethostname())
    return await handler(request)


async def _page(request: web.Request) -> web.StreamResponse:
    if url := https_url(request):
        raise web.HTTPTemporaryRedirect(url, headers=PRIVATE)
    name = request.match_info["path"] or "recordings.html"
    return page_response(paths.WEB.resolve(), name)

"""The station's page: the car's own recordings page, over all cars of the store.

/                   recordings.html of the car, the same modules
/api/recordings...  as on the car: server/recordings_api.py
/api/status         each car, and what waits
/api/storage        the same, how full the store is, and the catalogue
/metrics /healthz   for Prometheus, and for who watches over it
"""

import asyncio
import socket
import time
from collections.abc import Iterator

import msgspec
from aiohttp import web

from fpvcar import paths
from fpvcar.server.answers import JSON
from fpvcar.server.exposition import CONTENT_TYPE, Metric, exposition
from fpvcar.server.pages import (
    HEADERS,
    Handler,
    errors_as_pages,
    page_response,
    refuse_foreign,
)
from fpvcar.server.recordings_api import Recordings, Shown
from fpvcar.server.recordings_rights import RecordingRights
from fpvstation.catalogue import Catalogue
from fpvstation.keep import Keeper

OLD_S = 24 * 3600.0
"""A car with segments that wait is a fault when none was stored for so long."""
TITLE = "Station"
LOCKED = "What the cars recorded is for those who have the station's password."


class Page:
    """The routes. Only this machine may ask, and who has said the password."""

    def __init__(
        self, catalogue: Catalogue, keeper: Keeper,
        rights: RecordingRights | None = None,
    ) -> None:  # fmt: skip
        self._catalogue, self._keeper = catalogue, keeper
        self._rights = rights or RecordingRights()
        self._rights.locked = LOCKED

    def application(self) -> web.Application:
        """Made once."""
        app = web.Application(
            middlewares=[errors_as_pages, _own_pages], client_max_size=64 * 1024
        )
        app.router.add_get("/api/status", self._status)
        app.router.add_get("/api/storage", self._storage)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._health)
        recordings = Recordings(
            self._catalogue, Shown(TITLE, seat=False, station=True), self._rights
        )
        recordings.add_to(app)
        app.router.add_get("/{path:.*}", _page)
        return app

    async def _status(self, request: web.Request) -> web.Response:
        self._rights.let_in(request)
        said = msgspec.json.encode(list(self._keeper.states.values()))
        return web.Response(body=said, headers=JSON)

    async def _storage(self, request: web.Request) -> web.Response:
        self._rights.let_in(request)
        held = await asyncio.to_thread(self._catalogue.held)
        said = {
            "store": held, "cars": list(self._keeper.states.values()),
            "unread": self._catalogue.unread, "why_anew": self._catalogue.why_anew,
        }  # fmt: skip
        return web.Response(body=msgspec.json.encode(said), headers=JSON)

    async def _health(self, _: web.Request) -> web.Response:
        faults = list(self.faults(time.time()))
        text = "".join(f"{one}\n" for one in faults) or "ok\n"
        return web.Response(status=503 if faults else 200, text=text, headers=HEADERS)

    def faults(self, now_s: float) -> Iterator[str]:
        """What somebody should look at."""
        for one in self._keeper.states.values():
            if one.bad:
                yield f"{one.folder}: {one.state}"
            elif one.waiting and now_s - one.stored_s > OLD_S:
                days = (now_s - one.stored_s) / OLD_S
                yield (f"{one.folder}: {one.waiting} wait, none stored for {days:.0f} "
                       f"days ({one.state})")  # fmt: skip

    async def _metrics(self, _: web.Request) -> web.Response:
        headers = {**HEADERS, "Content-Type": CONTENT_TYPE}
        text = exposition(self._figures())
        return web.Response(body=text.encode(), headers=headers)

    def _figures(self) -> Iterator[Metric]:
        states = list(self._keeper.states.values())
        for name, kind, words, figure in (
            ("station_car_up", "gauge", "1 while it answers.",
             [one.state in ("ok", "fetching") for one in states]),
            ("station_car_seen_seconds", "gauge", "When it answered last, UTC.",
             [one.seen_s or None for one in states]),
            ("station_car_stored_seconds", "gauge",
             "When a segment was stored last, or none waited, UTC.",
             [one.stored_s or None for one in states]),
            ("station_segments_waiting", "gauge", "On the car, and not here.",
             [one.waiting for one in states]),
            ("station_segments_failed", "gauge", "Did not come whole.",
             [len(one.bad) for one in states]),
            ("station_segments_total", "counter", "Stored since the start.",
             [one.stored for one in states]),
            ("station_bytes_total", "counter", "Fetched since the start.",
             [one.bytes for one in states]),
        ):  # fmt: skip
            labels = [{"car": one.folder} for one in states]
            yield Metric(name, kind, words, list(zip(labels, figure, strict=True)))


@web.middleware
async def _own_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    words = 'Host "{}" refused: open it by its address or its name.'
    refuse_foreign(request, socket.gethostname(), words)
    return await handler(request)


async def _page(request: web.Request) -> web.StreamResponse:
    name = request.match_info["path"] or "recordings.html"
    return page_response(paths.WEB.resolve(), name)

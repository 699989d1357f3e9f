"""/api/recordings/drives: drives assembled from the recordings.

    GET  /api/recordings/drives               the newest, JSON
         ?most=50&before=MS                   the 50 before a time (UTC)
         ?driver=&wheel=driven|parked&since=MS&until=MS&text=&cause=estop&cause=...&id=
    POST /api/recordings/drives/ID/title?title=TEXT      sets the title; "" removes it
    POST /api/recordings/drives/ID/delete     deletes its files: a grown-up's right

Files that are still being written, and files shared with another drive, are never deleted. The
answer lists them, and the deleted drive's share of them is no longer listed.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.config import PLAIN
from fpvcar.http.responses import JSON, answering, number_of, quoted, refused
from fpvcar.library.api.downloads import Downloads
from fpvcar.library.drive_repository import DriveBusy, DriveMissing, DriveRepository
from fpvcar.library.drives import DriveFilter
from fpvcar.library.titles import TITLE_MOST
from fpvcar.recordings.export.table_writers import has_parquet
from fpvcar.wire.refusals import Refusal

MOST = 50
"""Default number of drives in an answer."""
WHEEL = ("", "driven", "parked")
log = logging.getLogger("fpvcar.recordings")


class ListContext(NamedTuple):
    """Additional figures of a list: the car's name, and whether the page can link to a seat.

    `shown` returns the name on pages, if it may differ from `car`, the one of files.
    """

    car: str
    seat: bool
    station: bool = False
    """True on a base station. The page then requests more: see fpvstation/web/page.py."""
    shown: Callable[[], str] | None = None
    to_search: Callable[[], str] = str
    """Returns the command that installs the libraries of a base station's searches, "" if they are
    there."""


class DrivesApi:
    """Routes of drives. Naming and deleting are available if the repository is editable."""

    def __init__(
        self,
        repository: DriveRepository,
        downloads: Downloads,
        rights: RecordingRights,
        context: ListContext,
    ) -> None:
        self._repository, self._downloads = repository, downloads
        self._rights, self._context = rights, context

    def add_to(self, app: web.Application) -> None:
        """Add the routes; naming and deleting only for an editable repository."""
        base = "/api/recordings/drives"
        app.router.add_get(base, self._list)
        if self._repository.editable:
            app.router.add_post(base + "/{id}/title", self._title)
            app.router.add_post(base + "/{id}/delete", self._delete)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        drive_filter, most = _filter_of(request), int(number_of(request, "most", MOST, 1, 1000))
        before_ms = number_of(request, "before", float("inf"), 0.0, 1e15)
        grown_up, context = self._rights.grown_up(request), self._context

        def listed() -> bytes:
            return msgspec.json.encode(
                {
                    "car": context.shown() if context.shown else context.car,
                    "seat": context.seat,
                    "station": context.station,
                    "to_search": context.to_search(),
                    "grown_up": grown_up,
                    "removable": self._rights.takes_codes,
                    "editable": self._repository.editable,
                    "parquet": has_parquet(),
                    **self._repository.find(drive_filter, before_ms, most)._asdict(),
                }
            )

        return await self._downloads.send(request, JSON, answering(listed))

    async def _title(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_change(request)
        title = " ".join(request.query.get("title", "").split())
        if len(title) > TITLE_MOST or not re.match(PLAIN, title):
            refusal = Refusal("title", title=quoted(title), most=TITLE_MOST)
            raise refused(web.HTTPBadRequest, refusal)

        def named() -> bytes:
            with _changing():
                self._repository.name(request.match_info["id"], title)
            return b"{}"

        return await self._downloads.send(request, JSON, answering(named))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_delete(request)

        def deleted() -> bytes:
            with _changing():
                gone, stay = self._repository.delete(request.match_info["id"])
            log.info("%s deleted %d files: %s", request.remote, len(gone), ", ".join(gone))
            return msgspec.json.encode({"gone": gone, "stay": stay})

        return await self._downloads.send(request, JSON, answering(deleted))


@contextlib.contextmanager
def _changing() -> Iterator[None]:
    """Raise HTTPNotFound or HTTPConflict for a drive that cannot be changed."""
    try:
        yield
    except DriveMissing as fault:
        raise refused(web.HTTPNotFound, fault) from None
    except DriveBusy as fault:
        raise refused(web.HTTPConflict, fault) from None


def _filter_of(request: web.Request) -> DriveFilter:
    """Return the filter of a list request. Raises HTTPBadRequest."""
    query = request.query
    wheel = query.get("wheel", "")
    if wheel not in WHEEL:
        raise web.HTTPBadRequest(
            text=f'wheel = "{quoted(wheel)}" refused: expected driven or parked.\n'
        )
    return DriveFilter(
        query.get("driver", ""),
        wheel,
        number_of(request, "since", float("-inf"), 0.0, 1e15),
        number_of(request, "until", float("inf"), 0.0, 1e15),
        query.get("text", "").strip(),
        frozenset(query.getall("cause", ())),
        query.get("id", ""),
    )

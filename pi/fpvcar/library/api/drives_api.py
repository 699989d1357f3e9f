"""/api/recordings/drives: drives assembled from the recordings.

Files that are still being written, and files shared with another drive, are never deleted. The
answer lists them, and the deleted drive's share of them is no longer listed.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from fpvcar.access.rights import RecordingRights
from fpvcar.config import PLAIN
from fpvcar.http.responses import JSON, answering, quoted, refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import OBJECT, answers, query_of
from fpvcar.library.api.downloads import Downloads
from fpvcar.library.drive_repository import DriveBusy, DriveMissing, DriveRepository
from fpvcar.library.drives import DriveFilter
from fpvcar.library.titles import TITLE_MOST
from fpvcar.recordings.export.table_writers import has_parquet
from fpvcar.runtime.texts import Phrase

if TYPE_CHECKING:
    from fpvcar.drive.saved import DisplayName  # a station has no drive

Milliseconds = Annotated[float, Meta(ge=0.0, le=1e15)]
"""Time in ms since 1970, UTC."""
WHEEL = ("", "driven", "parked")
TITLE = Phrase("title", 'The name "{title}" was refused: use at most {most} visible characters.')
log = logging.getLogger("fpvcar.recordings")


class ListContext(NamedTuple):
    """Additional figures of a list: the car's name, and whether the page can link to a seat.

    `shown` is the name on pages, if it may differ from `car`, the one of files.
    """

    car: str
    seat: bool
    station: bool = False
    """True on a base station. The page then requests more: see fpvstation/web/page.py."""
    shown: "DisplayName | None" = None
    to_search: Callable[[], str] = str
    """Returns the command that installs the libraries of a base station's searches, "" if they are
    there."""


class DrivesQuery(Struct):
    """Filter of a drive list, see DriveFilter; the newest `most` drives that began `before`."""

    most: Annotated[int, Meta(ge=1, le=1000)] = 50
    before: Milliseconds = float("inf")
    since: Milliseconds = float("-inf")
    until: Milliseconds = float("inf")
    driver: str = ""
    wheel: str = ""
    text: str = ""
    cause: tuple[str, ...] = ()
    id: str = ""


class TitleQuery(Struct):
    """New title of a drive; "" removes it."""

    title: str


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

    @answers(Right.DRIVER, OBJECT, query=DrivesQuery)
    async def _list(self, request: web.Request) -> web.StreamResponse:
        """List the drives that the recordings make up, newest first."""
        query = query_of(request, DrivesQuery)
        drive_filter = _filter_of(query)
        grown_up, context = self._rights.grown_up(request), self._context

        def listed() -> bytes:
            return msgspec.json.encode(
                {
                    "car": context.shown.text if context.shown else context.car,
                    "seat": context.seat,
                    "station": context.station,
                    "to_search": context.to_search(),
                    "grown_up": grown_up,
                    "removable": self._rights.takes_codes,
                    "editable": self._repository.editable,
                    "parquet": has_parquet(),
                    **self._repository.find(drive_filter, query.before, query.most)._asdict(),
                }
            )

        return await self._downloads.send(request, JSON, answering(listed))

    @answers(Right.DRIVERS_PAGE, OBJECT, query=TitleQuery)
    async def _title(self, request: web.Request) -> web.StreamResponse:
        """Set the title of a drive."""
        title = " ".join(query_of(request, TitleQuery).title.split())
        if len(title) > TITLE_MOST or not re.match(PLAIN, title):
            refusal = TITLE(title=quoted(title), most=TITLE_MOST)
            raise refused(web.HTTPBadRequest, refusal)

        def named() -> bytes:
            with _changing():
                self._repository.name(request.match_info["id"], title)
            return b"{}"

        return await self._downloads.send(request, JSON, answering(named))

    @answers(Right.GROWN_UP, OBJECT)
    async def _delete(self, request: web.Request) -> web.StreamResponse:
        """Delete the files of a drive."""

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
        raise refused(web.HTTPNotFound, fault.text) from None
    except DriveBusy as fault:
        raise refused(web.HTTPConflict, fault.text) from None


def _filter_of(query: DrivesQuery) -> DriveFilter:
    """Return the filter of a list request. Raises HTTPBadRequest."""
    if query.wheel not in WHEEL:
        raise web.HTTPBadRequest(
            text=f'wheel = "{quoted(query.wheel)}" refused: expected driven or parked.\n'
        )
    return DriveFilter(
        query.driver,
        query.wheel,
        query.since,
        query.until,
        query.text.strip(),
        frozenset(query.cause),
        query.id,
    )

"""/api/recordings/drives: the drives that the recordings make up.

    GET  /api/recordings/drives               the newest, JSON
         ?most=50&before=MS                   the 50 before a time (UTC)
         ?driver=&wheel=driven|parked&since=MS&until=MS&text=&cause=estop&cause=...
    POST /api/recordings/drives/ID/title?title=TEXT      names it; "" takes it back
    POST /api/recordings/drives/ID/delete     its files go: a grown-up's right

A file that is still being written is never deleted, and none that another drive has a
part in: those stay, and the answer names them. What is in them of the deleted drive is
not listed any more.
"""

import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from aiohttp import web

from fpvcar.config import PLAIN
from fpvcar.recordings import names
from fpvcar.recordings.deleted import Deleted
from fpvcar.recordings.drives import Drive, Part, Wanted, drives_of
from fpvcar.recordings.library import Library
from fpvcar.recordings.titles import TITLE_MOST, Titles
from fpvcar.server.answers import JSON, answering, number_of, quoted
from fpvcar.server.downloads import Downloads
from fpvcar.server.recordings_rights import RecordingRights

MOST, LOOK_S = 50, 1.5
"""Drives in an answer; how long it looks into files that nobody looked into before."""
WHEEL = ("", "driven", "parked")
log = logging.getLogger("fpvcar.recordings")


class Shown(NamedTuple):
    """What a list says besides: whose recordings, and is there a seat to go to?"""

    car: str
    seat: bool


class Drives:
    """The routes. Without a `folder` nothing is renamed or deleted."""

    def __init__(
        self, library: Library, downloads: Downloads, rights: RecordingRights,
        shown: Shown, folder: Path | None, rest: Callable[[], None],
    ) -> None:  # fmt: skip
        """`rest` is called before each drive: somebody may be at the wheel."""
        self._library, self._downloads, self._rights = library, downloads, rights
        self._shown, self._rest = shown, rest
        self._titles = Titles(folder) if folder is not None else None
        self._deleted = Deleted(folder) if folder is not None else None

    def add_to(self, app: web.Application) -> None:
        """Adds the routes."""
        base = "/api/recordings/drives"
        app.router.add_get(base, self._list)
        if self._titles is not None:
            app.router.add_post(base + "/{id}/title", self._title)
            app.router.add_post(base + "/{id}/delete", self._delete)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_in(request)
        wanted, most = _wanted(request), int(number_of(request, "most", MOST, 1, 1000))
        before_ms = number_of(request, "before", float("inf"), 0.0, 1e15)
        grown_up = self._rights.grown_up(request)

        def listed() -> bytes:
            drives, unread = self._all()
            # Files that somebody chose, or that are all there is, are shown.
            whole = not self._shown.seat or all(one.parked for one in drives)
            takes = (_unhidden(wanted) if whole else wanted).takes
            found = [one for one in drives if takes(one)]
            found = [one for one in found if one.start_ms < before_ms]
            drivers = {name for one in drives for name in one.drivers}
            return msgspec.json.encode({
                **self._shown._asdict(), "grown_up": grown_up,
                "editable": self._titles is not None, "drivers": sorted(drivers),
                "drives": found[:most], "more": len(found) > most, "unread": unread,
            })  # fmt: skip

        return await self._downloads.made(request, JSON, answering(listed))

    async def _title(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_change(request)
        titles = self._titles
        title = " ".join(request.query.get("title", "").split())
        if len(title) > TITLE_MOST or not re.match(PLAIN, title):
            raise web.HTTPBadRequest(
                text=f'title "{quoted(title)}" refused: expected at most {TITLE_MOST} '
                "characters that can be seen.\n"
            )

        def named() -> bytes:
            assert titles is not None  # else there is no such route
            drives = self._whole()
            there = [part.name for one in drives for part in one.parts]
            titles.name(_found(request, drives), title, there)
            return b"{}"

        return await self._downloads.made(request, JSON, answering(named))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self._rights.let_delete(request)

        def deleted() -> bytes:
            assert self._deleted is not None  # else there is no such route
            drives = self._whole()
            drive = _found(request, drives)
            if drive.state == "open" or any(map(self._writing, drive.parts)):
                raise web.HTTPConflict(
                    text="This drive is still being recorded: a minute after it ended "
                    "it can be deleted.\n"
                )
            going = {one.name for one in drive.parts if not one.shared}
            shared = [one for one in drive.parts if one.shared]
            there = {part.name for one in drives for part in one.parts} - going
            # First: a drive whose own files could not go is listed all the same.
            try:
                self._deleted.note(shared, there)
            except OSError as fault:  # a full card, say: files that go make room
                log.warning("what stays of a deleted drive is listed: %s", fault)
            gone = self._library.remove(going)
            log.info(
                "%s deleted %d files: %s", request.remote, len(gone), ", ".join(gone)
            )
            return msgspec.json.encode(
                {"gone": gone, "stay": [one.name for one in shared]}
            )

        return await self._downloads.made(request, JSON, answering(deleted))

    def _whole(self) -> list[Drive]:
        """All drives: whose files are not known may share some. Raises HTTPConflict."""
        drives, unread = self._all()
        if unread:
            raise web.HTTPConflict(
                text=f"{unread} files are not looked into yet: try again in a moment.\n"
            )
        return drives

    def _all(self) -> tuple[list[Drive], int]:
        """The drives, and how many files are not looked into yet."""
        known = self._library.known(LOOK_S)
        if self._titles is None or self._deleted is None:
            return drives_of(known.entries, self._rest), known.unread
        drives = drives_of(known.entries, self._rest, self._deleted.gone())
        return self._titles.named(drives), known.unread

    def _writing(self, part: Part) -> bool:
        path = self._library.path(part.name)
        return path is not None and not path.name.endswith(names.SEALED)


def _unhidden(wanted: Wanted) -> Wanted:
    return wanted._replace(wheel="") if wanted.wheel == "driven" else wanted


def _found(request: web.Request, drives: Sequence[Drive]) -> Drive:
    """Raises HTTPNotFound."""
    for one in drives:
        if one.id == request.match_info["id"]:
            return one
    raise web.HTTPNotFound(
        text="There is no such drive any more: look at the list again.\n"
    )


def _wanted(request: web.Request) -> Wanted:
    """What the list is filtered by. Raises HTTPBadRequest."""
    query = request.query
    wheel = query.get("wheel", "")
    if wheel not in WHEEL:
        raise web.HTTPBadRequest(
            text=f'wheel = "{quoted(wheel)}" refused: expected driven or parked.\n'
        )
    return Wanted(
        query.get("driver", ""), wheel,
        number_of(request, "since", float("-inf"), 0.0, 1e15),
        number_of(request, "until", float("inf"), 0.0, 1e15),
        query.get("text", "").strip(), frozenset(query.getall("cause", ())),
    )  # fmt: skip

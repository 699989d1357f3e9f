"""/api/station: pairing with a base station, lists, downloads and receipts.

Requests and answers: wire/station.py. Only sealed files are listed. The ring may delete a file only
after a receipt with the file's own checksum.
"""

import logging
import os
import re
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from fpvcar.access.codes import CodeCheck
from fpvcar.access.remembered_browsers import Device
from fpvcar.access.stations import Stations
from fpvcar.config import PLAIN
from fpvcar.http.addresses import is_loopback
from fpvcar.http.pages import refuse_other_sites
from fpvcar.http.responses import BYTES, JSON, PRIVATE, answering, quoted
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers, query_of
from fpvcar.library.api.downloads import CpuThrottle, Downloads, Driven
from fpvcar.library.checksums import sums_of
from fpvcar.recordings import names
from fpvcar.runtime import files
from fpvcar.runtime.clock import Clock
from fpvcar.wire import station as wire

NAME_MOST = 40
log = logging.getLogger("fpvcar.station")


class ListQuery(Struct):
    """Names after `after`; with `all` also the files of which a station has a copy."""

    after: str = ""
    most: Annotated[int, Meta(ge=1, le=wire.LIST_MOST)] = wire.LIST_MOST
    all: str = ""


class ReceiptQuery(Struct):
    """SHA-256 of the stored file, in hex."""

    sha256: str


class StationApi:
    """Routes of one car, over its folder of recordings."""

    def __init__(
        self,
        car: str,
        folder: Path,
        stations: Stations,
        codes: CodeCheck,
        downloads: Downloads,
        driven: Driven = lambda: False,
        certificate: str = "",
        clock_s: Clock = time.monotonic,
        utc_s: Clock = time.time,
    ) -> None:
        """Create the routes; `certificate` is the SHA-256 of the car's certificate, in hex."""
        self._car, self._folder, self._stations = car, folder, stations
        self._codes, self._downloads, self._driven = codes, downloads, driven
        self._throttle = CpuThrottle(driven)
        self._certificate = wire.Certificate(certificate)
        self._clock_s, self._utc_s = clock_s, utc_s

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding a catch-all route."""
        router, base = app.router, wire.BASE
        router.add_post(base + "/pair", self._pair)
        router.add_get(base + "/segments", self._list)
        router.add_get(base + "/segments/{name}", self._file)
        router.add_get(base + "/sums/{name}", self._sums)
        router.add_get(base + "/certificate", self._own)
        router.add_post(base + "/receipts/{name}", self._receipt)
        router.add_post(base + "/end", self._end)

    # --- authentication ---

    @answers(headers=(wire.CODE, wire.NAME))
    async def _pair(self, request: web.Request) -> wire.Pairing:
        """Pair a base station, over https or loopback only."""
        refuse_other_sites(request)
        address = request.remote or ""
        if not (request.secure or is_loopback(address)):
            raise web.HTTPForbidden(
                text="Pairing refused over plain http: the key would be seen; ask over https.\n"
            )
        name = request.headers.get(wire.NAME, "").strip()
        if not 0 < len(name) <= NAME_MOST or not re.match(PLAIN, name):
            raise web.HTTPBadRequest(
                text=f'{wire.NAME} "{quoted(name)}" refused: expected 1 to {NAME_MOST} '
                "characters that can be seen.\n"
            )
        self._check_code(request, address)
        station = self._stations.pair(name, address, self._utc_s())
        await self._stations.save(self._utc_s())
        log.info("%s: paired with the base station %s", address, name)
        key = self._stations.key_of(station.id).hex()
        return wire.Pairing(self._car, self._stations.car, station.id, key)

    def _check_code(self, request: web.Request, address: str) -> None:
        now_s = self._clock_s()
        code = request.headers.get(wire.CODE, "")
        wait_s = self._codes.wait_s(code, address, now_s)
        if wait_s > 0.0:
            raise web.HTTPTooManyRequests(
                text=f"Too many wrong codes: try again in {wait_s:.0f} s.\n"
            )
        rights = self._codes.unlock(code, address, now_s)
        if rights is None or not rights.grown_up:
            raise web.HTTPUnauthorized(text="That is not the grown-up code.\n")

    @answers(Right.STATION, None, status=204)
    async def _end(self, request: web.Request) -> web.Response:
        """End the pairing of this station."""
        station, _ = self._authenticate(request)
        self._stations.end(station.id)
        log.info("%s has ended the pairing", station.name)
        return web.Response(status=204, headers=PRIVATE)

    def _authenticate(self, request: web.Request) -> tuple[Device, str]:
        station, nonce = self._stations.authenticate(request)
        self._stations.note_visit(station, station.name, self._utc_s())
        return station, nonce

    @answers(Right.STATION, wire.Certificate)
    async def _own(self, request: web.Request) -> web.StreamResponse:
        """Return the fingerprint of the car's certificate."""
        caller = self._authenticate(request)
        return await self._signed(request, caller, lambda: self._certificate)

    # --- lists and files ---

    @answers(Right.STATION, wire.Listing, query=ListQuery)
    async def _list(self, request: web.Request) -> web.StreamResponse:
        """List the sealed files; the answer has an X-Mac, too."""
        caller = self._authenticate(request)
        query, everything = query_of(request, ListQuery), "all" in request.query

        def listed() -> object:
            segments = [
                wire.Segment(file.name.text, file.size, file.acknowledged)
                for file in names.files_of(_entries(self._folder))
                if file.name.suffix == names.SEALED
                and file.name.text > query.after
                and (everything or not file.acknowledged)
            ]
            segments.sort(key=lambda file: file.name)
            more = len(segments) > query.most
            folders = (self._folder, *self._folder.parents)
            card = shutil.disk_usage(next(filter(Path.exists, folders)))
            return wire.Listing(
                self._car, segments[: query.most], more, self._driven(), card.free, card.total
            )

        return await self._signed(request, caller, listed)

    @answers(Right.STATION, wire.Sums)
    async def _sums(self, request: web.Request) -> web.StreamResponse:
        """Return the SHA-256 of a file and of each MiB."""
        caller, path = self._authenticate(request), self._path(request)
        return await self._signed(request, caller, lambda: sums_of(path, self._throttle.rest))

    async def _signed(
        self, request: web.Request, caller: tuple[Device, str], make: Callable[[], object]
    ) -> web.StreamResponse:
        """Send the object that `make` returns, with its MAC.

        Both are computed in the thread, since signing a long list takes a while too.
        """
        station, nonce = caller
        key = self._stations.key_of(station.id)

        def made() -> tuple[bytes, str]:
            body = msgspec.json.encode(make())
            return body, wire.answer_mac(key, nonce, body)

        body, mac = await self._downloads.in_thread(answering(made))
        return await self._downloads.send(request, {**JSON, wire.MAC: mac}, lambda: body)

    @answers(Right.STATION)
    async def _file(self, request: web.Request) -> web.StreamResponse:
        """Return a file; takes Range and If-Match, its SHA-256."""
        self._authenticate(request)
        path = self._path(request)
        rest = self._throttle.rest
        sums = await self._downloads.in_thread(answering(partial(sums_of, path, rest)))
        opened = answering(partial(os.open, path, os.O_RDONLY | os.O_CLOEXEC))
        return await self._downloads.send_file(request, BYTES, opened, sums.sha256)

    # --- receipts ---

    @answers(Right.STATION, None, query=ReceiptQuery, status=204)
    async def _receipt(self, request: web.Request) -> web.Response:
        """Take a station's receipt for a file that it has stored."""
        station, _ = self._authenticate(request)
        path, sha256 = self._path(request), query_of(request, ReceiptQuery).sha256
        ack = path.with_name(path.name + names.ACKNOWLEDGED)

        def write() -> None:
            own = sums_of(path, self._throttle.rest).sha256
            if sha256 != own:
                raise web.HTTPConflict(
                    text=f"Receipt refused: {path.name} is {own[:16]}..., and "
                    f'"{quoted(sha256[:16])}..." was stored: fetch it again.\n'
                )
            receipt = {"station": station.id, "sha256": own, "utc_s": self._utc_s()}
            files.write_whole(ack, [msgspec.json.encode(receipt)])

        await self._downloads.in_thread(answering(write))
        return web.Response(status=204, headers=PRIVATE)

    def _path(self, request: web.Request) -> Path:
        """Return the path of the requested sealed file. Raises HTTPNotFound."""
        name = names.parse(request.match_info["name"])
        path = self._folder / name.text if name else self._folder
        if not name or name.suffix != names.SEALED or path.is_symlink():
            raise web.HTTPNotFound(text="There is no recording of that name.\n")
        return path


def _entries(folder: Path) -> list[tuple[str, int]]:
    """Return name and size of each file; empty before the first recording."""
    try:
        with os.scandir(folder) as listing:
            return [
                (entry.name, entry.stat(follow_symlinks=False).st_size)
                for entry in listing
                if entry.is_file(follow_symlinks=False)
            ]
    except FileNotFoundError:
        return []

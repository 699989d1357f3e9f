"""Routes of "Find moments" on the page: conditions instead of SQL; see query/moments.py.

GET /api/moments?front_below_m=0.3&throttle_above_share=0.5     the newest moments, JSON
     ?battery_below_v=&picture_above_ms=&stop=any|CAUSE&driver=&month=2026-11
GET /api/moments/weeks                                          figures of each week
"""

import asyncio
import re
from typing import Any

import msgspec
from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.config import PLAIN
from fpvcar.http.responses import JSON, number_of, quoted
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.query.moments import LIMITS, MONTH, STOPS, Conditions, moments_sql, weeks_sql
from fpvstation.web.query_api import QueryApi

MOST, FIGURES_MOST = 500, 20_000
"""Moments, and figures of weeks, in an answer."""
NAME_MOST = 64
CONDITIONS = (*LIMITS, "stop", "driver", "month")


class Moment(msgspec.Struct):
    """Moment in a drive. `drive` is "" if the store no longer lists it; `at_s` counts from its
    start. `worst` has the worst value of each column with a limit."""

    session: str
    cause: str | None
    driver: str | None
    start_ms: float
    seconds: float
    worst: dict[str, float]
    drive: str = ""
    at_s: float = 0.0
    file: str = ""
    file_ms: float = 0.0
    """Start of the file that contains the moment, UTC."""


class _Rows(msgspec.Struct):
    """Decoded answer of a query: its rows, by position in `columns`."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


class MomentsApi:
    """Searches of the page over one store, with the limits of /api/query."""

    def __init__(self, rights: RecordingRights, queries: QueryApi, catalogue: Catalogue) -> None:
        self._rights, self._queries, self._catalogue = rights, queries, catalogue

    async def find(self, request: web.Request) -> web.Response:
        """Answer a search. Raises HTTPException."""
        self._rights.let_in(request)
        sql = moments_sql(_conditions_of(request), MOST)
        found = msgspec.json.decode(await self._queries.run(sql.encode(), MOST), type=_Rows)
        moments = await asyncio.to_thread(self._located, found)
        body = msgspec.json.encode({"moments": moments, "more": found.more})
        return web.Response(body=body, headers=JSON)

    async def weeks(self, request: web.Request) -> web.Response:
        """Answer with the figures of each week. Raises HTTPException."""
        self._rights.let_in(request)
        body = await self._queries.run(weeks_sql().encode(), FIGURES_MOST)
        return web.Response(body=body, headers=JSON)

    def _located(self, found: _Rows) -> list[Moment]:
        """Find the drive and the file of each moment."""
        columns, moments = found.columns[5:], []
        for session, cause, driver, begins_us, ends_us, *worst in found.rows:
            values = dict(zip(columns, worst, strict=True))
            seconds = (ends_us - begins_us) / 1e6
            moments.append(Moment(session, cause, driver, begins_us / 1e3, seconds, values))
        drives = self._catalogue.drives_in({moment.session for moment in moments})
        for moment in moments:
            begun = [drive for drive in drives[moment.session] if drive.start_ms <= moment.start_ms]
            if begun:
                drive = begun[-1]
                parts = [part for part in drive.parts if part.start_ms <= moment.start_ms]
                part = (parts or drive.parts)[-1]
                moment.drive, moment.file, moment.file_ms = drive.id, part.name, part.start_ms
                moment.at_s = (moment.start_ms - drive.start_ms) / 1e3
        return moments


def _conditions_of(request: web.Request) -> Conditions:
    """Return the conditions of a request. Raises HTTPBadRequest."""
    query = request.query
    unknown = sorted(query.keys() - set(CONDITIONS))
    if unknown or not query:
        given = f'condition "{quoted(unknown[0])}" refused' if unknown else "no condition"
        raise web.HTTPBadRequest(text=f"{given}: expected some of {', '.join(CONDITIONS)}.\n")
    limits = {
        name: number_of(request, name, 0.0, 0.0, limit.most)
        for name, limit in LIMITS.items()
        if name in query
    }
    stop, driver, month = (query.get(name, "") for name in CONDITIONS[-3:])
    for name, value, right, expected in (
        ("stop", stop, stop in STOPS, f"one of {', '.join(STOPS)}"),
        ("driver", driver, _is_name(driver), f"a name of at most {NAME_MOST} characters"),
        ("month", month, MONTH.fullmatch(month), "a year and a month like 2026-11"),
    ):
        if name in query and not right:
            raise web.HTTPBadRequest(
                text=f'{name} = "{quoted(value)}" refused: expected {expected}.\n'
            )
    return Conditions(limits, stop, driver, month)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_MOST and bool(re.match(PLAIN, text))

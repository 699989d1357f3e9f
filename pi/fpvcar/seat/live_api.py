"""Present state of the car for its base stations and for `fpvcar mqtt`, and their stop.

    GET  /api/station/live?after=CHANGE -> Live, at the next change or after 0.9 s
    GET  /api/station/topics            -> the recorded topics as they come: recorder/live.py
    POST /api/station/stop              -> 204

A station has no more rights here than a page without a code: to watch, and to stop the car. So has
a program on this machine, which signs no request. Unlike a page they keep no sensor awake, and take
no viewer's place.
"""

import asyncio
import secrets
import time

import msgspec
from aiohttp import web
from msgspec import Struct

from fpvcar import __version__
from fpvcar.access.remembered_browsers import Device
from fpvcar.access.stations import Stations
from fpvcar.drive.gate import Cause
from fpvcar.http.addresses import asks_here
from fpvcar.http.pages import refuse_other_sites
from fpvcar.http.responses import BYTES, JSON, PRIVATE
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers, query_of
from fpvcar.seat.state import stop_of
from fpvcar.seat.vehicle import Vehicle
from fpvcar.wire import station as wire

WAIT_S, TICK_S = 0.9, 0.1
"""Longest wait for a change, and the interval of the checks for one."""
AT_ONCE = 8
"""Requests that may wait together; further ones are answered at once."""
TOPICS_S, TOPICS_MOST = 0.03, 2
"""Interval of the live topics, and how many stations may get them together."""


PUBLISHED_S = 5.0
"""Age of a station's last request from which it does not publish the car."""
LOCAL = "MQTT"
"""Name of a program on this machine, as the page shows it after its stop."""


class LiveQuery(Struct):
    """`change` of the last answer; empty for an answer at once."""

    after: str = ""


class LiveApi:
    """Routes of one car."""

    def __init__(self, vehicle: Vehicle, stations: Stations) -> None:
        self._vehicle, self._stations = vehicle, stations
        self._control, self._sessions = vehicle.control, vehicle.sessions
        self._run = secrets.token_hex(4)
        self._waiting = self._reading = 0
        self._publisher, self._asked_s = "", 0.0

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding a catch-all route."""
        app.router.add_get(wire.BASE + "/live", self._live)
        app.router.add_get(wire.BASE + "/topics", self._topics)
        app.router.add_post(wire.BASE + "/stop", self._stop)

    @answers(Right.STATION_OR_LOCAL, wire.Live, query=LiveQuery)
    async def _live(self, request: web.Request) -> web.StreamResponse:
        """Return the present state at its next change, at the latest after 0.9 s."""
        caller = self._caller(request)
        if caller is not None:
            self._publisher, self._asked_s = caller[0].name, time.monotonic()
        after, until_s = query_of(request, LiveQuery).after, time.monotonic() + WAIT_S
        self._waiting += 1
        try:
            while self._waiting <= AT_ONCE and self._change() == after:
                left_s = until_s - time.monotonic()
                if left_s <= 0.0:
                    break
                await asyncio.sleep(min(TICK_S, left_s))
        finally:
            self._waiting -= 1
        body = msgspec.json.encode(self._state(time.monotonic()))
        headers = dict(JSON)
        if caller is not None:
            station, nonce = caller
            headers[wire.MAC] = wire.answer_mac(self._stations.key_of(station.id), nonce, body)
        return web.Response(body=body, headers=headers)

    @answers(Right.STATION)
    async def _topics(self, request: web.Request) -> web.StreamResponse:
        """Return the recorded topics as they come, as an MCAP file without chunks and end, until
        the station hangs up."""
        self._stations.authenticate(request)
        if self._reading >= TOPICS_MOST:
            raise web.HTTPServiceUnavailable(
                text=f"{TOPICS_MOST} stations already get the topics: expected one to hang up\n"
            )
        response = web.StreamResponse(headers=BYTES)
        self._reading += 1
        try:
            with self._vehicle.recorder.tapped() as tap:
                await response.prepare(request)
                await response.write(tap.head)
                while True:
                    await response.write(tap.take())
                    await asyncio.sleep(TOPICS_S)
        finally:
            self._reading -= 1

    @answers(Right.STATION_OR_LOCAL, None, status=204)
    async def _stop(self, request: web.Request) -> web.Response:
        """Stop the car, as any page may; its driver resumes it."""
        caller = self._caller(request)
        self._control.estop(caller[0].name if caller else LOCAL, grown_up=False)
        return web.Response(status=204, headers=PRIVATE)

    def _caller(self, request: web.Request) -> tuple[Device, str] | None:
        """Return the station and its nonce; None for a program on this machine. Raises
        HTTPUnauthorized, HTTPForbidden."""
        refuse_other_sites(request)
        if wire.STATION not in request.headers and asks_here(request.remote, request.headers):
            return None
        return self._stations.authenticate(request)

    def _change(self) -> str:
        """Return a text that differs after each change."""
        control, holder = self._control, self._sessions.seat.holder
        stop, counts = stop_of(control.decision.latches), sum(control.stops.values())
        parts = (control.wheels == "ok", self._vehicle.cameras.first.state == "ok")
        driver = (holder.client, holder.name) if holder else None
        return f"{hash((driver, stop and stop.cause, counts, parts)):x}"

    def _state(self, now_s: float) -> wire.Live:
        vehicle, control, senses = self._vehicle, self._control, self._vehicle.senses
        holder, page = self._sessions.seat.holder, self._sessions.driver()
        stop = stop_of(control.decision.latches)
        return wire.Live(
            car=vehicle.name.text,
            version=__version__,
            run=self._run,
            change=self._change(),
            driver=holder.name if holder else None,
            reason=control.decision.reason,
            stop=str(stop.cause) if stop else None,
            stopped_by=str(stop.by) if stop else "",
            stops={cause: control.stops[cause] for cause in Cause if cause != Cause.HANDOVER},
            wheels=str(control.wheels),
            camera=str(vehicle.cameras.first.state),
            viewers=len(self._sessions),
            recording=vehicle.recorder.status(),
            battery=senses.battery(now_s),
            ranges=senses.ranges(now_s),
            link_ms=page.report.link_ms if page and page.report else None,
            wifi_dbm=senses.health(now_s).wifi_dbm,
            id=self._stations.car,
            station=self._publisher if now_s - self._asked_s < PUBLISHED_S else "",
        )

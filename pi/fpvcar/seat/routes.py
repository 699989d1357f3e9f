"""Routes of the aiohttp server: pages, /ws/..., /api/..., /healthz, /metrics.

Messages take effect in hub.py. Features add their own routes.
"""

import asyncio
import functools
import time
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import Device, Devices
from fpvcar.http import addresses
from fpvcar.http.admission import cutting, no_place
from fpvcar.http.limits import RESERVED, Places, Rank, ViewerPlaces
from fpvcar.http.pages import (
    HEADERS,
    Handler,
    errors_as_pages,
    packed,
    page_response,
    refuse_foreign,
    refuse_other_sites,
    seat_response,
)
from fpvcar.http.prometheus_text import CONTENT_TYPE
from fpvcar.http.responses import quoted
from fpvcar.http.routes import OBJECT, answers
from fpvcar.http.text_session import SessionClosed
from fpvcar.runtime.texts import Text
from fpvcar.seat import drive_socket, redundant_link, video_socket
from fpvcar.seat.drive_socket import HELLO_S, Session
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.hub import Hub
from fpvcar.seat.metrics import Metrics

PAGES = {"": "index.html", "hil": "hil.html"}
"""File of the page at each short address; features have further ones."""
HANDSHAKE = (
    "Connection",
    "Upgrade",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Extensions",
)


class Server:
    """Routes of one car, with limits on its sockets."""

    def __init__(
        self,
        *,
        core: Core,
        hub: Hub,
        devices: Devices,
        figures: Metrics,
        web_root: Path,
        features: Sequence[Feature] = (),
        names: tuple[str, ...] = (),
    ) -> None:
        """Create the routes; `names` are the host names of this machine."""
        self._profile, self._hub, self._sessions = core.profile, hub, core.sessions
        self._channels, self._picture = core.cameras.channels, core.picture
        self._admission = admission = core.admission
        self._figures, self._features, self._names = figures, features, names
        self._web_root, self._devices = web_root.resolve(), devices
        self._pages = {**PAGES}
        for feature in features:
            self._pages |= feature.pages
        self._bodies = {path for feature in features for path in feature.bodies}
        most = admission.most
        # Beyond the watchers: room in which a driver can send a hello.
        self._sockets = admission.sockets("/ws/drive", most + RESERVED)
        self._copiers = admission.sockets("/ws/copies", RESERVED)
        self._watching = Places(most, most)
        self._viewers = {name: ViewerPlaces(most) for name in self._channels}
        self._senders: dict[str, dict[str, video_socket.Sender]] = {
            name: {} for name in self._channels
        }

    def application(self) -> web.Application:
        """Create the aiohttp application; called once per `run`."""
        app = web.Application(
            middlewares=[errors_as_pages, self._only_our_names], client_max_size=64 * 1024
        )
        app.router.add_get("/ws/drive", self._drive)
        app.router.add_get("/ws/video", self._video)
        app.router.add_get("/ws/copies", self._copies)
        app.router.add_post("/api/pass", self._pass)
        app.router.add_get("/api/ping", self._ping)
        app.router.add_get("/api/status", self._status_page)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/api/picture", self._picture_settings)
        for feature in self._features:
            feature.routes(app)
        app.router.add_get("/{path:.*}", self._page)
        return app

    @web.middleware
    async def _only_our_names(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests that the car's pages never send."""
        hosts = (host for feature in self._features for host in feature.hosts())
        known = (*self._profile.server.allowed_hosts, *self._names, *hosts)
        refuse_foreign(request, self._profile.car.name, known)
        for name in HANDSHAKE:  # aiohttp answers 500 to bytes beyond ASCII here
            if not request.headers.get(name, "").isascii():
                raise web.HTTPBadRequest(text=f"{name} refused: expected ASCII.\n")
        takes_body = request.method == "POST" and request.path in self._bodies
        if request.can_read_body and not takes_body:
            raise web.HTTPRequestEntityTooLarge(0, 0, text="A body was refused: expected none.\n")
        if self._device(request) is not None:
            self._admission.promote(request, Rank.DRIVES)
        return await handler(request)

    def _device(self, request: web.Request) -> Device | None:
        """Return the device of the request's cookie."""
        return self._devices.device_of(request, time.time())

    async def _drive(self, request: web.Request) -> web.StreamResponse:
        address, device = request.remote or "", self._device(request)
        at_home = _at_home(request)
        rank = Rank.DRIVES if device or at_home else Rank.SILENT
        with self._sockets.place(request, rank) as place:
            session = Session(address, Rights(drive=at_home), self._profile.gate, device)
            own = request.get_extra_info("sockname", ("",))[0]
            far = self._profile.server.allowed_hosts
            session.way = addresses.way_of(own, far, request.headers)

            def identified(session: Session) -> None:
                place.promote(self._known(session))

            try:
                return await drive_socket.serve(
                    request, session, self._hub.receive, time.monotonic, identified
                )
            finally:
                self._hub.leave(session)
                self._watching.leave(session)

    def _known(self, session: Session) -> Rank:
        """Return the rank of a session that has identified itself.

        Raises SessionClosed for an excess watcher.
        """
        drives = self._sessions.may_drive(session)
        rank = Rank.DRIVES if drives else Rank.WATCHES
        self._watching.leave(session)
        most = self._profile.server.max_viewers
        full = Text("close_full", "{most} viewers are here already (server.max_viewers)", most=most)
        end = functools.partial(session.close, full)
        if not drives and self._watching.enter(session, session.address, end, rank):
            raise SessionClosed(full)
        return rank

    async def _video(self, request: web.Request) -> web.StreamResponse:
        video, address, cut = request.query.get("id", ""), request.remote or "", cutting(request)
        camera = request.query.get("camera", "")
        if camera not in self._channels:
            names = ", ".join(filter(None, self._channels))
            expected = f"one of {names}" if names else "none: this car has one camera"
            raise web.HTTPNotFound(text=f"camera {quoted(camera)} refused: expected {expected}.\n")
        viewers, senders = self._viewers[camera], self._senders[camera]
        page = self._sessions.of_video(video)
        rank = Rank.DRIVES if self._device(request) or _at_home(request) else Rank.WATCHES
        driver = page is not None and self._sessions.may_drive(page)
        full = viewers.enter(cut, address, rank, driver)
        if full is not None:
            raise no_place(full, "/ws/video")
        if page is not None:
            self._admission.promote(request, rank)

        def greet(client: str) -> str | None:
            """The id is seen by others: only the hello makes a driver of a viewer."""
            if self._sessions.video_of(client) != video:
                return "the id is another page's"
            page = self._sessions.of_video(video)
            if page is None or not self._sessions.may_drive(page):
                return None
            self._admission.promote(request, Rank.DRIVES)
            return viewers.admit(cut, address, Rank.DRIVES)

        def large() -> video_socket.Sender | None:
            """Return the sender of the page's large picture; None for the large picture itself."""
            owner = self._sessions.of_video(video)
            name = owner.preferred if owner else ""
            return None if name == camera else self._senders[name].get(video)

        channel = self._channels[camera]
        channel.wanted.set()
        expiry = asyncio.get_running_loop().call_later(HELLO_S, viewers.expire, cut, address)
        try:
            return await video_socket.serve_viewer(
                request,
                channel.stream,
                greet=greet,
                is_driver=lambda: self._sessions.drives(video),
                tell_lost=lambda lost: None if camera else self._sessions.lost(video, lost),
                senders=senders,
                large=large if len(self._channels) > 1 else lambda: None,
            )
        finally:
            expiry.cancel()
            viewers.leave(cut)

    async def _copies(self, request: web.Request) -> web.StreamResponse:
        with self._copiers.place(request, Rank.SILENT) as place:
            return await redundant_link.serve(request, self._hub, self._senders[""], place)

    @answers(answer=None, headers=("X-Pass",), status=204)
    async def _pass(self, request: web.Request) -> web.Response:
        """Exchange a ticket for a cookie, so that the car recognises the device later."""
        refuse_other_sites(request)
        device = self._hub.authorization.claim(request.headers.get("X-Pass", ""))
        if device is None:
            raise web.HTTPForbidden(text="X-Pass refused: enter the code again.\n")
        return await self._devices.cookie_response(device, time.time(), request)

    @answers(answer=dict[str, int])
    async def _ping(self, request: web.Request) -> web.Response:
        """Return the car's clock: us of CLOCK_MONOTONIC."""
        clock_us = time.monotonic_ns() // 1000
        # not private: the trust page, at http, tries the address at https
        return web.json_response({"clock_us": clock_us}, headers=HEADERS)

    @answers()
    async def _status_page(self, request: web.Request) -> OBJECT:
        """Return parts, video and pages in figures."""
        return self._figures.status()

    @answers(answer="text/plain")
    async def _health(self, request: web.Request) -> web.Response:
        """Return `ok`, or 503 and a line per fault."""
        faults = self._figures.faults()
        if not faults:
            return web.Response(text="ok\n", headers=HEADERS)
        text = "".join(f"{fault}\n" for fault in faults)
        return web.Response(status=503, text=text, headers=HEADERS)

    @answers(answer="text/plain")
    async def _metrics(self, request: web.Request) -> web.Response:
        """Return the figures of the car for Prometheus."""
        headers = {**HEADERS, "Content-Type": CONTENT_TYPE}
        return web.Response(body=self._figures.text().encode(), headers=headers)

    @answers()
    async def _picture_settings(self, _: web.Request) -> OBJECT:
        """Return the camera's settings, and their choices; a page requests them when its drawer
        opens."""
        return self._picture.as_json()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        name = self._pages.get(path, path)
        if name == "index.html":
            accepted = request.headers.get("Accept-Language", "")
            return packed(request, seat_response(self._web_root, accepted))
        return packed(request, page_response(self._web_root, name))


def _at_home(request: web.Request) -> bool:
    """Whether a page on the car's own machine asks.

    A client without Origin is not a page: it may watch, and needs the code.
    """
    return addresses.asks_here(request.remote, request.headers) and "Origin" in request.headers

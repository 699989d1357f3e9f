"""Routes of the aiohttp server: pages, /ws/..., /api/..., /healthz, /metrics.

Messages take effect in hub.py and panel.py.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiohttp import web

from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import Device, Devices
from fpvcar.buttons import socket as buttons_socket
from fpvcar.buttons.panel import Panel
from fpvcar.config import Profile
from fpvcar.http import addresses
from fpvcar.http.limits import RESERVED, Places, Rank, ViewerPlaces
from fpvcar.http.listener import connection_of
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
from fpvcar.http.responses import quoted, refused
from fpvcar.http.routes import OBJECT, answers
from fpvcar.http.text_session import SessionClosed
from fpvcar.library.api.exports import EXPORTS
from fpvcar.runtime.texts import Text
from fpvcar.seat import drive_socket, redundant_link, video_socket
from fpvcar.seat.drive_socket import HELLO_S, Session
from fpvcar.seat.hub import Hub
from fpvcar.sensors.depth_camera import DepthCamera
from fpvcar.video.picture import PictureSettings
from fpvcar.video.stream import Stream
from fpvcar.wire import up

if TYPE_CHECKING:
    from fpvcar.video.second_camera import SecondCamera

PAGES = {
    "": "index.html",
    "buttons": "buttons.html",
    "recordings": "recordings.html",
    "network": "network.html",
    "hil": "hil.html",
}
"""File of the page at each short address."""
WITH_CODE = up.Hello | up.Unlock
HANDSHAKE = (
    "Connection",
    "Upgrade",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Extensions",
)


class Api(Protocol):
    """Routes of one feature of the car."""

    def add_to(self, app: web.Application) -> None:
        """Add the routes to the application."""


class Media(NamedTuple):
    """Sources of the pictures that the server sends."""

    stream: Stream
    depth: DepthCamera | None = None
    settings: PictureSettings | None = None
    second: "SecondCamera | None" = None


class Talking(Protocol):
    """Intercom of the car: intercom_socket.Intercom, loaded only by cars with an intercom."""

    async def serve(
        self, request: web.Request, hub: Hub, promote: Callable[[], None]
    ) -> web.WebSocketResponse:
        """Run one /ws/intercom socket to its end; call `promote()` for the driver's page."""


class MetricsSource(Protocol):
    """Metrics and state of the car: metrics.Metrics."""

    def text(self) -> str:
        """Return the text of /metrics."""

    def faults(self) -> list[str]:
        """Return the reasons for a 503 of /healthz; empty if all is well."""

    def status(self) -> dict[str, object]:
        """Return the content of /api/status."""


class Server:
    """Routes of one car, with limits on its sockets."""

    def __init__(
        self,
        *,
        profile: Profile,
        hub: Hub,
        devices: Devices,
        media: Media,
        figures: MetricsSource,
        connections: Places,
        web_root: Path,
        panel: Panel | None = None,
        intercom: Talking | None = None,
        apis: Sequence[Api] = (),
        hosts: Callable[[], tuple[str, ...]] = lambda: (),
    ) -> None:
        """Create the routes; `connections` is updated with the rank of each page's connection.

        `hosts()` returns the car's actual host names: its own name may be taken by another host.
        """
        self._figures, self._panel, self._apis, self._hosts = figures, panel, apis, hosts
        stream, self._depth, self._picture, self._second = media
        self._streams = {"": stream}
        if self._second is not None:
            self._streams[self._second.name] = self._second.stream
        self._profile, self._hub, self._intercom = profile, hub, intercom
        self._web_root, self._devices = web_root.resolve(), devices
        most = profile.server.max_viewers
        self._connections = connections
        # Beyond the watchers: room in which a driver can send a hello.
        self._sockets = Places(most + RESERVED, most + RESERVED)
        self._watching, self._pushers = Places(most, most), Places(most, most)
        self._viewers = {name: ViewerPlaces(most) for name in self._streams}
        self._copiers, self._talkers = (Places(RESERVED, RESERVED) for _ in range(2))
        self._senders: dict[str, dict[str, video_socket.Sender]] = {
            name: {} for name in self._streams
        }

    def application(self) -> web.Application:
        """Create the aiohttp application; called once per `run`."""
        app = web.Application(
            middlewares=[errors_as_pages, self._only_our_names], client_max_size=64 * 1024
        )
        app.router.add_get("/ws/drive", self._drive)
        app.router.add_get("/ws/video", self._video)
        app.router.add_get("/ws/copies", self._copies)
        if self._panel is not None:
            app.router.add_get("/ws/buttons", self._buttons)
        if self._intercom is not None:
            app.router.add_get("/ws/intercom", self._talk)
        app.router.add_post("/api/pass", self._pass)
        app.router.add_get("/api/ping", self._ping)
        app.router.add_get("/api/status", self._status_page)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/api/depth.png", self._depth_picture)
        if self._picture is not None:
            app.router.add_get("/api/picture", self._picture_settings)
        for api in self._apis:
            api.add_to(app)
        app.router.add_get("/{path:.*}", self._page)
        return app

    @web.middleware
    async def _only_our_names(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests that the car's pages never send."""
        hosts = (*self._profile.server.allowed_hosts, *self._hosts())
        refuse_foreign(request, self._profile.car.name, hosts)
        for name in HANDSHAKE:  # aiohttp answers 500 to bytes beyond ASCII here
            if not request.headers.get(name, "").isascii():
                raise web.HTTPBadRequest(text=f"{name} refused: expected ASCII.\n")
        exports = request.method == "POST" and request.path == EXPORTS
        if request.can_read_body and not exports:
            raise web.HTTPRequestEntityTooLarge(0, 0, text="A body was refused: expected none.\n")
        if self._device(request) is not None:
            self._promote(request, Rank.DRIVES)
        return await handler(request)

    def _device(self, request: web.Request) -> Device | None:
        """Return the device of the request's cookie."""
        return self._devices.device_of(request, time.time())

    def _promote(self, request: web.Request, rank: Rank) -> None:
        """Raise the rank of a page's or a driver's connection, so that others give way first."""
        if request.transport is not None:
            self._connections.promote(connection_of(request.transport), rank)

    def _enter(self, places: Places, request: web.Request, rank: Rank, where: str) -> Hashable:
        """Take a place and return its key. Raises HTTPServiceUnavailable."""
        cut = _cutting(request)
        full = places.enter(cut, request.remote or "", cut, rank)
        if full is not None:
            raise _no_place(full, where)
        return cut

    async def _drive(self, request: web.Request) -> web.StreamResponse:
        address, device = request.remote or "", self._device(request)
        at_home = _at_home(request)
        rank = Rank.DRIVES if device or at_home else Rank.SILENT
        place = self._enter(self._sockets, request, rank, "/ws/drive")
        session = Session(address, Rights(drive=at_home), self._profile.gate, device)

        def receive(session: Session, message: up.Upward) -> None:
            self._hub.receive(session, message)
            if isinstance(message, WITH_CODE):
                self._sockets.promote(place, self._known(request, session))

        try:
            return await drive_socket.serve(request, session, receive, time.monotonic)
        finally:
            self._hub.leave(session)
            self._watching.leave(session)
            self._sockets.leave(place)

    def _known(self, request: web.Request, session: Session) -> Rank:
        """Return the rank of a session that has identified itself.

        Raises SessionClosed for an excess watcher.
        """
        drives = self._hub.may_drive(session)
        rank = Rank.DRIVES if drives else Rank.WATCHES
        self._promote(request, rank)
        self._watching.leave(session)
        most = self._profile.server.max_viewers
        full = Text("close_full", "{most} viewers are here already (server.max_viewers)", most=most)
        end = functools.partial(session.close, full)
        if not drives and self._watching.enter(session, session.address, end, rank):
            raise SessionClosed(full)
        return rank

    async def _video(self, request: web.Request) -> web.StreamResponse:
        video, address, cut = request.query.get("id", ""), request.remote or "", _cutting(request)
        camera = request.query.get("camera", "")
        if camera not in self._streams:
            names = ", ".join(name for name in self._streams if name)
            expected = f"one of {names}" if names else "none: this car has one camera"
            raise web.HTTPNotFound(text=f"camera {quoted(camera)} refused: expected {expected}.\n")
        viewers, senders = self._viewers[camera], self._senders[camera]
        page = self._hub.page_of(video)
        rank = Rank.DRIVES if self._device(request) or _at_home(request) else Rank.WATCHES
        driver = page is not None and self._hub.may_drive(page)
        full = viewers.enter(cut, address, rank, driver)
        if full is not None:
            raise _no_place(full, "/ws/video")
        if page is not None:
            self._promote(request, rank)

        def greet(client: str) -> str | None:
            """The id is seen by others: only the hello makes a driver of a viewer."""
            if not self._hub.is_page(client, video):
                return "the id is another page's"
            page = self._hub.page_of(video)
            if page is None or not self._hub.may_drive(page):
                return None
            self._promote(request, Rank.DRIVES)
            return viewers.admit(cut, address, Rank.DRIVES)

        def large() -> video_socket.Sender | None:
            """Return the sender of the page's large picture; None for the large picture itself."""
            owner = self._hub.page_of(video)
            name = owner.preferred if owner else ""
            return None if name == camera else self._senders[name].get(video)

        if camera and self._second is not None:
            self._second.wake()
        expiry = asyncio.get_running_loop().call_later(HELLO_S, viewers.expire, cut, address)
        try:
            return await video_socket.serve_viewer(
                request,
                self._streams[camera],
                greet=greet,
                is_driver=lambda: self._hub.drives(video),
                tell_lost=lambda lost: None if camera else self._hub.lost(video, lost),
                senders=senders,
                large=large if self._second is not None else lambda: None,
            )
        finally:
            expiry.cancel()
            viewers.leave(cut)

    async def _copies(self, request: web.Request) -> web.StreamResponse:
        place = self._enter(self._copiers, request, Rank.SILENT, "/ws/copies")

        def promote() -> None:
            self._copiers.promote(place, Rank.DRIVES)
            self._promote(request, Rank.DRIVES)

        try:
            return await redundant_link.serve(
                request, self._hub, self._senders[""], promote, time.monotonic
            )
        finally:
            self._copiers.leave(place)

    async def _buttons(self, request: web.Request) -> web.StreamResponse:
        assert self._panel is not None  # otherwise the route does not exist
        place = self._enter(self._pushers, request, Rank.WATCHES, "/ws/buttons")
        try:
            return await buttons_socket.serve(request, self._panel)
        finally:
            self._pushers.leave(place)

    async def _talk(self, request: web.Request) -> web.StreamResponse:
        assert self._intercom is not None  # otherwise the route does not exist
        if not request.secure:
            raise refused(
                web.HTTPForbidden,
                Text("intercom_https", "The intercom needs https: open the car's https address."),
            )
        place = self._enter(self._talkers, request, Rank.SILENT, "/ws/intercom")
        try:
            promote = functools.partial(self._talkers.promote, place, Rank.DRIVES)
            return await self._intercom.serve(request, self._hub, promote)
        finally:
            self._talkers.leave(place)

    @answers(answer=None, headers=("X-Pass",), status=204)
    async def _pass(self, request: web.Request) -> web.Response:
        """Exchange a ticket for a cookie, so that the car recognises the device later."""
        refuse_other_sites(request)
        device = self._hub.authorization.claim(request.headers.get("X-Pass", ""))
        if device is None:
            raise web.HTTPForbidden(text="X-Pass refused: enter the code again.\n")
        return await self._devices.cookie_response(device, time.time(), request.secure)

    @answers(answer=dict[str, int])
    async def _ping(self, request: web.Request) -> web.Response:
        """Return the car's clock: us of CLOCK_MONOTONIC."""
        clock_us = time.monotonic_ns() // 1000
        return web.json_response({"clock_us": clock_us}, headers=HEADERS)

    @answers(answer=OBJECT)
    async def _status_page(self, request: web.Request) -> web.Response:
        """Return parts, video and pages in figures."""
        return web.json_response(self._figures.status(), headers=HEADERS)

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
        """Return figures for Prometheus."""
        headers = {**HEADERS, "Content-Type": CONTENT_TYPE}
        return web.Response(body=self._figures.text().encode(), headers=headers)

    @answers(answer=OBJECT)
    async def _picture_settings(self, _: web.Request) -> web.Response:
        """Return the camera's settings, and their choices; a page requests them when its drawer
        opens."""
        assert self._picture is not None
        return web.json_response(self._picture.as_json(), headers=HEADERS)

    @answers(answer="image/png")
    async def _depth_picture(self, request: web.Request) -> web.Response:
        """Return the depth camera's last small picture."""
        png = self._depth.png if self._depth else b""
        if not png:
            raise web.HTTPNotFound(text="There is no depth picture.\n")
        return web.Response(body=png, content_type="image/png", headers=HEADERS)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = PAGES.get(request.match_info["path"], request.match_info["path"])
        if name == "index.html":
            accepted = request.headers.get("Accept-Language", "")
            return packed(request, seat_response(self._web_root, accepted))
        return packed(request, page_response(self._web_root, name))


def _at_home(request: web.Request) -> bool:
    """Whether a page on the car's own machine asks.

    A client without Origin is not a page: it may watch, and needs the code.
    """
    return addresses.is_loopback(request.remote or "") and "Origin" in request.headers


def _no_place(full: str, where: str) -> web.HTTPServiceUnavailable:
    return web.HTTPServiceUnavailable(text=f"{full} already at {where} (server.max_viewers).\n")


def _cutting(request: web.Request) -> Callable[[], None]:
    """Return a function that aborts a request's connection, including queued data."""

    def cut() -> None:
        if request.transport is not None:
            request.transport.abort()

    return cut

"""/api/network: Wi-Fi of the car, for grown-ups.

    GET  /api/network                          current network and networks in range, JSON
    POST /api/network/look                     scan for networks again
    POST /api/network/join?ssid=S  X-Wifi-Key: leave this network for that one

A network change or a scan stops the car like a lost link, so both are refused while a driver has
the wheel. The service that carries them out: wifi/service.py.
"""

from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from fpvcar.access.rights import RecordingRights
from fpvcar.drive.control import Control
from fpvcar.http.responses import refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers, query_of
from fpvcar.runtime.service import Part
from fpvcar.runtime.texts import Phrase, Text
from fpvcar.seat.feature import Core, Feature
from fpvcar.wifi.client import NetworkClient
from fpvcar.wifi.core import JOIN_S
from fpvcar.wifi.radio import OWN_ADDRESS, in_own_network
from fpvcar.wire import network

SSID = Phrase("ssid", "The network's name has {count} characters: expected 1 to 32 visible ones.")

NO_WIFI = Text("no_wifi", "The Wi-Fi service is not running: see systemctl status fpvcar-network.")

KEY = "X-Wifi-Key"
BASE = "/api/network"


def feature(core: Core) -> Feature:
    """Return the client of the network service, its routes and its page."""

    def used() -> bool:
        return any(in_own_network(page.address) for page in core.sessions)

    client = NetworkClient(core.runtime / network.SOCKET, used)
    return Feature(
        name="wifi",
        parts=(Part("network", (client.run,)),),
        routes=NetworkApi(client, core.rights, core.control).add_to,
        pages={"network": "network.html"},
        hosts=client.hosts,
    )


class Joining(Struct):
    """Name of the network to join."""

    ssid: str


class PageState(network.NetworkState, frozen=True, kw_only=True):
    """State of the network for the page. `address` is the car's in its own network; `join_s` is
    the time that joining takes."""

    driven: bool
    join_s: float
    address: str


class NetworkApi:
    """Routes of the network; while the car is driven, they only show it."""

    def __init__(self, client: NetworkClient, rights: RecordingRights, control: Control) -> None:
        self._client, self._rights, self._control = client, rights, control

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding a catch-all route."""
        app.router.add_get(BASE, self._status)
        app.router.add_post(f"{BASE}/look", self._look)
        app.router.add_post(f"{BASE}/join", self._join)

    @answers(Right.GROWN_UP)
    async def _status(self, request: web.Request) -> PageState:
        """Return the car's Wi-Fi, and networks in range."""
        state = self._client.state
        if state is None:
            raise refused(web.HTTPServiceUnavailable, NO_WIFI)
        seen_s = state.seen_s
        if seen_s is not None:
            seen_s += round(self._client.age_s())
        own = msgspec.structs.asdict(msgspec.structs.replace(state, seen_s=seen_s))
        return PageState(**own, driven=self._control.driven(), join_s=JOIN_S, address=OWN_ADDRESS)

    @answers(Right.GROWN_UP, status=202)
    async def _look(self, request: web.Request) -> dict[str, Any]:
        """List the networks anew."""
        self._refuse_driven()
        return self._send(network.Scan())

    @answers(Right.GROWN_UP, query=Joining, headers=(KEY,), status=202)
    async def _join(self, request: web.Request) -> dict[str, Any]:
        """Leave this network for another one."""
        self._refuse_driven()
        ssid, key = query_of(request, Joining).ssid, request.headers.get(KEY, "")
        wish = network.Join(ssid, key)
        try:  # msgspec does not validate an object built by hand
            msgspec.convert(msgspec.to_builtins(wish), network.Join)
        except msgspec.ValidationError:
            raise refused(web.HTTPBadRequest, _refusal_of(ssid)) from None
        return self._send(wish)

    def _refuse_driven(self) -> None:
        """Raise HTTPConflict while the car is driven: a radio that scans other channels misses
        its own."""
        if self._control.driven():
            raise refused(
                web.HTTPConflict,
                Text(
                    "driven", "Someone is driving, and the car would stop: give up the wheel first."
                ),
            )

    def _send(self, wish: network.Wish) -> dict[str, Any]:
        if not self._client.wish(wish):
            raise refused(web.HTTPServiceUnavailable, NO_WIFI)
        return {}


def _refusal_of(ssid: str) -> Text:
    """Return the refusal of a request to join: the name, or else the key, is invalid."""
    try:
        msgspec.convert(ssid, network.Ssid)
    except msgspec.ValidationError:
        return SSID(count=len(ssid))
    return Text("wifi_key", "The key was refused: expected 8 to 63 letters, digits and symbols.")

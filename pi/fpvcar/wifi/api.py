"""/api/network: Wi-Fi of the car, for grown-ups.

    GET  /api/network                          current network and networks in range, JSON
    POST /api/network/look                     scan for networks again
    POST /api/network/join?ssid=S  X-Wifi-Key: leave this network for that one

A network change or a scan stops the car like a lost link, so both are refused while a driver has
the wheel. The service that carries them out: wifi/service.py.
"""

from collections.abc import Callable

import msgspec
from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.http.responses import JSON, refused
from fpvcar.wifi.client import NetworkClient
from fpvcar.wifi.core import JOIN_S
from fpvcar.wifi.radio import OWN_ADDRESS
from fpvcar.wire import network
from fpvcar.wire.refusals import Refusal

KEY = "X-Wifi-Key"
BASE = "/api/network"


class NetworkApi:
    """Routes of the network. `driven()` returns whether a driver has the wheel."""

    def __init__(
        self, client: NetworkClient, rights: RecordingRights, driven: Callable[[], bool]
    ) -> None:
        self._client, self._rights, self._driven = client, rights, driven

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding a catch-all route."""
        app.router.add_get(BASE, self._status)
        app.router.add_post(f"{BASE}/look", self._look)
        app.router.add_post(f"{BASE}/join", self._join)

    def _let_in(self, request: web.Request) -> None:
        self._rights.let_grown_up(request)

    async def _status(self, request: web.Request) -> web.Response:
        self._let_in(request)
        state = self._client.state
        if state is None:
            raise refused(web.HTTPServiceUnavailable, Refusal("no_wifi"))
        seen_s = state.seen_s
        if seen_s is not None:
            seen_s += round(self._client.age_s())
        answer = msgspec.structs.asdict(msgspec.structs.replace(state, seen_s=seen_s))
        answer |= {"driven": self._driven(), "join_s": JOIN_S, "address": OWN_ADDRESS}
        return web.Response(body=msgspec.json.encode(answer), headers=JSON)

    async def _look(self, request: web.Request) -> web.Response:
        self._let_in(request)
        self._refuse_driven()
        return self._send(network.Scan())

    async def _join(self, request: web.Request) -> web.Response:
        self._let_in(request)
        self._refuse_driven()
        ssid, key = request.query.get("ssid", ""), request.headers.get(KEY, "")
        wish = network.Join(ssid, key)
        try:  # msgspec does not validate an object built by hand
            msgspec.convert(msgspec.to_builtins(wish), network.Join)
        except msgspec.ValidationError:
            raise refused(web.HTTPBadRequest, _refusal_of(ssid)) from None
        return self._send(wish)

    def _refuse_driven(self) -> None:
        """Raise HTTPConflict while the car is driven: a radio that scans other channels misses
        its own."""
        if self._driven():
            raise refused(web.HTTPConflict, Refusal("driven"))

    def _send(self, wish: network.Wish) -> web.Response:
        if not self._client.wish(wish):
            raise refused(web.HTTPServiceUnavailable, Refusal("no_wifi"))
        return web.Response(status=202, headers=JSON, body=b"{}")


def _refusal_of(ssid: str) -> Refusal:
    """Return the refusal of a request to join: the name, or else the key, is invalid."""
    try:
        msgspec.convert(ssid, network.Ssid)
    except msgspec.ValidationError:
        return Refusal("ssid", count=len(ssid))
    return Refusal("wifi_key")

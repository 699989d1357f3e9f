"""Base stations that may fetch recordings: a list that is kept, and who asks.

    fpvstation pair, with the grown-ups' code -> id, and a key that only both know
    each request of a station: X-Station, X-Nonce, X-Mac -> Stations.asking

The key of a pair is made from the car's own and the id, so that the list holds no
secret. Who is taken off the list stays off it.
"""

import hmac

from aiohttp import web

from fpvcar.server.access import Rights
from fpvcar.server.devices import Device, Devices
from fpvcar.wire import station as wire

FILE = "stations.json"
WHERE = "base station"
"""What the list of people says of a station's place."""


class Stations(Devices):
    """The list of stations, kept as that of devices is."""

    def pair(self, name: str, address: str, now_s: float) -> Device:
        """Puts a station on the list."""
        station = self.add(name, address, Rights(), now_s)
        station.where = WHERE
        return station

    def key_of(self, station: str) -> bytes:
        """The key of this pair."""
        return hmac.digest(self._own, f"station {station}".encode(), "sha256")

    @property
    def car(self) -> str:
        """By what a station tells two cars of one name apart."""
        return hmac.digest(self._own, b"car", "sha256").hex()[:16]

    def asking(self, request: web.Request) -> tuple[Device, str]:
        """Which station asks, and its nonce. Raises HTTPUnauthorized."""
        said = request.headers
        station = self.get(said.get(wire.STATION, ""))
        nonce, mac = said.get(wire.NONCE, ""), said.get(wire.MAC, "")
        if station is not None and wire.NONCE_FORM.fullmatch(nonce):
            wanted = wire.request_mac(
                self.key_of(station.id), nonce, request.method, request.raw_path
            )
            if wire.same(mac, wanted):
                return station, nonce
        raise web.HTTPUnauthorized(
            text="This station may not: run `fpvstation pair` with the grown-ups' "
            "code.\n"
        )

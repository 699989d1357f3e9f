"""Base stations that may fetch recordings: a list that is kept, and who asks.

    fpvstation pair, with the grown-ups' code -> id, and a key that only both know
    each request of a station: X-Station, X-Nonce, X-Mac -> Stations.asking

The key of a pair is made from the car's own and the id, so that the list holds no
secret. Who is taken off the list stays off it.

Each request works once. Its nonce holds a number that grows (wire/station.py); the last
RECENT of them are remembered, and anything below them is refused. The list on the card
keeps a bound above all numbers that were used, so that a restart forgets none.
"""

import bisect
import hmac
from pathlib import Path

from aiohttp import web

from fpvcar.server.auth.access import Codes, Rights
from fpvcar.server.auth.remembered_browsers import Device, Devices
from fpvcar.wire import station as wire

FILE = "stations.json"
WHERE = "base station"
"""What the list of people says of a station's place."""
RECENT = 128
"""Requests of a station may overtake one another by so many."""
RESERVED_US = 3_600_000_000
"""How far ahead the bound on the card is: it is written once an hour at most."""


class Replays:
    """Numbers of the requests of one station: each is taken once. Pure."""

    def __init__(self, bound: int) -> None:
        """Numbers up to `bound` may have been used before."""
        self._below, self._recent = bound, list[int]()
        self._unordered: dict[str, None] = {}

    @property
    def newest(self) -> int:
        """The greatest number that may have been used."""
        return self._recent[-1] if self._recent else self._below

    def take(self, nonce: str) -> bool:
        """Takes a nonce; False if it was used, or may have been.

        A station that has sent an ordered nonce sends no other kind any more.
        """
        number = wire.number_in(nonce)
        if number is None:
            return not self.newest and self._take_unordered(nonce)
        if number <= self._below or number in self._recent:
            return False
        bisect.insort(self._recent, number)
        if len(self._recent) > RECENT:
            self._below = self._recent.pop(0)
        return True

    def _take_unordered(self, nonce: str) -> bool:
        if nonce in self._unordered:
            return False
        self._unordered[nonce] = None
        if len(self._unordered) > RECENT:
            del self._unordered[next(iter(self._unordered))]
        return True


class Stations(Devices):
    """The list of stations, kept as that of devices is."""

    def __init__(self, key: bytes, codes: Codes, path: Path) -> None:
        super().__init__(key, codes, path)
        self._replays: dict[str, Replays] = {}

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
        """Which station asks, and its nonce. Raises HTTPUnauthorized, HTTPForbidden for
        a request that was made before."""
        said = request.headers
        station = self.get(said.get(wire.STATION, ""))
        nonce, mac = said.get(wire.NONCE, ""), said.get(wire.MAC, "")
        if station is not None and wire.NONCE_FORM.fullmatch(nonce):
            wanted = wire.request_mac(
                self.key_of(station.id), nonce, request.method, request.raw_path
            )
            if wire.same(mac, wanted):
                self._refuse_replay(station, nonce)
                return station, nonce
        raise web.HTTPUnauthorized(
            text="This station may not: run `fpvstation pair` with the grown-ups' code.\n"
        )

    def _refuse_replay(self, station: Device, nonce: str) -> None:
        replays = self._replays.setdefault(station.id, Replays(station.numbers_below))
        if not replays.take(nonce):
            newest = str(replays.newest)
            mac = wire.answer_mac(self.key_of(station.id), nonce, newest.encode())
            raise web.HTTPForbidden(
                text="Request refused: its nonce was used before.\n",
                headers={wire.NEWEST: newest, wire.MAC: mac},
            )
        if replays.newest > station.numbers_below:
            station.numbers_below = replays.newest + RESERVED_US
            self._changed.set()

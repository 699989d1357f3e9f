"""Base stations that may fetch recordings: the saved list, and authentication of their requests.

    fpvstation pair, with the grown-up code -> id, and a key shared by car and station
    each request of a station: X-Station, X-Nonce, X-Mac -> Stations.authenticate

The key of a pair is derived from the car's own key and the id, so the list holds no secret. A
station removed from the list stays removed.

Each request works once. Its nonce holds a number that grows (wire/station.py). The last RECENT
numbers are remembered, and all numbers below them are rejected. The list on the card stores a bound
above all used numbers, so replays are rejected after a restart too.
"""

import bisect
import hmac
from pathlib import Path

from aiohttp import web

from fpvcar.access.codes import Codes, Rights
from fpvcar.access.remembered_browsers import Device, Devices
from fpvcar.wire import station as wire

FILE = "stations.json"
WHERE = "base station"
"""Place shown for a station in the list of people."""
RECENT = 128
"""Size of the reordering window: requests of a station may overtake up to 128 others."""
RESERVED_US = 3_600_000_000
"""Distance in microseconds of the saved bound from the newest number. The bound is written once
an hour at most."""


class ReplayGuard:
    """Replay protection for one station: each request number is accepted once. Pure."""

    def __init__(self, bound: int) -> None:
        """Create the state; `bound` is the highest number that may already have been used."""
        self._below, self._recent = bound, list[int]()
        self._unordered: dict[str, None] = {}

    @property
    def newest(self) -> int:
        """Greatest number that may have been used."""
        return self._recent[-1] if self._recent else self._below

    def take(self, nonce: str) -> bool:
        """Accept a nonce; return False if it was used or may have been used.

        After its first ordered nonce a station may send ordered nonces only.
        """
        number = wire.nonce_number(nonce)
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
    """List of stations, saved in the same way as the list of devices."""

    def __init__(self, key: bytes, codes: Codes, path: Path) -> None:
        super().__init__(key, codes, path)
        self._replays: dict[str, ReplayGuard] = {}

    def pair(self, name: str, address: str, now_s: float) -> Device:
        """Add a station to the list."""
        station = self.add(name, address, Rights(), now_s)
        station.where = WHERE
        return station

    def key_of(self, station: str) -> bytes:
        """Return the key shared with this station."""
        return hmac.digest(self._own, f"station {station}".encode(), "sha256")

    @property
    def car(self) -> str:
        """Id of this car, so that a station can distinguish two cars of the same name."""
        return hmac.digest(self._own, b"car", "sha256").hex()[:16]

    def authenticate(self, request: web.Request) -> tuple[Device, str]:
        """Authenticate a station's request; return the station and the nonce.

        Raises HTTPUnauthorized if authentication fails, HTTPForbidden for a repeated request.
        """
        headers = request.headers
        station = self.get(headers.get(wire.STATION, ""))
        nonce, mac = headers.get(wire.NONCE, ""), headers.get(wire.MAC, "")
        if station is not None and wire.NONCE_FORM.fullmatch(nonce):
            expected = wire.request_mac(
                self.key_of(station.id), nonce, request.method, request.raw_path
            )
            if wire.macs_equal(mac, expected):
                self._refuse_replay(station, nonce)
                return station, nonce
        raise web.HTTPUnauthorized(
            text="This station may not: run `fpvstation pair` with the grown-up code.\n"
        )

    def _refuse_replay(self, station: Device, nonce: str) -> None:
        replays = self._replays.setdefault(station.id, ReplayGuard(station.numbers_below))
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

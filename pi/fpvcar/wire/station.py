"""What a base station and a car say to each other, and how each knows the other.

    POST /api/station/pair            X-Code, X-Station-Name -> Pairing
    GET  /api/station/segments        ?after=NAME&most=N&all=1 -> Listing
    GET  /api/station/sums/NAME       -> Sums
    GET  /api/station/segments/NAME   Range, If-Match: "SHA-256" -> the bytes
    GET  /api/station/certificate     -> Certificate
    POST /api/station/receipts/NAME   ?sha256=HEX: it is stored here -> 204
    POST /api/station/end             this pairing is over -> 204

All but the first carry X-Station, X-Nonce and X-Mac, an HMAC-SHA256 by the key of this
pair; Listing, Sums and Certificate are signed in return, over the same nonce: neither
an impostor nor an answer of yesterday passes. A receipt is a request that carries its
MAC.

A nonce is ordered: it holds a number that grows with each request, by default the time
of the station in us. A car refuses a number that it has had (403), so that no request
works twice, and says in X-Newest which it had last, signed by X-Mac over the nonce.
The station goes on above that: neither of them needs a clock that is right. Older
stations send nonces of random digits.
"""

import hmac
import re

from msgspec import Struct

BASE = "/api/station"
CODE, NAME = "X-Code", "X-Station-Name"
STATION, NONCE, MAC = "X-Station", "X-Nonce", "X-Mac"
NEWEST = "X-Newest"
SHA256 = re.compile("[0-9a-f]{64}")
NONCE_FORM = re.compile("[0-9a-f]{32}")
ORDERED_FORM = re.compile("0{8}(?P<number>[0-9a-f]{13})[0-9a-f]{11}")
"""One in 4,000,000,000 random nonces looks like this."""
NUMBER_MOST = 16**13 - 1
"""The year 2112, in us since 1970."""
LIST_MOST = 500
"""Segments in one Listing."""


class Pairing(Struct, frozen=True):
    """What a station keeps of a car: `id` is the car's, `station` its own there."""

    car: str
    id: str
    station: str
    key: str


class Segment(Struct, frozen=True):
    """A sealed file of a minute. `fetched`: a station has it."""

    name: str
    size: int
    fetched: bool = False


class Listing(Struct, frozen=True):
    """Segments in the order of their names; are there more after them?

    `driven`: somebody is at the wheel, so a station asks for one thing at a time.
    `free`, `total`: bytes of the card, 0 of a car that does not say.
    """

    car: str
    segments: list[Segment]
    more: bool = False
    driven: bool = False
    free: int = 0
    total: int = 0


class Sums(Struct, frozen=True):
    """SHA-256 of a file and of each MiB of it, in hex."""

    size: int
    sha256: str
    pieces: list[str]


class Certificate(Struct, frozen=True):
    """What the car shows over https: SHA-256 in hex, "" without https. Who passes this
    on for the car, to be taken for it, shows another one."""

    sha256: str


def request_mac(key: bytes, nonce: str, method: str, target: str) -> str:
    """Signs a request; `target` is path and query as they are sent."""
    return _mac(key, "request", nonce, method, target)


def ordered_nonce(number: int, digits: str) -> str:
    """Makes a nonce of a number up to NUMBER_MOST, and of 11 random digits."""
    return f"{number:021x}{digits}"


def number_in(nonce: str) -> int | None:
    """The number of an ordered nonce; None for one of an older station."""
    found = ORDERED_FORM.fullmatch(nonce)
    return int(found["number"], 16) if found else None


def answer_mac(key: bytes, nonce: str, body: bytes) -> str:
    """Signs the answer to the request that carried `nonce`."""
    return _mac(key, "answer", nonce, body.hex())


def same(one: str, other: str) -> bool:
    """Are two MACs the same? Tells nobody by its time how much of them is."""
    return hmac.compare_digest(_bytes(one), _bytes(other))


def _bytes(text: str) -> bytes:
    # Of a request line or a header, where any byte may be.
    return text.encode(errors="surrogateescape")


def _mac(key: bytes, *words: str) -> str:
    # No word has a line end: none can be split otherwise into the same text.
    return hmac.new(key, _bytes("\n".join(words)), "sha256").hexdigest()

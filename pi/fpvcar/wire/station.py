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
"""

import hmac
import re

from msgspec import Struct

BASE = "/api/station"
CODE, NAME = "X-Code", "X-Station-Name"
STATION, NONCE, MAC = "X-Station", "X-Nonce", "X-Mac"
SHA256 = re.compile("[0-9a-f]{64}")
NONCE_FORM = re.compile("[0-9a-f]{32}")
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

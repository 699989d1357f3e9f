"""Messages between a base station and a car, and their mutual authentication.

    POST /api/station/pair            X-Code, X-Station-Name -> Pairing
    GET  /api/station/segments        ?after=NAME&most=N&all=1 -> Listing
    GET  /api/station/sums/NAME       -> Sums
    GET  /api/station/segments/NAME   Range, If-Match: "SHA-256" -> the bytes
    GET  /api/station/certificate     -> Certificate
    GET  /api/station/live            ?after=CHANGE -> Live, at the next change or after 0.9 s
    GET  /api/station/topics          -> the recorded topics as they come, in MCAP
    POST /api/station/stop            an e-stop, as by any page -> 204
    POST /api/station/receipts/NAME   ?sha256=HEX: it is stored here -> 204
    POST /api/station/end             this pairing is over -> 204

All requests but the first carry X-Station, X-Nonce and X-Mac, an HMAC-SHA256 by the key of this
pair. A program on the car's own machine gets live and sends stop without them. Listing, Sums,
Certificate and Live are signed in return, over the same nonce, so that an impostor and a replayed
answer fail. A receipt is a request with its MAC.

A nonce is ordered: it contains a number that grows with each request, by default the station's time
in us. A car refuses a number already used (403), so that no request works twice. It returns its
newest number in X-Newest, signed by X-Mac over the nonce, and the station continues above that
number. Therefore neither side needs a correct clock. Older stations send nonces of random digits.
"""

import hmac
import re

from msgspec import Struct

from fpvcar.wire.telemetry import Battery, Range, Recording

BASE = "/api/station"
CODE, NAME = "X-Code", "X-Station-Name"
STATION, NONCE, MAC = "X-Station", "X-Nonce", "X-Mac"
NEWEST = "X-Newest"
SHA256 = re.compile("[0-9a-f]{64}")
NONCE_FORM = re.compile("[0-9a-f]{32}")
ORDERED_FORM = re.compile("0{8}(?P<number>[0-9a-f]{13})[0-9a-f]{11}")
"""Form of an ordered nonce; one in 4,000,000,000 random nonces looks like this."""
NUMBER_MOST = 16**13 - 1
"""Largest number: the year 2112, in us since 1970."""
LIST_MOST = 500
"""Limit of segments in one Listing."""


class Pairing(Struct, frozen=True):
    """Station's record of a paired car: `id` is the car's, `station` is the station's id at the
    car."""

    car: str
    id: str
    station: str
    key: str


class Segment(Struct, frozen=True):
    """Sealed file of one minute. `fetched`: a station has a copy."""

    name: str
    size: int
    fetched: bool = False


class Listing(Struct, frozen=True):
    """Segments in the order of their names; `more` if further ones follow.

    `driven`: the car has a driver, so a station sends one request at a time. `free`, `total`: bytes
    of the card, 0 if the car does not report them.
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
    """Certificate that the car uses for https: SHA-256 in hex, "" without https. A relay that
    impersonates the car would present another certificate."""

    sha256: str


class Live(Struct, frozen=True):
    """Present state of the car.

    `change` differs after each change of driver, stop or a part; the next request returns it.
    `run` is another one after each start of the car. `stops` counts the stops since then, by cause.
    `link_ms` is the round trip that the driver's page measures. `id` is the car's, as in Pairing.
    `station` is the base station that has this state published, "" without one.
    """

    car: str
    version: str
    run: str
    change: str
    driver: str | None
    reason: str
    stop: str | None
    stopped_by: str
    stops: dict[str, int]
    wheels: str
    camera: str
    viewers: int
    recording: Recording
    battery: Battery | None = None
    ranges: tuple[Range, ...] = ()
    link_ms: float | None = None
    wifi_dbm: float | None = None
    id: str = ""
    station: str = ""


def request_mac(key: bytes, nonce: str, method: str, target: str) -> str:
    """Sign a request; `target` is path and query as sent."""
    return _mac(key, "request", nonce, method, target)


def ordered_nonce(number: int, digits: str) -> str:
    """Build a nonce from a number up to NUMBER_MOST and 11 random digits."""
    return f"{number:021x}{digits}"


def nonce_number(nonce: str) -> int | None:
    """Return the number of an ordered nonce; None for a nonce of an older station."""
    match = ORDERED_FORM.fullmatch(nonce)
    return int(match["number"], 16) if match else None


def answer_mac(key: bytes, nonce: str, body: bytes) -> str:
    """Sign the answer to the request that carried `nonce`."""
    return _mac(key, "answer", nonce, body.hex())


def macs_equal(mac: str, expected: str) -> bool:
    """Compare two MACs in constant time."""
    return hmac.compare_digest(_bytes(mac), _bytes(expected))


def _bytes(text: str) -> bytes:
    # Text of a request line or a header, with arbitrary bytes.
    return text.encode(errors="surrogateescape")


def _mac(key: bytes, *fields: str) -> str:
    # No word contains a line end, so another list of words cannot give the same text.
    return hmac.new(key, _bytes("\n".join(fields)), "sha256").hexdigest()

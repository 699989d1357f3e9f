"""What `run` and the service of the network tell each other: a JSON object a line.

run  -> service   {"kind":"join","ssid":...,"key":...}  {"kind":"look"}
                  {"kind":"used","used":true}: pages are open
service -> run    the whole state, at once and whenever it has changed
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from fpvcar.wire.errors import WireError

Phase = Literal["absent", "searching", "known", "opening", "own", "joining", "failed"]
Security = Literal["open", "key", "other"]
"""`other`: a company's, with names; or WEP, which nobody should trust."""
Ssid = Annotated[str, Meta(min_length=1, max_length=32)]
Key = Annotated[str, Meta(max_length=64, pattern=r"^([ -~]{8,63}|[0-9A-Fa-f]{64}|)\Z")]
"""WPA: 8 to 63 ASCII characters, or 64 hexadecimal digits; none: an open network."""
LINE_MAX = 64 * 1024
SOCKET = "network.sock"
"""Of the service, in the run-time directory."""


class Network(Struct, frozen=True):
    """A network that is in range. `strength` is a share of 100."""

    ssid: str
    strength: int
    security: Security


class Own(Struct, frozen=True):
    """The car's own network. `qr`: rows of "0" and "1", for a phone's camera."""

    ssid: str
    key: str
    qr: tuple[str, ...] = ()


class NetworkState(Struct, frozen=True):
    """Where the car is. `ssid`: the network that it is in, joins or has failed to join.

    `reason` says why it is not where somebody wanted it; `name` by which name it is
    found (NAME.local), "" where nobody knows; `seen_s`: how old the list of networks
    is, None: there is none yet.
    """

    phase: Phase
    own: Own
    ssid: str = ""
    reason: str = ""
    networks: tuple[Network, ...] = ()
    seen_s: float | None = None
    name: str = ""


class Join(Struct, frozen=True, tag="join", tag_field="kind", forbid_unknown_fields=True):
    """Leave whatever network it is in, for this one."""

    ssid: Ssid
    key: Key = ""


class Look(Struct, frozen=True, tag="look", tag_field="kind"):
    """List the networks anew."""


class Used(Struct, frozen=True, tag="used", tag_field="kind"):
    """Somebody looks at pages of the car, or nobody does any more."""

    used: bool


Wish = Join | Look | Used
_wishes: msgspec.json.Decoder[Wish] = msgspec.json.Decoder(Wish)
_states = msgspec.json.Decoder(NetworkState)


def parse_wish(line: bytes) -> Wish:
    """A line of `run`. Raises WireError."""
    try:
        return _wishes.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise WireError("message refused", None, str(fault)) from None


def parse_state(line: bytes) -> NetworkState:
    """A line of the service. Raises WireError."""
    try:
        return _states.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise WireError("message refused", None, str(fault)) from None


def encode(message: Wish | NetworkState) -> bytes:
    """A line."""
    return msgspec.json.encode(message) + b"\n"

"""Messages between `run` and the network service: one JSON object a line.

run  -> service   {"kind":"join","ssid":...,"key":...}  {"kind":"look"}
                  {"kind":"used","used":true}: pages are open in the own network
service -> run    the whole state, at once and after every change
"""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from fpvcar.runtime.texts import Text
from fpvcar.wire.errors import WireError

Phase = Literal["absent", "searching", "known", "opening", "own", "joining", "failed"]
Security = Literal["open", "key", "other"]
"""Security of a network. `other` is a company network with user names, or WEP, an unsafe method."""
Ssid = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=32,
        pattern="^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\ud800-\\udfff]*\\Z",
    ),
]
"""Name of a network, without characters that end an argument of a program or a line of a log."""
Key = Annotated[str, Meta(max_length=64, pattern=r"^([ -~]{8,63}|[0-9A-Fa-f]{64}|)\Z")]
"""WPA key: 8 to 63 ASCII characters, or 64 hexadecimal digits; empty for an open network."""
LINE_MAX = 64 * 1024
FIELD = re.compile(r"(?:^|:)((?:[^:\\]|\\.)*)")
SOCKET = "network.sock"
"""Socket of the service, in the run-time directory."""


class Network(Struct, frozen=True):
    """Wi-Fi network in range. `strength` is a percentage."""

    ssid: str
    strength: int
    security: Security


class OwnNetwork(Struct, frozen=True):
    """Access point of the car. `qr` has rows of "0" and "1", for a phone's camera."""

    ssid: str
    key: str
    qr: tuple[str, ...] = ()


class NetworkState(Struct, frozen=True):
    """Network state of the car. `ssid` is the network in use, being joined, or failed to join.

    `reason` explains a failure to reach the requested network. `name` is the car's host name
    (NAME.local), "" while unknown. `seen_s` is the age of the list of networks, None before the
    first list.
    """

    phase: Phase
    own: OwnNetwork
    ssid: str = ""
    reason: Text | None = None
    networks: tuple[Network, ...] = ()
    seen_s: float | None = None
    name: str = ""


class Join(Struct, frozen=True, tag="join", tag_field="kind", forbid_unknown_fields=True):
    """Request to leave the current network and join this one."""

    ssid: Ssid
    key: Key = ""


class Scan(Struct, frozen=True, tag="look", tag_field="kind"):
    """Request to scan for networks again."""


class PagesOpen(Struct, frozen=True, tag="used", tag_field="kind"):
    """Notice that pages are open in the car's own network, or that the last one has closed."""

    used: bool


Wish = Join | Scan | PagesOpen
_wishes: msgspec.json.Decoder[Wish] = msgspec.json.Decoder(Wish)
_states = msgspec.json.Decoder(NetworkState)


def parse_wish(line: bytes) -> Wish:
    """Parse a line of `run`. Raises WireError."""
    try:
        return _wishes.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise WireError("message refused", None, str(fault)) from None


def parse_state(line: bytes) -> NetworkState:
    """Parse a line of the service. Raises WireError."""
    try:
        return _states.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise WireError("message refused", None, str(fault)) from None


def encode(message: Wish | NetworkState) -> bytes:
    """Encode a message as one line."""
    return msgspec.json.encode(message) + b"\n"


def nmcli_fields(line: str) -> list[str]:
    r"""Split a line of `nmcli --terse` into fields: ":" separates, "\\" escapes ":" and "\\"."""
    return [re.sub(r"\\(.)", r"\1", field) for field in FIELD.findall(line)]

"""JSON text, one message a frame: typed by its `kind`, or rejected."""

from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct

from fpvcar.config import PLAIN
from fpvcar.wire.errors import VERSION, UnknownKind, WireError

DRIVE_MAX_BYTES = 4096
"""Longest text frame accepted by /ws/drive and /ws/buttons."""


class Up(Struct, tag_field="kind", frozen=True, forbid_unknown_fields=True):
    """Message from a browser. An unknown field is rejected as a misspelt wish."""


class Greeting(Up, frozen=True):
    """First message on a socket; `v` must be VERSION."""

    v: int


class Down(Struct, tag_field="kind", frozen=True):
    """Message from the car to a browser."""


class _Head(Struct):
    kind: str


class Decoders(NamedTuple):
    """Decoder for all message kinds of one socket, and their names."""

    kinds: msgspec.json.Decoder[Any]
    tags: frozenset[str]


_head_decoder = msgspec.json.Decoder(_Head)
_encoder = msgspec.json.Encoder()


def decoders(union: Any) -> Decoders:
    """Build the decoders for a union of messages."""
    tags = frozenset(str(kind.__struct_config__.tag) for kind in get_args(union))
    return Decoders(msgspec.json.Decoder(union), tags)


def parse(text: str | bytes, expected: Decoders) -> Any:
    """Parse one text frame.

    Raises UnknownKind, and WireError for other messages that are malformed, mistyped, out of range
    or too long.
    """
    size = len(text)
    if size > DRIVE_MAX_BYTES:
        raise WireError("message too long", f"{size} bytes", f"<= {DRIVE_MAX_BYTES}")
    try:
        message = expected.kinds.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise _refusal(text, expected, fault) from None
    if isinstance(message, Greeting) and message.v != VERSION:
        raise WireError("wrong version", message.v, f"{VERSION}; reload the page")
    return message


def _refusal(text: str | bytes, expected: Decoders, fault: Exception) -> WireError:
    """Return the error for a message that could not be decoded."""
    try:
        kind = _head_decoder.decode(text).kind
        if kind not in expected.tags:
            return UnknownKind("unknown kind", kind, ", ".join(sorted(expected.tags)))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as head_fault:
        fault = head_fault  # for example not JSON at all
    if isinstance(fault, RecursionError):  # the deepest nesting a frame allows is 4096 brackets
        return WireError("malformed JSON", _text_of(text), "nested less")
    mistyped = isinstance(fault, msgspec.ValidationError)
    refusal = "message refused" if mistyped else "malformed JSON"
    return WireError(refusal, _text_of(text), _limit_of(fault))


def _limit_of(fault: Exception) -> str:
    """Return the expected value from msgspec's error, with our pattern replaced by words."""
    return str(fault).replace(f"matching regex {PLAIN!r}", "of plain characters")


def _text_of(frame: str | bytes) -> str:
    return frame if isinstance(frame, str) else bytes(frame).decode("utf-8", "replace")


def encode_downward(message: Down) -> str:
    """Encode a message to the browser as a text frame."""
    return encoded(message).decode()


def encoded(message: Down) -> bytes:
    """Encode a message to the browser in UTF-8."""
    return _encoder.encode(message)

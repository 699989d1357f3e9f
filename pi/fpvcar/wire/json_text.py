"""JSON text, one message a frame: typed by its `kind`, or refused."""

from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct

from fpvcar.config import PLAIN
from fpvcar.wire.errors import VERSION, UnknownKind, WireError

DRIVE_MAX_BYTES = 4096
"""The longest text frame that /ws/drive and /ws/buttons take."""


class Up(Struct, tag_field="kind", frozen=True, forbid_unknown_fields=True):
    """What a browser sends. An unknown field is refused: it is a misspelt wish."""


class Greeting(Up, frozen=True):
    """First message on a socket; `v` must be VERSION."""

    v: int


class Down(Struct, tag_field="kind", frozen=True):
    """What the car sends."""


class _Head(Struct):
    kind: str


class Decoders(NamedTuple):
    """Of what one socket takes: all its kinds, and how they are called."""

    kinds: msgspec.json.Decoder[Any]
    tags: frozenset[str]


_head_decoder = msgspec.json.Decoder(_Head)
_encoder = msgspec.json.Encoder()


def decoders(union: Any) -> Decoders:
    """Decoders of a union of messages."""
    tags = frozenset(str(kind.__struct_config__.tag) for kind in get_args(union))
    return Decoders(msgspec.json.Decoder(union), tags)


def parse(text: str | bytes, known: Decoders) -> Any:
    """The message of one text frame.

    Raises UnknownKind, and WireError for other messages that are malformed, mistyped,
    out of range or too long.
    """
    size = len(text)
    if size > DRIVE_MAX_BYTES:
        raise WireError("message too long", f"{size} bytes", f"<= {DRIVE_MAX_BYTES}")
    try:
        message = known.kinds.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise _refusal(text, known, fault) from None
    if isinstance(message, Greeting) and message.v != VERSION:
        raise WireError("wrong version", message.v, f"{VERSION}; reload the page")
    return message


def _refusal(text: str | bytes, known: Decoders, fault: Exception) -> WireError:
    """The error for a message that could not be decoded."""
    try:
        kind = _head_decoder.decode(text).kind
        if kind not in known.tags:
            return UnknownKind("unknown kind", kind, ", ".join(sorted(known.tags)))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as head_fault:
        fault = head_fault  # no JSON at all, say
    if isinstance(fault, RecursionError):  # as deep as a frame allows: 4096 brackets
        return WireError("malformed JSON", _text_of(text), "nested less")
    mistyped = isinstance(fault, msgspec.ValidationError)
    what = "message refused" if mistyped else "malformed JSON"
    return WireError(what, _text_of(text), _limit_of(fault))


def _limit_of(fault: Exception) -> str:
    """What was expected, in words where msgspec quotes a pattern of ours."""
    return str(fault).replace(f"matching regex {PLAIN!r}", "of plain characters")


def _text_of(frame: str | bytes) -> str:
    return frame if isinstance(frame, str) else bytes(frame).decode("utf-8", "replace")


def encode_downward(message: Down) -> str:
    """The text frame of a message to the browser."""
    return encoded(message).decode()


def encoded(message: Down) -> bytes:
    """The same in UTF-8."""
    return _encoder.encode(message)

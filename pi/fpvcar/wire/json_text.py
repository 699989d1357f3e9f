"""JSON text, one message a frame: typed by its `kind`, or rejected."""

from typing import Any, Generic, TypeVar, get_args

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


Message = TypeVar("Message")
_head_decoder = msgspec.json.Decoder(_Head)
_encoder = msgspec.json.Encoder()


class Parser(Generic[Message]):
    """Parser of one socket's text frames."""

    def __init__(self, union: Any) -> None:
        """Create the parser of a union of messages."""
        self._decoder = msgspec.json.Decoder[Message](union)
        self._tags = frozenset(str(kind.__struct_config__.tag) for kind in get_args(union))

    def __call__(self, text: str | bytes) -> Message:
        """Parse one frame.

        Raises UnknownKind, and WireError for other messages that are malformed, mistyped, out of
        range or too long.
        """
        size = len(text)
        if size > DRIVE_MAX_BYTES:
            raise WireError("message too long", f"{size} bytes", f"<= {DRIVE_MAX_BYTES}")
        try:
            message: Message = self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
            raise _refusal(text, self._tags, fault) from None
        if isinstance(message, Greeting) and message.v != VERSION:
            raise WireError("wrong version", message.v, f"{VERSION}; reload the page")
        return message


def _refusal(text: str | bytes, tags: frozenset[str], fault: Exception) -> WireError:
    """Return the error for a message that could not be decoded."""
    try:
        kind = _head_decoder.decode(text).kind
        if kind not in tags:
            return UnknownKind("unknown kind", kind, ", ".join(sorted(tags)))
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

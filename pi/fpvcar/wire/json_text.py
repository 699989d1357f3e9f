"""JSON text, one message a frame: typed by its `kind`, or refused."""

from typing import Any

import msgspec
from msgspec import Struct

from fpvcar.config import PLAIN
from fpvcar.wire.errors import VERSION, WireError

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


Decoders = dict[str, msgspec.json.Decoder[Any]]
_head_decoder = msgspec.json.Decoder(_Head)
_encoder = msgspec.json.Encoder()


def decoders(*kinds: type[Up]) -> Decoders:
    """A decoder for each kind of message, by its tag."""
    return {
        str(kind.__struct_config__.tag): msgspec.json.Decoder(kind) for kind in kinds
    }


def parse(text: str | bytes, known: Decoders) -> Any:
    """The message of one text frame; None for an unknown kind.

    Raises WireError for what is malformed, mistyped, out of range or too long.
    """
    size = len(text)
    if size > DRIVE_MAX_BYTES:
        raise WireError("message too long", f"{size} bytes", f"<= {DRIVE_MAX_BYTES}")
    try:
        kind = _head_decoder.decode(text).kind
        decoder = known.get(kind)
        if decoder is None:
            return None
        message = decoder.decode(text)
    except RecursionError:  # as deep as a frame allows: 4096 brackets
        raise WireError("malformed JSON", _text_of(text), "nested less") from None
    except (msgspec.DecodeError, UnicodeError) as fault:
        mistyped = isinstance(fault, msgspec.ValidationError)
        what = "message refused" if mistyped else "malformed JSON"
        raise WireError(what, _text_of(text), _limit_of(fault)) from None
    if isinstance(message, Greeting) and message.v != VERSION:
        raise WireError("wrong version", message.v, f"{VERSION}; reload the page")
    return message


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

"""/ws/buttons, both ways: JSON text, one message a frame.

Nothing here reaches the gate. `Hold` is the whole truth each time: a message that is
lost or late leaves no button stuck. It is sent on change and twice a second.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fpvcar.wire.down import Error
from fpvcar.wire.json_text import Down, Greeting, Up, decoders, parse

BUTTONS_MAX = 6


class ButtonsHello(Greeting, tag="hello", frozen=True):
    """First message on a socket."""


class Hold(Up, tag="hold", frozen=True):
    """What the fingers on this page hold down: a bit a button."""

    held: Annotated[int, Meta(ge=0, lt=2**BUTTONS_MAX)]


class Choose(Up, tag="choose", frozen=True):
    """A picture was pushed: the rainbow, the memory game, or what runs is to end."""

    mode: Literal["free", "rainbow", "game"]


ButtonsUpward = ButtonsHello | Hold | Choose
_decoders = decoders(ButtonsHello, Hold, Choose)


def parse_buttons_upward(text: str | bytes) -> ButtonsUpward | None:
    """One frame of /ws/buttons; None and WireError as up.parse_upward."""
    message: ButtonsUpward | None = parse(text, _decoders)
    return message


class Button(Struct, frozen=True):
    """What one looks like; the bits of masks are in this order."""

    name: str
    colour: str
    shape: str


class Panel(Down, tag="panel", frozen=True):
    """Answer to ButtonsHello."""

    v: int
    car: str
    buttons: tuple[Button, ...]


class Glow(Down, tag="glow", frozen=True):
    """On change, and twice a second. `lit` is a bit a button; see buttons.View."""

    seq: int
    lit: int
    mode: str
    length: int
    done: int
    best: int


ButtonsDownward = Panel | Glow | Error

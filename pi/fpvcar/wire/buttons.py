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
    """The buttons that the fingers on this page hold down, a bit each."""

    held: Annotated[int, Meta(ge=0, lt=2**BUTTONS_MAX)]


class Choose(Up, tag="choose", frozen=True):
    """Somebody chose the rainbow, the memory game, or the end of either."""

    mode: Literal["free", "rainbow", "game"]


ButtonsUpward = ButtonsHello | Hold | Choose
_decoders = decoders(ButtonsUpward)


def parse_buttons_upward(text: str | bytes) -> ButtonsUpward:
    """The message of one frame of /ws/buttons. Raises as json_text.parse."""
    message: ButtonsUpward = parse(text, _decoders)
    return message


class Button(Struct, frozen=True):
    """What a button looks like; the bits of masks are in the order of the buttons."""

    name: str
    colour: str
    shape: str


class Panel(Down, tag="panel", frozen=True):
    """Answer to ButtonsHello."""

    v: int
    car: str
    buttons: tuple[Button, ...]


class Glow(Down, tag="glow", frozen=True):
    """What is lit, a bit a button, and the game; on change and twice a second.

    The other fields are those of game.View.
    """

    seq: int
    lit: int
    mode: str
    length: int
    done: int
    best: int


ButtonsDownward = Panel | Glow | Error

"""/ws/buttons, both ways: JSON text, one message a frame.

These messages never reach the gate. Each `Hold` contains the full state, so that a lost or late
message leaves no button stuck. It is sent on change and twice a second.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fpvcar.wire.down import Closing, Error
from fpvcar.wire.json_text import Down, Greeting, Parser, Up

BUTTONS_MAX = 6
Mask = Annotated[int, Meta(ge=0, lt=2**BUTTONS_MAX)]


class ButtonsHello(Greeting, tag="hello", frozen=True):
    """First message on a socket."""


class Hold(Up, tag="hold", frozen=True):
    """Buttons that fingers on this page hold down, one bit each."""

    held: Mask


class Choose(Up, tag="choose", frozen=True):
    """Selects the rainbow or the memory game, or ends either."""

    mode: Literal["free", "rainbow", "game"]


ButtonsUpward = ButtonsHello | Hold | Choose
parse_buttons_upward: Parser[ButtonsUpward] = Parser(ButtonsUpward)


class Button(Struct, frozen=True):
    """Appearance of a button; masks have their bits in the order of the buttons."""

    name: str
    colour: str
    shape: str


class Panel(Down, tag="panel", frozen=True):
    """Answer to ButtonsHello: the car's buttons."""

    v: int
    car: str
    buttons: tuple[Button, ...]


class View(Struct, frozen=True):
    """State shown to everybody. `lit` has a bit per button.

    `mode`: "free", "rainbow", or in the game "show", "turn", "cheer", "sad". `length` is the
    pattern's length, `done` the repeated steps, `best` the longest pattern so far.
    """

    lit: int = 0
    mode: str = "free"
    length: int = 0
    done: int = 0
    best: int = 0


class Glow(Down, tag="glow", frozen=True):
    """Lit buttons, one bit each, and the game; sent on change and twice a second.

    The other fields are those of View.
    """

    seq: int
    lit: Mask
    mode: str
    length: int
    done: int
    best: int


ButtonsDownward = Panel | Glow | Error | Closing

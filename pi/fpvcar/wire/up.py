"""/ws/drive, browser -> car: JSON text, one message a frame."""

from typing import Annotated

from msgspec import Meta

from fpvcar.config import PLAIN, PersonName
from fpvcar.wire.json_text import Greeting, Parser, Up
from fpvcar.wire.servos import LetLook, Look, ServoMessage
from fpvcar.wire.settings import Setting

Unit = Annotated[float, Meta(ge=-1.0, le=1.0)]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Millis = Annotated[float, Meta(ge=0.0, le=1e13)]
Client = Annotated[str, Meta(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9-]+\Z")]
Code = Annotated[str, Meta(max_length=32)]


class Hello(Greeting, tag="hello", frozen=True):
    """First message on a socket.

    `client` is the page's secret for its session: it gives a page its seat back after a lost link.
    It appears in no URL and in no log.
    """

    client: Client
    name: PersonName = ""
    code: Code = ""


class Name(Up, tag="name", frozen=True):
    """New name of the page's person; empty for none. Later sockets send it in their hello."""

    name: PersonName


class NameCar(Up, tag="car_name", frozen=True):
    """New name of the car on its pages, 1 to 24 visible characters.

    Any driver may choose the first one, later a grown-up.
    """

    name: Annotated[str, Meta(max_length=256)]


class Unlock(Up, tag="unlock", frozen=True):
    """Code to unlock rights: a drive code (6 digits), the grown-up code, or an invitation's."""

    code: Code


class Drive(Up, tag="drive", frozen=True):
    """Wish for throttle and steering. `t` is the browser's own clock in ms (any origin, per
    socket).

    `seen` is `nonce` of the newest State or Pong for this page. A wish without it, or with a nonce
    sent more than `late_ms` ago, moves nothing.
    """

    seq: Count
    t: Millis
    throttle: Unit
    steer: Unit
    seen: Count = 0


class Take(Up, tag="take", frozen=True):
    """Request for the driver's seat."""


class Release(Up, tag="release", frozen=True):
    """Release of the driver's seat."""


class Ask(Up, tag="ask", frozen=True):
    """Request to the driver to hand over the wheel; a free wheel is taken at once."""


class Answer(Up, tag="answer", frozen=True):
    """Driver's answer to a request for the wheel. `id` is that of the Asking; `give` hands over."""

    id: Client
    give: bool


class Estop(Up, tag="estop", frozen=True):
    """Emergency stop of the car, open to everyone."""


class Resume(Up, tag="resume", frozen=True):
    """Deliberate push of Resume: clears an e-stop or a fault."""


class View(Up, tag="view", frozen=True):
    """Camera that the page shows large: a name of Welcome's `cameras`, "" for the first one.

    The car drives only with a fresh picture of the first camera and of this one. `shown` is False
    while the page waits for a picture to show: then it has priority on the link only.
    """

    camera: Annotated[str, Meta(max_length=24)]
    shown: bool = True


class SetIntercom(Up, tag="intercom", frozen=True):
    """Turns the intercom on or off, set by a grown-up."""

    on: bool


class Keep(Up, tag="keep", frozen=True):
    """Keeps the last minute; other recordings are deleted before it."""


class Mark(Up, tag="mark", frozen=True):
    """Marks this moment in the recording."""

    text: Annotated[str, Meta(max_length=64, pattern=PLAIN)] = ""


class Lock(Up, tag="lock", frozen=True):
    """Return of a grown-up's rights."""


class Who(Up, tag="who", frozen=True):
    """Grown-up's request for the list of people with the right to drive."""


class End(Up, tag="end", frozen=True):
    """Grown-up's withdrawal of a right to drive: `id` of a Person."""

    id: Client


class Ping(Up, tag="ping", frozen=True):
    """Clock probe every 100 ms; `t` as in Drive."""

    seq: Count
    t: Millis


class Report(Up, tag="report", frozen=True):
    """Measurements of the page over the last second: ms, frames, bytes."""

    path: Annotated[str, Meta(max_length=16, pattern=PLAIN)]
    picture_ms: Millis | None = None
    link_ms: Millis | None = None
    fps: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    dropped: Count = 0


Upward = (
    Hello
    | Name
    | NameCar
    | Unlock
    | Drive
    | Take
    | Release
    | Ask
    | Answer
    | Estop
    | Resume
    | View
    | SetIntercom
    | Keep
    | Mark
    | Lock
    | Who
    | End
    | Ping
    | Report
    | Setting
    | ServoMessage
)

OF_FEATURES = frozenset({SetIntercom, Look, LetLook})
"""Messages that only cars with the feature handle."""
parse_upward: Parser[Upward] = Parser(Upward)

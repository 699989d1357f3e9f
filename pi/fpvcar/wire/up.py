"""/ws/drive, browser -> car: JSON text, one message a frame."""

from typing import Annotated

from msgspec import Meta

from fpvcar.config import PLAIN, GuardMode, PersonName, Picture, Share
from fpvcar.wire.json_text import Greeting, Up, decoders, parse

Unit = Annotated[float, Meta(ge=-1.0, le=1.0)]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Millis = Annotated[float, Meta(ge=0.0, le=1e13)]
Client = Annotated[str, Meta(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9-]+\Z")]
Code = Annotated[str, Meta(max_length=32)]


class Hello(Greeting, tag="hello", frozen=True):
    """First message on a socket.

    `client` is the page's secret for its session: it gives a page its seat back after
    a lost link. It stands in no URL and in no log.
    """

    client: Client
    name: PersonName = ""
    code: Code = ""


class Unlock(Up, tag="unlock", frozen=True):
    """A drive code (6 digits), the grown-up code, or an invitation's."""

    code: Code


class Drive(Up, tag="drive", frozen=True):
    """A wish. `t` is the browser's own clock in ms (any origin, per socket).

    `seen` is `nonce` of the newest State or Pong on this socket. A wish without it, or
    with one that the car sent more than `late_ms` ago, moves nothing.
    """

    seq: Count
    t: Millis
    throttle: Unit
    steer: Unit
    seen: Count = 0


class Take(Up, tag="take", frozen=True):
    """Asks for the wheel."""


class Release(Up, tag="release", frozen=True):
    """Gives the wheel away."""


class Estop(Up, tag="estop", frozen=True):
    """Stops the car at once; anybody may."""


class Resume(Up, tag="resume", frozen=True):
    """A deliberate push: clears an e-stop or a fault."""


class Lights(Up, tag="lights", frozen=True):
    """Switches the head lights; None toggles them."""

    head: bool | None = None


class Limit(Up, tag="limit", frozen=True):
    """A grown-up sets the speed limit: a share of full throttle, <= the profile's."""

    throttle: Share


class Guard(Up, tag="guard", frozen=True):
    """A grown-up sets what the collision guard does from now on."""

    mode: GuardMode


class SetPicture(Up, tag="picture", frozen=True):
    """A grown-up sets some of the picture; what is not in it stays as it is."""

    to: Picture


class SetRecording(Up, tag="record", frozen=True):
    """Turns recording on or off; off, only the last minute is there to be kept."""

    on: bool


class Keep(Up, tag="keep", frozen=True):
    """Keeps the last minute, whatever else has to go."""


class Mark(Up, tag="mark", frozen=True):
    """Marks this moment in the recording."""

    text: Annotated[str, Meta(max_length=64, pattern=PLAIN)] = ""


class Lock(Up, tag="lock", frozen=True):
    """Gives a grown-up's rights back."""


class Who(Up, tag="who", frozen=True):
    """A grown-up asks who may drive."""


class End(Up, tag="end", frozen=True):
    """A grown-up ends what somebody may do: `id` of a Person."""

    id: Client


class Ping(Up, tag="ping", frozen=True):
    """Every 100 ms; `t` as in Drive."""

    seq: Count
    t: Millis


class Report(Up, tag="report", frozen=True):
    """What the page measured over the last second; ms, frames, bytes."""

    path: Annotated[str, Meta(max_length=16, pattern=PLAIN)]
    picture_ms: Millis | None = None
    link_ms: Millis | None = None
    fps: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    dropped: Count = 0


Upward = (
    Hello
    | Unlock
    | Drive
    | Take
    | Release
    | Estop
    | Resume
    | Lights
    | Limit
    | Guard
    | SetPicture
    | SetRecording
    | Keep
    | Mark
    | Lock
    | Who
    | End
    | Ping
    | Report
)

_decoders = decoders(Upward)


def parse_upward(text: str | bytes) -> Upward:
    """The message of one frame of /ws/drive. Raises as json_text.parse."""
    message: Upward = parse(text, _decoders)
    return message

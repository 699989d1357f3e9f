"""/ws/drive, car -> browser: JSON text, one message a frame."""

from typing import Literal

from msgspec import Struct

from fpvcar.wire.json_text import Down
from fpvcar.wire.telemetry import Battery, Guarding, Health, Range, Recording


class Welcome(Down, tag="welcome", frozen=True):
    """Answer to Hello. `https_port` is 0 where https is not served.

    `range_stale_ms` is the age from which a range counts as unseen.
    `video` is what the page's pictures are asked for with: /ws/video?id=... It is no
    secret, and gives nobody the seat.
    """

    v: int
    car: str
    version: str
    clock_us: int
    silence_ms: int
    late_ms: int
    drive_every_ms: int
    range_stale_ms: int
    width: int
    height: int
    fps: float
    https_port: int
    code_needed: bool
    has_lights: bool
    video: str


class Stop(Struct, frozen=True):
    """Why the car stands, and what makes it go on.

    cause: a value of gate.Cause. clears: "neutral" (let go, then drive),
    "resume" (the driver's Go on), "grown_up" (a grown-up's Go on).
    """

    cause: str
    clears: str
    by: str = ""


class State(Down, tag="state", frozen=True):
    """The car as one page sees it, 10 times a second and on change.

    `nonce` is unpredictable: each wish returns the newest one as `seen`.
    `role` is "driver" or "watching"; `lost` the share of the packets of its pictures
    that had to be sent again lately, None while nothing can be said.
    """

    seq: int
    clock_us: int
    nonce: int
    role: str
    may_drive: bool
    grown_up: bool
    driver: str | None
    seat_free: bool
    throttle: float
    steer: float
    reason: str
    stop: Stop | None
    limit: float
    head_lights: bool
    viewers: int
    battery: Battery | None = None
    ranges: tuple[Range, ...] = ()
    wheels: str = "ok"
    camera: str = "ok"
    guard: Guarding | None = None
    health: Health | None = None
    recording: Recording | None = None
    lost: float | None = None


class Pong(Down, tag="pong", frozen=True):
    """Echoes seq and t of the Ping; `clock_us` is the car's clock then, `nonce` as in
    State."""

    seq: int
    t: float
    clock_us: int
    nonce: int


ErrorCode = Literal[
    "refused",
    "unknown_kind",
    "hello_first",
    "hello_twice",
    "too_many_messages",
    "watch_only",
    "grown_up_only",
    "wrong_code",
    "too_many_codes",
    "may_drive",
    "late",
    "no_seen",
    "not_driver",
    "wheel_taken",
    "grown_up_stop",
    "no_picture",
    "limit",
    "too_often",
    "locked",
    "time_over",
    "ended",
]


class Error(Down, tag="error", frozen=True):
    """Refusal or news: its value, the limit, and what to do next, for people to read.

    Programs compare `code`; the words may change.
    """

    what: str
    value: str = ""
    limit: str = ""
    next: str = ""
    code: ErrorCode = "refused"


class Pass(Down, tag="pass", frozen=True):
    """A right code was said: POST /api/pass with it, once, in X-Pass, makes a cookie.

    By that the car knows the device again. `left_s`: how long a guest may drive, 0 for
    others.
    """

    ticket: str
    left_s: float = 0.0


class Person(Struct, frozen=True):
    """One who may drive, a page that is here or a device that is remembered; or one who
    only watches now.

    where: "this computer", "home network", "elsewhere". away_s: 0 while it is here.
    left_s: how long a guest may still drive, 0 for others.
    """

    id: str
    name: str
    where: str
    grown_up: bool
    drives: bool
    you: bool
    away_s: float = 0.0
    left_s: float = 0.0
    watches: bool = False


class People(Down, tag="people", frozen=True):
    """Answer to Who. `unsaved`: why the car cannot save the list, "" if it can."""

    people: tuple[Person, ...]
    unsaved: str = ""


Downward = Welcome | State | Pong | Error | Pass | People

"""/ws/drive, car -> browser: JSON text, one message a frame."""

from typing import Any, Literal

from msgspec import Struct

from fpvcar.runtime.texts import State as PartState
from fpvcar.runtime.texts import Text
from fpvcar.wire.json_text import Down
from fpvcar.wire.settings import SettingsState
from fpvcar.wire.telemetry import Battery, Guarding, Health, Range, Recording


class Welcome(Down, tag="welcome", frozen=True):
    """Answer to Hello. `https_port` is 0 for a car without https.

    `range_stale_ms` is the age from which a range counts as unseen. `video` identifies the page in
    requests for pictures: /ws/video?id=... It is no secret and gives no right to the seat. `named`
    is False until the car's name has been chosen. `cameras` has the names of further cameras:
    /ws/video?id=...&camera=NAME. `features` has the names of its features. `unguarded`: nothing
    stops the motor if its PCA9685 fails. `way` is the page's way to the car: its own network, a
    tunnel (the car's address is one of `server.allowed_hosts`), or a proxy that adds its header.
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
    named: bool = True
    cameras: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    unguarded: bool = False
    way: Literal["near", "tunnel", "proxy"] = "near"


class CarName(Down, tag="car_name", frozen=True):
    """New name of the car, sent to all pages when it is chosen."""

    car: str


class Stop(Struct, frozen=True):
    """Cause of a stop, and the action that clears it.

    cause: a value of gate.Cause. by: a person, or the fault of `wheels`. clears: "neutral" (let go,
    then drive), "resume" (the driver's Resume), "grown_up" (a grown-up's Resume).
    """

    cause: str
    clears: str
    by: str | Text = ""


class Asking(Struct, frozen=True):
    """Request for the wheel, as the driver or the asker sees it.

    phase: "asks" for the driver, who answers with `id`; for the asker "waits", "later" (refused) or
    "unanswered". left_s: time until the request ends, or until the page may ask again.
    """

    phase: Literal["asks", "waits", "later", "unanswered"]
    left_s: float
    id: str = ""
    name: str = ""


class State(Down, tag="state", frozen=True):
    """State of the car for one page, sent 10 times a second and on change.

    `nonce` is unpredictable: each wish returns the newest one as `seen`. `role` is "driver" or
    "watching". `lost` is the recent share of lost packets of its pictures, None while
    unknown. `encoder_hangs`: the pictures are smaller until the car is switched off and on.
    `camera_warning`: a property of the pictures that some viewers cannot show, and the remedy.
    `lowered_rate`: the reason why the camera has fewer pictures per second than its settings.
    `wait_s` is the time until the seat is free, unless its driver drives. `parts` has the state
    of each feature that has one, by its name.
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
    settings: SettingsState
    viewers: int
    battery: Battery | None = None
    ranges: tuple[Range, ...] = ()
    wheels: PartState = "ok"
    camera: PartState = "ok"
    encoder_hangs: bool = False
    camera_warning: Text | None = None
    lowered_rate: Text | None = None
    guard: Guarding | None = None
    health: Health | None = None
    recording: Recording | None = None
    parts: dict[str, Any] = {}
    lost: float | None = None
    wait_s: float = 0.0
    asking: Asking | None = None


class Pong(Down, tag="pong", frozen=True):
    """Echo of seq and t of the Ping; `clock_us` is the car's clock at the echo, `nonce` as in
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
    "unknown_camera",
    "unknown_servo",
    "no_sound",
    "car_name",
    "limit",
    "too_often",
    "locked",
    "time_over",
    "ended",
]


class Error(Down, tag="error", frozen=True):
    """Refusal or news for people to read: the value, the limit, and the next step.

    Programs compare `code`, and pages have their own text for it; the words may change. `by` is the
    person in the way, `wait_s` the time until another try, 0 if waiting does not help.
    """

    what: str
    value: str = ""
    limit: str = ""
    next: str = ""
    code: ErrorCode = "refused"
    by: str = ""
    wait_s: float = 0.0


class Pass(Down, tag="pass", frozen=True):
    """Ticket for a correct code: POST /api/pass with it, once, in X-Pass, sets a cookie.

    The car recognises the device by that cookie. `left_s` is a guest's remaining driving time, 0
    for others.
    """

    ticket: str
    left_s: float = 0.0


class Person(Struct, frozen=True):
    """Person with the right to drive (an open page or a remembered device), or a current viewer.

    where: "this computer", "home network", "elsewhere". away_s: 0 while the page is open. left_s: a
    guest's remaining driving time, 0 for others.
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
    """Answer to Who. `unsaved` is the reason why the car cannot save the list."""

    people: tuple[Person, ...]
    unsaved: Text | None = None


class Closing(Down, tag="closing", frozen=True):
    """Reason for the end of the socket, sent before its close frame, which has its key only."""

    text: Text


Downward = Welcome | CarName | State | Pong | Error | Pass | People | Closing

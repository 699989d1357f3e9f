"""Every message on any wire of the car. Pure; fixed by tests/vectors/.

    browser  <-> run     /ws/drive   JSON text, one message a frame   (class Hello ...)
    run       -> browser /ws/video   binary: header + one access unit (pack_video)
    camera    -> run     stdout      binary: header + one access unit (pack_record)
    run       -> camera  stdin       text lines: "key", "bitrate N"
    run      <-> wheels  SEQPACKET   binary: setpoint / answer        (pack_setpoint)

All binary headers are little-endian. Times are CLOCK_MONOTONIC of the car.
"""

import enum
import struct
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

VERSION = 1
DRIVE_MAX_BYTES = 4096
"""The longest text frame that /ws/drive takes."""
UNIT_MAX_BYTES = 4 * 1024 * 1024
"""The longest access unit on any wire (a 1280x720 key frame is some 150 kB)."""


class WireError(ValueError):
    """A message that is refused: what it was about, the value, the limit."""

    def __init__(self, what: str, value: object = None, limit: str = "") -> None:
        self.what, self.limit = what, limit
        self.value = "" if value is None else _short(value)
        shown = f": {self.value}" if self.value else ""
        wanted = f" (expected {limit})" if limit else ""
        super().__init__(f"{what}{shown}{wanted}")


def _short(value: object, most: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


# --- /ws/drive, browser -> car ------------------------------------------------

Unit = Annotated[float, Meta(ge=-1.0, le=1.0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Millis = Annotated[float, Meta(ge=0.0, le=1e13)]
Name = Annotated[str, Meta(max_length=32)]
Client = Annotated[str, Meta(min_length=8, max_length=64, pattern="^[A-Za-z0-9-]+$")]
Code = Annotated[str, Meta(max_length=32)]


class _Up(Struct, tag_field="kind", frozen=True, forbid_unknown_fields=True):
    """What a browser sends. An unknown field is refused: it is a misspelt wish."""


class Hello(_Up, tag="hello", frozen=True):
    """First message on a socket. `client` is the page's id for its session."""

    v: int
    client: Client
    name: Name = ""
    code: Code = ""


class Unlock(_Up, tag="unlock", frozen=True):
    """A drive code (6 digits) or the grown-up code."""

    code: Code


class Drive(_Up, tag="drive", frozen=True):
    """A wish. `t` is the browser's own clock in ms (any origin, per socket)."""

    seq: Count
    t: Millis
    throttle: Unit
    steer: Unit


class Take(_Up, tag="take", frozen=True):
    """Asks for the wheel."""


class Release(_Up, tag="release", frozen=True):
    """Gives the wheel away."""


class Estop(_Up, tag="estop", frozen=True):
    """Stops the car at once; anybody may."""


class Resume(_Up, tag="resume", frozen=True):
    """A deliberate push: clears an e-stop or a fault."""


class Lights(_Up, tag="lights", frozen=True):
    """Head lights: `None` toggles."""

    head: bool | None = None


class Horn(_Up, tag="horn", frozen=True):
    """The horn, for as long as it is on (at most 2 s)."""

    on: bool


class Limit(_Up, tag="limit", frozen=True):
    """A grown-up's speed limit, a share of full throttle; the profile's is above it."""

    throttle: Share


class Ping(_Up, tag="ping", frozen=True):
    """Every 100 ms; `t` as in Drive."""

    seq: Count
    t: Millis


class Report(_Up, tag="report", frozen=True):
    """What the page measured over the last second; ms, frames, bytes."""

    path: Annotated[str, Meta(max_length=16)]
    picture_ms: Millis | None = None
    link_ms: Millis | None = None
    fps: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    dropped: Count = 0


Upward = (
    Hello | Unlock | Drive | Take | Release | Estop | Resume
    | Lights | Horn | Limit | Ping | Report
)  # fmt: skip


class _Head(Struct):
    kind: str


_head_decoder = msgspec.json.Decoder(_Head)
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    str(kind.__struct_config__.tag): msgspec.json.Decoder(kind)
    for kind in (
        Hello, Unlock, Drive, Take, Release, Estop, Resume,
        Lights, Horn, Limit, Ping, Report,
    )
}  # fmt: skip


def parse_upward(text: str | bytes) -> Upward | None:
    """One frame of /ws/drive. None for an unknown kind (ignored and counted).

    Raises WireError for what is malformed, mistyped, out of range or too long.
    """
    size = len(text)
    if size > DRIVE_MAX_BYTES:
        raise WireError("message too long", f"{size} bytes", f"<= {DRIVE_MAX_BYTES}")
    try:
        kind = _head_decoder.decode(text).kind
        decoder = _decoders.get(kind)
        if decoder is None:
            return None
        message: Upward = decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError) as fault:
        said = text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")
        mistyped = isinstance(fault, msgspec.ValidationError)
        what = "message refused" if mistyped else "malformed JSON"
        raise WireError(what, said, str(fault)) from None
    if isinstance(message, Hello) and message.v != VERSION:
        raise WireError("wrong version", message.v, f"{VERSION}; reload the page")
    return message


# --- /ws/drive, car -> browser ------------------------------------------------


class _Down(Struct, tag_field="kind", frozen=True):
    """What the car sends."""


class Welcome(_Down, tag="welcome", frozen=True):
    """Answer to Hello. `https_port` is 0 where https is not served."""

    v: int
    car: str
    version: str
    clock_us: int
    silence_ms: int
    drive_every_ms: int
    width: int
    height: int
    fps: float
    https_port: int
    code_needed: bool
    has_lights: bool
    has_horn: bool


class Battery(Struct, frozen=True):
    """`share` is the charge that is left, 0 to 1, by voltage."""

    volts: float
    amps: float
    share: float
    low: bool


class Range(Struct, frozen=True):
    """One range sensor. `bearing_deg` 0 is ahead, + is left.

    `range_m` is None for "no target", `age_s` before the first measurement. `state` is
    "ok", or says in words what is wrong; range and age are then of the last good one.
    """

    name: str
    bearing_deg: float
    range_m: float | None
    age_s: float | None
    state: str = "ok"


class Stop(Struct, frozen=True):
    """Why the car stands, and who can make it go on: `clears` says how.

    cause: a value of gate.Cause. clears: "neutral" (let go, then drive),
    "resume" (the driver's Go on), "grown_up" (a grown-up's Go on).
    """

    cause: str
    clears: str
    by: str = ""


class State(_Down, tag="state", frozen=True):
    """10 Hz and on change. `role`: "driver" or "watching"."""

    seq: int
    clock_us: int
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


class Pong(_Down, tag="pong", frozen=True):
    """Echoes seq and t of the Ping; `clock_us` is the car's clock then."""

    seq: int
    t: float
    clock_us: int


class Error(_Down, tag="error", frozen=True):
    """What was refused, its value, the limit, and what to do next."""

    what: str
    value: str = ""
    limit: str = ""
    next: str = ""


Downward = Welcome | State | Pong | Error
_encoder = msgspec.json.Encoder()


def encode_downward(message: Downward) -> str:
    """The text frame of a message to the browser."""
    return _encoder.encode(message).decode()


# --- /ws/video, car -> browser ------------------------------------------------
#
#    0        1        2        3        4                 8
#    +--------+--------+--------+--------+-----------------+
#    | version| kind   | flags  | 0      | sequence     u32|
#    +--------+--------+--------+--------+-----------------+
#    | capture time, us u64              | payload len  u32|  20 bytes
#    +-----------------------------------+-----------------+
# kind 1: one access unit, Annex B. flags bit 0: key frame (SPS and PPS in front).
# The browser may send one text frame back: "key" (its decoder lost its place).

VIDEO_HEADER = struct.Struct("<BBBxIQI")
KIND_ACCESS_UNIT = 1
FLAG_KEY = 1


class VideoHeader(NamedTuple):
    """The fields of a /ws/video header; `sequence` wraps at 2**32."""

    key: bool
    sequence: int
    capture_us: int
    length: int


def pack_video(key: bool, sequence: int, capture_us: int, unit: bytes) -> bytes:
    """One frame of /ws/video: made once, shared by all viewers."""
    flags = FLAG_KEY if key else 0
    head = VIDEO_HEADER.pack(
        VERSION, KIND_ACCESS_UNIT, flags, sequence & 0xFFFFFFFF, capture_us, len(unit)
    )
    return head + unit


def parse_video(frame: bytes) -> tuple[VideoHeader, bytes]:
    """The header and access unit of one frame. Raises WireError."""
    if len(frame) < VIDEO_HEADER.size:
        raise WireError("video frame cut", len(frame), f">= {VIDEO_HEADER.size} bytes")
    version, kind, flags, sequence, capture_us, length = VIDEO_HEADER.unpack_from(frame)
    if version != VERSION:
        raise WireError("wrong version", version, str(VERSION))
    if kind != KIND_ACCESS_UNIT:
        raise WireError("unknown video kind", kind, str(KIND_ACCESS_UNIT))
    if length != len(frame) - VIDEO_HEADER.size:
        left = len(frame) - VIDEO_HEADER.size
        raise WireError("video frame length", length, f"{left} bytes")
    header = VideoHeader(bool(flags & FLAG_KEY), sequence, capture_us, length)
    return header, frame[VIDEO_HEADER.size :]


# --- camera process -> run ----------------------------------------------------
#
#    | payload length u32 | kind u8 | flags u8 | 0 u16 | capture time, us u64 |
# 16 bytes, then the access unit. kind and flags as on /ws/video.

RECORD_HEADER = struct.Struct("<IBBHQ")


class Record(NamedTuple):
    """One access unit of a camera process."""

    key: bool
    capture_us: int
    unit: bytes


def pack_record(key: bool, capture_us: int, unit: bytes) -> bytes:
    """One record on a camera process's stdout."""
    flags = FLAG_KEY if key else 0
    return RECORD_HEADER.pack(len(unit), KIND_ACCESS_UNIT, flags, 0, capture_us) + unit


def parse_record_header(head: bytes) -> tuple[int, bool, int]:
    """(payload length, key, capture_us) of a 16-byte header. Raises WireError."""
    length, kind, flags, zero, capture_us = RECORD_HEADER.unpack(head)
    if kind != KIND_ACCESS_UNIT or zero or flags & ~FLAG_KEY:
        raise WireError("not a camera record", head.hex(), "kind 1, flags 0 or 1")
    if not 0 < length <= UNIT_MAX_BYTES:
        raise WireError("access unit length", length, f"1 to {UNIT_MAX_BYTES} bytes")
    return length, bool(flags & FLAG_KEY), capture_us


# --- run <-> wheels, Unix SEQPACKET -------------------------------------------
#
# setpoint, 32 bytes:
#    | version u8 | kind 1 u8 | motors u8 | 0 | seq u32 | deadline, ns u64 | 4 x f32 |
# answer, 24 bytes:
#    | version u8 | kind 2 u8 | status u8 | reason u8 | seq u32 | now, ns u64 | 0 u64 |
# Duties are -1..1 in the profile's order of motors; unused ones are 0. A setpoint
# is applied only until its deadline, which is at most 150 ms ahead.

MOTORS_MAX = 4
SETPOINT = struct.Struct("<BBBxIQ4f")
ANSWER = struct.Struct("<BBBBIQQ")
KIND_SETPOINT = 1
KIND_ANSWER = 2


class Status(enum.IntEnum):
    """What `wheels` did with a setpoint, or did by itself (STOPPED)."""

    APPLIED = 0
    REFUSED = 1
    STOPPED = 2


class WheelsReason(enum.IntEnum):
    """Why `wheels` refused or stopped."""

    NONE = 0
    START = 1
    DEADLINE = 2
    CLOSED = 3
    BAD_MESSAGE = 4
    EXIT = 5
    PINS_SILENT = 6
    PINS_LOST = 7
    PAST = 8
    TOO_FAR_AHEAD = 9
    ZERO_FIRST = 10
    SUPERSEDED = 11


class Setpoint(NamedTuple):
    """Duties in -1..1 for each motor until `deadline_ns` (CLOCK_MONOTONIC)."""

    seq: int
    deadline_ns: int
    duties: tuple[float, ...]


class Answer(NamedTuple):
    """What `wheels` says of setpoint `seq`."""

    status: Status
    reason: WheelsReason
    seq: int
    now_ns: int


def pack_setpoint(setpoint: Setpoint) -> bytes:
    """The 32 bytes of a setpoint."""
    duties = (*setpoint.duties, *(0.0,) * (MOTORS_MAX - len(setpoint.duties)))
    return SETPOINT.pack(
        VERSION, KIND_SETPOINT, len(setpoint.duties),
        setpoint.seq & 0xFFFFFFFF, setpoint.deadline_ns, *duties,
    )  # fmt: skip


def parse_setpoint(packet: bytes) -> Setpoint:
    """A setpoint as `wheels` takes it. Raises WireError."""
    if len(packet) != SETPOINT.size:
        raise WireError("setpoint length", len(packet), f"{SETPOINT.size} bytes")
    version, kind, motors, seq, deadline_ns, *duties = SETPOINT.unpack(packet)
    if version != VERSION or kind != KIND_SETPOINT:
        raise WireError("not a setpoint", (version, kind), f"{(VERSION, 1)}")
    if not 1 <= motors <= MOTORS_MAX:
        raise WireError("motors", motors, f"1 to {MOTORS_MAX}")
    for duty in duties:
        if not -1.0 <= duty <= 1.0:  # NaN too
            raise WireError("duty", duty, "-1 to 1")
    return Setpoint(seq, deadline_ns, tuple(duties[:motors]))


def pack_answer(answer: Answer) -> bytes:
    """The 24 bytes of an answer."""
    return ANSWER.pack(
        VERSION, KIND_ANSWER, answer.status, answer.reason,
        answer.seq & 0xFFFFFFFF, answer.now_ns, 0,
    )  # fmt: skip


def parse_answer(packet: bytes) -> Answer:
    """An answer as `run` takes it. Raises WireError."""
    if len(packet) != ANSWER.size:
        raise WireError("answer length", len(packet), f"{ANSWER.size} bytes")
    version, kind, status, reason, seq, now_ns, _ = ANSWER.unpack(packet)
    if version != VERSION or kind != KIND_ANSWER:
        raise WireError("not an answer", (version, kind), f"{(VERSION, 2)}")
    try:
        return Answer(Status(status), WheelsReason(reason), seq, now_ns)
    except ValueError as fault:
        raise WireError("answer", (status, reason), str(fault)) from None

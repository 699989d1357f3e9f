"""Topics of a recording, and their messages; codec.py converts these to and from bytes. Pure.

    topic          message                     recorded
    /recording     About                       repeatedly, to survive damage
    /camera        Picture (CompressedVideo)   every access unit, as received
    /range/NAME    Reading                     every measurement; every change of state
    /points/NAME   Points (PointCloud)         the same, for viewers
    /tf            Transforms (FrameTransforms) with /recording: positions of the parts
    /camera_info   Calibration                 with /recording, if the intrinsics are known
    /servo/NAME    Servo                       every step of a servo that does not steer
    /battery       Battery                     every measurement
    /wish          WishIn                      every `drive` of a browser
    /step          Step                        every run of the gate
    /plot          Plot (JointState)           its figures ten times a second, for viewers
    /driver        Turn                        every start and end of a driver's turn
    /lights        Lights                      every change, including blinking
    /buttons       Buttons                     every change of lit buttons or game
    /health        Health                      once a second
    /latency       Latency                     every `report` of a page
    /stints        Stints                      once, last: the drivers in this file
    /event         Event (foxglove.Log)        stops with causes, drivers, recorder
    /mark          Event (foxglove.Log)        moments bookmarked by users

Protobuf topics use Foxglove's well-known schemas, and /plot uses a message of ROS 2. The others are
JSON with a JSON Schema. Floats survive bit for bit: they are written as the shortest decimals that
restore them.

Times are UTC in ns. `log_ns` is the time the car received the data, `publish_ns` the time of the
event. They differ only for pictures, which are captured earlier. Both are CLOCK_MONOTONIC plus an
offset that is fixed when a recording begins, so setting the clock does not reorder messages.
"""

import math
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.drive import gate, guard, mixing
from fpvcar.recordings.mcap.calibration import Pinhole
from fpvcar.recordings.mcap.cloud import Point
from fpvcar.recordings.mcap.frames import Transform
from fpvcar.wire import telemetry

ABOUT, CAMERA, BATTERY, WISH, STEP = ("/recording", "/camera", "/battery", "/wish", "/step")
DRIVER, LIGHTS, BUTTONS, HEALTH, LATENCY = ("/driver", "/lights", "/buttons", "/health", "/latency")
EVENT, MARK, STINTS, PLOT = "/event", "/mark", "/stints", "/plot"
TRANSFORMS, CALIBRATION = "/tf", "/camera_info"
RANGE, POINTS, SERVO = "/range/", "/points/", "/servo/"
"""Prefixes, followed by the name of the sensor or servo."""
METADATA = "fpvcar"
"""Name of the file's metadata record: car, version, recording, utc_offset_ns, profile.

Duplicates /recording for programs that do not support that topic.
"""
VIDEO_CODING, FRAME_ID = "h264", "camera"
CAR_FRAME = "car"


class FormatError(ValueError):
    """Error: a message does not fit its topic. The text gives the reason."""


class About(Struct, frozen=True):
    """Description of the recording; `profile` is the whole profile as taken by profiles.parse.

    UTC is monotonic + utc_offset_ns in this recording.
    """

    car: str
    version: str
    recording: str
    segment: int
    utc_offset_ns: int
    profile: dict[str, Any]

    def parsed(self) -> config.Profile:
        """Parse the profile with its recorded limits. Raises config.ConfigError."""
        return profiles.parse(self.profile)


class Picture(Struct, frozen=True, gc=False):
    """Access unit in Annex B format; a key frame begins with its parameter sets."""

    capture_ns: int
    unit: bytes
    coding: str = VIDEO_CODING
    frame_id: str = FRAME_ID


class Event(NamedTuple):
    """Log line; `name` is the source ("gate", "mark", ...)."""

    time_ns: int
    level: int
    text: str
    name: str


INFO, WARNING, ERROR = 2, 3, 4
"""Severity levels defined by foxglove.Log."""
GATE, SEAT, RECORDER = "gate", "seat", "recorder"
"""Sources of events: stops and starts, drivers, recorder losses."""


class Reading(Struct, frozen=True):
    """Reading of one range sensor.

    `range_m` is None for "no target", or if `state` is not "ok". `state` then describes the fault.
    """

    bearing_deg: float
    range_m: float | None
    state: str = "ok"


class Servo(Struct, frozen=True):
    """Angle of a servo that does not steer; + is left or up."""

    deg: float


class Range(Struct, frozen=True):
    """Range sensor as the gate saw it: telemetry.Range, with its state in English."""

    name: str
    bearing_deg: float
    range_m: float | None
    age_s: float | None
    state: str = "ok"


class Battery(Struct, frozen=True):
    """Reading of the battery: Battery, with its state in English."""

    volts: float | None
    amps: float | None
    share: float | None
    low: bool
    age_s: float | None = None
    state: str = "ok"


class Points(NamedTuple):
    """Position of a reading around the car; empty if there was no target."""

    time_ns: int
    points: tuple[Point, ...]
    frame_id: str = CAR_FRAME


class Transforms(NamedTuple):
    """Positions of camera and sensors on the car."""

    time_ns: int
    transforms: tuple[Transform, ...]


class Calibration(NamedTuple):
    """How the camera maps space to pixels."""

    time_ns: int
    camera: Pinhole
    frame_id: str = FRAME_ID


class Plot(NamedTuple):
    """Figures of a moment by name, in the form that viewers plot unasked; NaN if unknown."""

    time_ns: int
    names: tuple[str, ...]
    values: tuple[float, ...]


class WishIn(Struct, frozen=True):
    """`drive` message as received.

    `verdict` is "fresh", "late", "stale", "old" or "not at the wheel"; only a fresh one moves the
    car. `t` is the browser's clock in ms, `seen` the car's clock in us as estimated by the page.
    """

    seq: int
    t: float
    throttle: float
    steer: float
    name: str
    verdict: str = "fresh"
    seen: int = 0


class Wish(Struct, frozen=True):
    """JSON form of gate.Wish; `received_s` None stands for -inf: never fresh."""

    throttle: float
    steer: float
    received_s: float | None


class Step(Struct, frozen=True, omit_defaults=True):
    """Gate run: all its inputs, then its outputs.

    `ranges` are the guard's inputs (empty if it is off). `free` is the guard's result as used by
    the gate: [ahead, back], both free unless `guard_mode` is "limit". `slew` is the state of
    mixing: [drive, steer, at_s]. Each step can therefore be replayed separately; the guard first
    needs six samples of a sensor.
    """

    now_ns: int
    limit: float
    latches: gate.Latches
    slew: mixing.Slew
    throttle: float
    steer: float
    reason: str
    after: gate.Latches
    duties: tuple[float, ...]
    wish: Wish | None = None
    picture_age_s: float | None = None
    fault: gate.Cause | None = None
    volts: float | None = None
    free: guard.Free = guard.Free()
    ranges: tuple[Range, ...] = ()
    guard_mode: str = "off"

    def wished(self) -> gate.Wish | None:
        """Return the wish in the form for gate.decide."""
        if self.wish is None:
            return None
        received_s = self.wish.received_s
        return gate.Wish(
            self.wish.throttle, self.wish.steer, -math.inf if received_s is None else received_s
        )

    def world(self) -> gate.World:
        """Return the world in the form for gate.decide."""
        return gate.World(self.picture_age_s, self.fault, self.limit, self.free)

    def decision(self) -> tuple[float, float, str, gate.Latches]:
        """Return the gate's decision: throttle, steer, reason, latches."""
        return (self.throttle, self.steer, self.reason, self.after)


def wish_of(wish: gate.Wish | None) -> Wish | None:
    """Convert the gate's wish for a Step."""
    if wish is None:
        return None
    finite = math.isfinite(wish.received_s)
    return Wish(wish.throttle, wish.steer, wish.received_s if finite else None)


class Turn(Struct, frozen=True):
    """Start of a driver's turn, or, with `name` None, its end."""

    name: str | None
    why: str = ""


class Lights(Struct, frozen=True):
    """Lit lights; indicators as at this moment of blinking."""

    head: bool
    reversing: bool = False
    left: bool = False
    right: bool = False


class Buttons(Struct, frozen=True):
    """Lit buttons by name, and the game state: a buttons.game.View."""

    lit: tuple[str, ...] = ()
    mode: str = "free"
    length: int = 0
    done: int = 0
    best: int = 0


class Health(Struct, frozen=True):
    """State of the parts as text ("ok"), and figures by name."""

    camera: str
    wheels: str
    board: str
    viewers: int = 0
    figures: dict[str, float] = {}
    faults: tuple[str, ...] = ()


def health_of(
    camera: str, wheels: str, board: str, viewers: int, computer: telemetry.Health
) -> Health:
    """Combine the states of the parts with the computer's health, converted to figures."""
    figures = {
        name: float(value)
        for name, value in msgspec.structs.asdict(computer).items()
        if isinstance(value, int | float)
    }
    return Health(camera, wheels, board, viewers, figures, tuple(map(str, computer.faults)))


class Latency(Struct, frozen=True):
    """Measurements of a page over the last second: ms, pictures a second.

    `lost` is the share of packets that the car had to resend.
    """

    name: str
    drives: bool
    path: str
    picture_ms: float | None = None
    link_ms: float | None = None
    fps: float = 0.0
    dropped: int = 0
    lost: float | None = None


class Mark(Struct, frozen=True):
    """Bookmarked moment; `t` is in seconds from the file's start."""

    t: float
    text: str


class Stint(Struct, frozen=True):
    """Driver's time at the wheel within one file, UTC.

    `name` is "" if the file does not contain it. `metres` are estimated from the throttle. `stops`
    are counted by cause.
    """

    from_ns: int
    to_ns: int
    name: str = ""
    metres: float = 0.0
    stops: dict[str, int] = {}


class Stints(Struct, frozen=True):
    """Driver stints of a file, so that a list need not read all of it. See driver_spans.py."""

    stints: tuple[Stint, ...] = ()


JSON_KINDS: dict[str, type[Struct]] = {
    ABOUT: About,
    BATTERY: Battery,
    WISH: WishIn,
    STEP: Step,
    DRIVER: Turn,
    LIGHTS: Lights,
    BUTTONS: Buttons,
    HEALTH: Health,
    LATENCY: Latency,
    STINTS: Stints,
}
NAMED_KINDS: dict[str, type[Struct]] = {RANGE: Reading, SERVO: Servo}
"""Kinds of JSON messages by the prefix of their topics."""
Message = (
    About
    | Picture
    | Event
    | Reading
    | Servo
    | Battery
    | WishIn
    | Step
    | Turn
    | Lights
    | Buttons
    | Health
    | Latency
    | Stints
    | Points
    | Transforms
    | Calibration
    | Plot
)

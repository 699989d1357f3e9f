"""What a recording says: its topics, and their messages to and from bytes. Pure.

    topic          message                     when
    /recording     About                       again and again: it survives damage
    /camera        Picture (CompressedVideo)   every access unit, as the camera gave it
    /range/NAME    Reading                     every measurement; every change of state
    /points/NAME   Points (PointCloud)         the same, for viewers that draw
    /tf            Transforms (FrameTransforms) with /recording: where parts are
    /battery       Battery                     every measurement
    /wish          WishIn                      every `drive` of a browser
    /step          Step                        every run of the gate
    /driver        Turn                        who sits down at the wheel and leaves it
    /lights        Lights                      every change, also of a blinking one
    /buttons       Buttons                     every change of what is lit and played
    /health        Health                      once a second
    /latency       Latency                     every `report` of a page
    /stints        Stints                      once, last: who drove in this file
    /event         Event (foxglove.Log)        stops and their reasons, who records
    /mark          Event (foxglove.Log)        what somebody wanted to find again

Protobuf topics have Foxglove's well-known schemas; the others are JSON with a JSON
Schema. Floats come back bit for bit: they are written as the shortest decimals that do.

Times are UTC in ns: `log_ns` when the car knew of it, `publish_ns` when it was so: a
picture's capture is earlier than what the car knew of it, all else is the same. Both
are CLOCK_MONOTONIC plus an offset that is fixed when a recording begins, so no clock
that is set moves one before another.
"""

import math
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.drive import gate, guard, mixing
from fpvcar.mcap import cloud, frames, protobuf
from fpvcar.mcap.cloud import Point
from fpvcar.mcap.frames import Transform
from fpvcar.wire import telemetry

ABOUT, CAMERA, BATTERY, WISH, STEP = ("/recording", "/camera", "/battery", "/wish", "/step")
DRIVER, LIGHTS, BUTTONS, HEALTH, LATENCY = ("/driver", "/lights", "/buttons", "/health", "/latency")
EVENT, MARK, STINTS = "/event", "/mark", "/stints"
TRANSFORMS = "/tf"
RANGE, POINTS = "/range/", "/points/"
"""The sensor's name follows."""
METADATA = "fpvcar"
"""Name of the file's metadata record: car, version, recording, utc_offset_ns, profile.
It says what /recording says, to tools that do not know that topic."""
VIDEO_CODING, FRAME_ID = "h264", "camera"
CAR_FRAME = "car"


class FormatError(ValueError):
    """Raised for a message that is not what its topic carries; the text says why."""


class About(Struct, frozen=True):
    """What was recorded. `profile` is the whole profile, as profiles.parse takes it.

    UTC is monotonic + utc_offset_ns, in this recording.
    """

    car: str
    version: str
    recording: str
    segment: int
    utc_offset_ns: int
    profile: dict[str, Any]

    def parsed(self) -> config.Profile:
        """Parses the profile, with the limits of then. Raises config.ConfigError."""
        return profiles.parse(self.profile)


class Picture(NamedTuple):
    """One access unit, Annex B; a key frame has its parameter sets in front."""

    capture_ns: int
    unit: bytes
    coding: str = VIDEO_CODING
    frame_id: str = FRAME_ID


class Event(NamedTuple):
    """A line of the log: `name` is the part that says it ("gate", "mark", ...)."""

    time_ns: int
    level: int
    text: str
    name: str


INFO, WARNING, ERROR = 2, 3, 4
"""Levels of foxglove.Log."""
GATE, SEAT, RECORDER = "gate", "seat", "recorder"
"""Who names an event: stops and starts, who drives, what was lost."""


class Reading(Struct, frozen=True):
    """A reading of one range sensor. `range_m` is None for "no target", and where
    `state` is not "ok" but says in words what is wrong."""

    bearing_deg: float
    range_m: float | None
    state: str = "ok"


class Points(NamedTuple):
    """Where a reading was, around the car; none where nothing was met."""

    time_ns: int
    points: tuple[Point, ...]
    frame_id: str = CAR_FRAME


class Transforms(NamedTuple):
    """Where parts are on the car."""

    time_ns: int
    transforms: tuple[Transform, ...]


class WishIn(Struct, frozen=True):
    """A `drive` as it came. `verdict` is "fresh", "late", "stale", "old" or "not at the
    wheel"; only a fresh one moves anything. `t` is the browser's clock in ms, `seen`
    the car's in us, as the page knew it."""

    seq: int
    t: float
    throttle: float
    steer: float
    name: str
    verdict: str = "fresh"
    seen: int = 0


class Wish(Struct, frozen=True):
    """A gate.Wish; `received_s` None is -inf: it is never fresh."""

    throttle: float
    steer: float
    received_s: float | None


class Step(Struct, frozen=True, omit_defaults=True):
    """One run of the gate: all that it consumed, then what came of it.

    `ranges` are those that the guard saw (none where it is off), `free` what the gate
    heard of it: [ahead, back], all free unless `guard_mode` is "limit". `slew` is what
    mixing remembered: [drive, steer, at_s]. With these each step can be run again by
    itself; the guard needs six samples of a sensor first.
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
    ranges: tuple[telemetry.Range, ...] = ()
    guard_mode: str = "off"

    def wished(self) -> gate.Wish | None:
        """The wish, as gate.decide takes it."""
        if self.wish is None:
            return None
        received_s = self.wish.received_s
        return gate.Wish(
            self.wish.throttle, self.wish.steer, -math.inf if received_s is None else received_s
        )

    def world(self) -> gate.World:
        """The world, as gate.decide takes it."""
        return gate.World(self.picture_age_s, self.fault, self.limit, self.free)

    def decision(self) -> tuple[float, float, str, gate.Latches]:
        """What gate.decide said: throttle, steer, reason, latches."""
        return (self.throttle, self.steer, self.reason, self.after)


def wish_of(wish: gate.Wish | None) -> Wish | None:
    """Converts the gate's wish for a Step."""
    if wish is None:
        return None
    finite = math.isfinite(wish.received_s)
    return Wish(wish.throttle, wish.steer, wish.received_s if finite else None)


class Turn(Struct, frozen=True):
    """Somebody sat down at the wheel, or (`name` None) nobody holds it now."""

    name: str | None
    why: str = ""


class Lights(Struct, frozen=True):
    """Which lights are lit; the indicators at this moment of their blinking."""

    head: bool
    reversing: bool = False
    left: bool = False
    right: bool = False


class Buttons(Struct, frozen=True):
    """Which buttons are lit, by name, and what is played: a buttons.game.View."""

    lit: tuple[str, ...] = ()
    mode: str = "free"
    length: int = 0
    done: int = 0
    best: int = 0


class Health(Struct, frozen=True):
    """How the parts are, in their words ("ok"), and figures by name."""

    camera: str
    wheels: str
    board: str
    viewers: int = 0
    figures: dict[str, float] = {}
    faults: tuple[str, ...] = ()


def health_of(
    camera: str, wheels: str, board: str, viewers: int, computer: telemetry.Health
) -> Health:
    """Joins the parts' words and what is known of the computer, as figures by name."""
    figures = {
        name: float(value)
        for name, value in msgspec.structs.asdict(computer).items()
        if isinstance(value, int | float)
    }
    return Health(camera, wheels, board, viewers, figures, computer.faults)


class Latency(Struct, frozen=True):
    """What a page measured over the last second: ms, pictures a second. `lost` is the
    share of its packets that the car had to send again."""

    name: str
    drives: bool
    path: str
    picture_ms: float | None = None
    link_ms: float | None = None
    fps: float = 0.0
    dropped: int = 0
    lost: float | None = None


class Stint(Struct, frozen=True):
    """Somebody's time at the wheel within one file, UTC. `name` is "" where the file
    does not say who; `metres` are reckoned from the throttle; `stops` are counted by
    cause."""

    from_ns: int
    to_ns: int
    name: str = ""
    metres: float = 0.0
    stops: dict[str, int] = {}


class Stints(Struct, frozen=True):
    """What a list shows of a file without reading all of it: see stints.py."""

    stints: tuple[Stint, ...] = ()


JSON_KINDS: dict[str, type[Struct]] = {
    ABOUT: About,
    BATTERY: telemetry.Battery,
    WISH: WishIn,
    STEP: Step,
    DRIVER: Turn,
    LIGHTS: Lights,
    BUTTONS: Buttons,
    HEALTH: Health,
    LATENCY: Latency,
    STINTS: Stints,
}
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    topic: msgspec.json.Decoder(kind) for topic, kind in JSON_KINDS.items()
}
_reading_decoder = msgspec.json.Decoder(Reading)
_encoder = msgspec.json.Encoder()

Message = (
    About
    | Picture
    | Event
    | Reading
    | telemetry.Battery
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
)


def encode(message: Message) -> bytes:
    """Encodes any message. A float that is not finite becomes null."""
    if isinstance(message, Picture):
        return protobuf.video(message.capture_ns, message.frame_id, message.unit, message.coding)
    if isinstance(message, Event):
        return protobuf.log(message.time_ns, message.level, message.text, message.name)
    if isinstance(message, Transforms):
        return frames.transforms(message.time_ns, message.transforms)
    if isinstance(message, Points):
        return cloud.cloud(message.time_ns, message.frame_id, message.points)
    return _encoder.encode(message)


def encode_json(value: object) -> bytes:
    """Encodes anything of ours as JSON."""
    return _encoder.encode(value)


def decode(topic: str, data: bytes) -> Message:
    """Decodes a message of one of our topics. Raises FormatError."""
    try:
        if topic == CAMERA:
            return _picture(data)
        if topic in (EVENT, MARK):
            return _event(data)
        if topic == TRANSFORMS:
            return Transforms(*frames.take_transforms(data))
        if topic.startswith(POINTS):
            return _points(data)
        decoder = _reading_decoder if topic.startswith(RANGE) else _decoders.get(topic)
        if decoder is None:
            raise FormatError(f"unknown topic {topic!r}")
        message: Message = decoder.decode(data)
        return message
    except (msgspec.DecodeError, UnicodeError, protobuf.ProtobufError) as fault:
        raise FormatError(f"{topic}: {fault}") from None


def _picture(data: bytes) -> Picture:
    found = dict(protobuf.fields(data))
    unit = found.get(3, b"")
    if isinstance(unit, int):
        raise protobuf.ProtobufError("a number where a picture was expected")
    return Picture(
        protobuf.take_timestamp(found.get(1, b"")),
        unit,
        protobuf.take_text(found.get(4, b"")),
        protobuf.take_text(found.get(2, b"")),
    )


def _event(data: bytes) -> Event:
    found = dict(protobuf.fields(data))
    level = found.get(2, 0)
    if isinstance(level, bytes):
        raise protobuf.ProtobufError("bytes where a level was expected")
    return Event(
        protobuf.take_timestamp(found.get(1, b"")),
        level,
        protobuf.take_text(found.get(3, b"")),
        protobuf.take_text(found.get(4, b"")),
    )


def _points(data: bytes) -> Points:
    found = dict(protobuf.fields(data))
    return Points(
        protobuf.take_timestamp(found.get(1, b"")),
        cloud.take_points(found.get(6, b"")),
        protobuf.take_text(found.get(2, b"")),
    )

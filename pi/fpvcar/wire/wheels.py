"""run <-> wheels, Unix SEQPACKET: binary, a setpoint and its answer.

setpoint, 32 bytes:

    | version u8 | kind 1 u8 | motors u8 | 0 | seq u32 | deadline, ns u64 | 4 x f32 |

setpoint with calibrated pulses of an ESC, 40 bytes; they hold as long as its duties:

    | version u8 | kind 5 u8 | as above .. | 2 x f32, us: neutral, dead band |

answer, 24 bytes:

    | version u8 | kind 2 u8 | status u8 | reason u8 | seq u32 | now, ns u64 | 0 u64 |

pin fault, 2 bytes and JSON; empty while the pins work; kind 6 for servos that do not steer:

    | version u8 | kind 3 u8 | Text, at most 1200 bytes |

angles of servos that do not steer, 28 bytes; they have no answer:

    | version u8 | kind 4 u8 | servos u8 | 0 | 6 x f32, degrees |

Duties are -1..1 in the profile's order of motors; unused ones are 0. A setpoint is applied only
until its deadline, which is at most 150 ms ahead.
"""

import enum
import math
import struct
from typing import NamedTuple

import msgspec

from fpvcar.runtime.texts import VERBATIM, Text
from fpvcar.wire.errors import VERSION, WireError

MOTORS_MAX = 4
SETPOINT = struct.Struct("<BBBxIQ4f")
ANSWER = struct.Struct("<BBBBIQQ")
KIND_SETPOINT = 1
KIND_ANSWER = 2
KIND_WHY = 3
KIND_ANGLES = 4
KIND_PULSES = 5
PULSES = struct.Struct("<2f")
KIND_SERVOS = 6
ANGLES_MOST = 6
ANGLES = struct.Struct(f"<BBBx{ANGLES_MOST}f")
WHY_MAX, WHY_SHORT = 1200, 190
"""Bytes of a pin fault, and characters of one that is cut."""
SETPOINT_MAX = SETPOINT.size + PULSES.size
PACKET_MAX = 2 + WHY_MAX
"""Longest packet of `wheels`."""


class Status(enum.IntEnum):
    """Result of a setpoint in `wheels`, or a stop of its own (STOPPED)."""

    APPLIED = 0
    REFUSED = 1
    STOPPED = 2


class WheelsReason(enum.IntEnum):
    """Reason for a refusal or stop by `wheels`."""

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


_STATUSES = dict(enumerate(Status))
_REASONS = dict(enumerate(WheelsReason))
_WHY = bytes((VERSION, KIND_WHY))
_SERVOS = bytes((VERSION, KIND_SERVOS))


class EscPulses(NamedTuple):
    """Calibrated pulses of an ESC: neutral, and the distance at which the wheels begin to turn."""

    neutral_us: float
    dead_band_us: float


class Setpoint(NamedTuple):
    """Duties in -1..1 for each motor until `deadline_ns` (CLOCK_MONOTONIC). `pulses` replace those
    of the profile for the same time."""

    seq: int
    deadline_ns: int
    duties: tuple[float, ...]
    pulses: EscPulses | None = None


class Answer(NamedTuple):
    """Answer of `wheels` to setpoint `seq`."""

    status: Status
    reason: WheelsReason
    seq: int
    now_ns: int


class ServosWhy(NamedTuple):
    """Fault of the servos that do not steer; None while they get their pulses."""

    text: Text | None


def pack_setpoint(setpoint: Setpoint) -> bytes:
    """Pack a setpoint into 32 bytes, or 40 with pulses."""
    duties, pulses = setpoint.duties, setpoint.pulses
    packet = SETPOINT.pack(
        VERSION,
        KIND_SETPOINT if pulses is None else KIND_PULSES,
        len(duties),
        setpoint.seq & 0xFFFFFFFF,
        setpoint.deadline_ns,
        *duties,
        *(0.0,) * (MOTORS_MAX - len(duties)),
    )
    return packet if pulses is None else packet + PULSES.pack(*pulses)


def parse_setpoint(packet: bytes) -> Setpoint:
    """Parse a setpoint in `wheels`. Raises WireError."""
    kinds = {SETPOINT.size: KIND_SETPOINT, SETPOINT_MAX: KIND_PULSES}
    if len(packet) not in kinds:
        raise WireError("setpoint length", len(packet), f"{SETPOINT.size} or {SETPOINT_MAX} bytes")
    version, kind, motors, seq, deadline_ns, *duties = SETPOINT.unpack_from(packet)
    if version != VERSION or kind != kinds[len(packet)]:
        raise WireError("not a setpoint", (version, kind), f"{(VERSION, kinds[len(packet)])}")
    if not 1 <= motors <= MOTORS_MAX:
        raise WireError("motors", motors, f"1 to {MOTORS_MAX}")
    for duty in duties:
        if not -1.0 <= duty <= 1.0:  # rejects NaN, too
            raise WireError("duty", duty, "-1 to 1")
    pulses = EscPulses(*PULSES.unpack_from(packet, SETPOINT.size)) if kind == KIND_PULSES else None
    return Setpoint(seq, deadline_ns, tuple(duties[:motors]), pulses)


def pack_angles(angles: tuple[float, ...]) -> bytes:
    """Pack the angles of servos that do not steer, in the profile's order."""
    rest = (0.0,) * (ANGLES_MOST - len(angles))
    return ANGLES.pack(VERSION, KIND_ANGLES, len(angles), *angles, *rest)


def parse_angles(packet: bytes) -> tuple[float, ...] | None:
    """Parse angles in `wheels`; None for any other packet, also a damaged one."""
    if len(packet) != ANGLES.size or packet[:2] != bytes((VERSION, KIND_ANGLES)):
        return None
    _, _, count, *angles = ANGLES.unpack(packet)
    valid = count <= ANGLES_MOST and all(map(math.isfinite, angles))
    return tuple(angles[:count]) if valid else None


def pack_answer(answer: Answer) -> bytes:
    """Pack an answer into 24 bytes."""
    return ANSWER.pack(
        VERSION,
        KIND_ANSWER,
        answer.status,
        answer.reason,
        answer.seq & 0xFFFFFFFF,
        answer.now_ns,
        0,
    )


def pack_why(text: Text | None) -> bytes:
    """Pack the error text of the pins' back end; one that is too long is cut, in English."""
    return _WHY + _whole(text)


def pack_servos(text: Text | None) -> bytes:
    """Pack the error text of the servos that do not steer."""
    return _SERVOS + _whole(text)


def _whole(text: Text | None) -> bytes:
    if text is None:
        return b""
    whole = msgspec.json.encode(text)
    if len(whole) > WHY_MAX:
        whole = msgspec.json.encode(VERBATIM(text=str(text)[:WHY_SHORT]))
    return whole


def parse_packet(packet: bytes) -> Answer | ServosWhy | Text | None:
    """Parse an answer, the servos' fault, or the text of a pin fault; None if the latter has
    ended. Raises WireError."""
    if packet.startswith(_SERVOS):
        return ServosWhy(_parse_text(packet))
    return _parse_text(packet) if packet.startswith(_WHY) else parse_answer(packet)


def _parse_text(packet: bytes) -> Text | None:
    if len(packet) == len(_WHY):
        return None
    try:
        return msgspec.json.decode(packet[len(_WHY) :], type=Text)
    except msgspec.DecodeError as fault:
        raise WireError("why", packet, str(fault)) from None


def parse_answer(packet: bytes) -> Answer:
    """Parse an answer in `run`. Raises WireError."""
    if len(packet) != ANSWER.size:
        raise WireError("answer length", len(packet), f"{ANSWER.size} bytes")
    version, kind, status, reason, seq, now_ns, _ = ANSWER.unpack(packet)
    if version != VERSION or kind != KIND_ANSWER:
        raise WireError("not an answer", (version, kind), f"{(VERSION, 2)}")
    if status not in _STATUSES or reason not in _REASONS:
        limit = f"{max(_STATUSES)}, {max(_REASONS)} at most"
        raise WireError("answer", (status, reason), limit)
    return Answer(_STATUSES[status], _REASONS[reason], seq, now_ns)

"""Binary messages: pictures, records of cameras, packets to the wheels."""

import math
from typing import Any

import msgspec

from fpvcar.runtime.texts import SAYS, VERBATIM, Text
from fpvcar.wire.camera import (
    DEPTH_HEADER,
    DEPTH_PNG_MAX_BYTES,
    RECORD_HEADER,
    pack_depth,
    pack_record,
)
from fpvcar.wire.video import UNIT_MAX_BYTES, pack_video
from fpvcar.wire.wheels import (
    ANSWER,
    SETPOINT,
    Answer,
    EscPulses,
    Setpoint,
    Status,
    WheelsReason,
    pack_answer,
    pack_setpoint,
    pack_why,
)

UNIT = bytes.fromhex("0000000165b8000004")


def video() -> dict[str, Any]:
    """Vectors of /ws/video, car -> browser."""
    good = [
        (True, 0, 0, UNIT),
        (False, 1, 90_000_123_456, b"\x00\x00\x01\x41\x9a"),
        (True, 2**32 - 1, 2**53 - 1, UNIT),
        (False, 5, 12, b""),
    ]
    frame = pack_video(True, 7, 9, UNIT)
    refused = [
        b"",
        frame[:19],
        frame[:-1],
        frame + b"\x00",
        b"\x02" + frame[1:],
        frame[:1] + b"\x02" + frame[2:],
    ]
    return {
        "good": [
            {
                "hex": pack_video(*one).hex(),
                "fields": {
                    "key": one[0],
                    "sequence": one[1],
                    "capture_us": one[2],
                    "length": len(one[3]),
                    "unit": one[3].hex(),
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }


def camera_record() -> dict[str, Any]:
    """Camera process -> run: whole records; `refused` are headers."""
    good = [(True, 90_000_123_456, UNIT), (False, 2**64 - 1, b"\x00")]
    pack = RECORD_HEADER.pack
    refused = [
        pack(0, 1, 0, 0, 5),
        pack(UNIT_MAX_BYTES + 1, 1, 0, 0, 5),
        pack(9, 2, 0, 0, 5),
        pack(9, 1, 2, 0, 5),
        pack(9, 1, 1, 1, 5),
        pack(2**32 - 1, 1, 1, 0, 5),
    ]
    return {
        "good": [
            {
                "hex": pack_record(*one).hex(),
                "fields": {"key": one[0], "capture_us": str(one[1]), "unit": one[2].hex()},
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }


def depth_record() -> dict[str, Any]:
    """Depth process -> run: whole records; `refused` are headers."""
    good = [(0.5, 90_000_123_456, b"png"), (math.inf, 2**64 - 1, b""), (0.0, 0, b"")]
    pack = DEPTH_HEADER.pack
    refused = [
        pack(DEPTH_PNG_MAX_BYTES + 1, 0.5, 1),
        pack(2**32 - 1, 0.5, 1),
        pack(3, -0.5, 1),
        pack(3, -math.inf, 1),
    ]
    return {
        "good": [
            {
                "hex": pack_depth(*one).hex(),
                "fields": {
                    "nearest_m": str(one[0]),
                    "capture_us": str(one[1]),
                    "length": len(one[2]),
                },
            }
            for one in good
        ],
        "blind": pack_depth(math.nan, 1, b"").hex(),
        "refused": [{"hex": one.hex()} for one in refused],
    }


def setpoints() -> dict[str, Any]:
    """Setpoint packets, run -> wheels."""
    good = [
        Setpoint(1, 123_456_789_012, (0.5, -0.25)),
        Setpoint(2**32 - 1, 2**64 - 1, (1.0, -1.0, 0.0, 0.125)),
        Setpoint(0, 0, (0.0,)),
        Setpoint(7, 123_456_789_012, (0.0, 0.5), EscPulses(1530.0, 62.5)),
    ]
    tuned = pack_setpoint(good[-1])
    first, pack = pack_setpoint(good[0]), SETPOINT.pack
    refused = [
        b"",
        first[:-1],
        first + b"\x00",
        tuned[:-1],
        tuned[: SETPOINT.size],
        tuned[:1] + b"\x01" + tuned[2:],
        b"\x02" + first[1:],
        first[:1] + b"\x02" + first[2:],
        pack(1, 1, 0, 1, 1, 0, 0, 0, 0),
        pack(1, 1, 5, 1, 1, 0, 0, 0, 0),
        pack(1, 1, 2, 1, 1, 1.5, 0, 0, 0),
        pack(1, 1, 2, 1, 1, 0, 0, 0, -2.0),
        pack(1, 1, 2, 1, 1, math.nan, 0, 0, 0),
        pack(1, 1, 2, 1, 1, math.inf, 0, 0, 0),
    ]
    return {
        "good": [
            {
                "hex": pack_setpoint(one).hex(),
                "fields": {
                    "seq": one.seq,
                    "deadline_ns": str(one.deadline_ns),
                    "duties": list(one.duties),
                    "pulses": one.pulses,
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }


def answers() -> dict[str, Any]:
    """Answer packets, wheels -> run."""
    good = [Answer(status, reason, 7, 99) for status in Status for reason in WheelsReason]
    first = pack_answer(good[0])
    refused = [
        b"",
        first[:-1],
        first + b"\x00",
        b"\x02" + first[1:],
        first[:1] + b"\x01" + first[2:],
        ANSWER.pack(1, 2, 3, 0, 7, 99, 0),
        ANSWER.pack(1, 2, 0, 99, 7, 99, 0),
    ]
    return {
        "good": [
            {
                "hex": pack_answer(one).hex(),
                "fields": {
                    "status": one.status.name,
                    "reason": one.reason.name,
                    "seq": one.seq,
                    "now_ns": str(one.now_ns),
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }


def whys() -> dict[str, Any]:
    """Packets with a reason, wheels -> run."""
    good = [
        None,
        SAYS(place="I2C bus 1", reason=Text("os_enoent", "No such file or directory")),
        VERBATIM(text="é"),
    ]
    refused = [b"\x01\x03\xff", b"\x01\x03no", b"\x01\x03{}", b"\x02\x03no", b"\x01\x04no"]
    return {
        "good": [{"hex": pack_why(one).hex(), "fields": msgspec.to_builtins(one)} for one in good],
        "refused": [{"hex": one.hex()} for one in refused],
    }


def wheels() -> dict[str, Any]:
    """Both ways of the socket between run and wheels."""
    return {"setpoint": setpoints(), "answer": answers(), "why": whys()}

"""Writes the golden vectors from wire.py:  .venv/bin/python tests/vectors/make.py

Python, JavaScript (and later C) tests read the same files. Run it only when a message
changes on purpose, and look at the difference: what it shows breaks older pages.
"""

import json
import math
from pathlib import Path
from typing import Any

import msgspec

from fpvcar import wire

HERE = Path(__file__).parent
CLIENT = "0f8fad5b-d9cb-469f-a165-70867728950e"
UNIT = bytes.fromhex("0000000165b8000004")

UP_GOOD: list[wire.Upward] = [
    wire.Hello(1, CLIENT),
    wire.Hello(1, "abcdefgh", "Zoë", "123456"),
    wire.Unlock("042137"),
    wire.Drive(0, 0.0, 0.0, 0.0),
    wire.Drive(7, 1234.5, 1.0, -1.0),
    wire.Drive(2**53 - 1, 1e13, -0.125, 0.5),
    wire.Take(),
    wire.Release(),
    wire.Estop(),
    wire.Resume(),
    wire.Lights(),
    wire.Lights(True),
    wire.Horn(True),
    wire.Limit(0.5),
    wire.Ping(3, 99.75),
    wire.Report("webcodecs", 12.5, 4.25, 29.9, 3),
    wire.Report("mse"),
]

UP_REFUSED: list[dict[str, Any]] = [
    {"kind": "hello", "v": 2, "client": CLIENT},
    {"kind": "hello", "v": 1, "client": "short"},
    {"kind": "hello", "v": 1, "client": "no spaces here"},
    {"kind": "hello", "v": 1, "client": CLIENT, "name": "n" * 33},
    {"kind": "unlock", "code": "1" * 33},
    {"kind": "unlock", "code": 123456},
    {"kind": "drive", "seq": 1, "t": 1.0, "throttle": 99.0, "steer": 0.0},
    {"kind": "drive", "seq": 1, "t": 1.0, "throttle": 1.0001, "steer": 0.0},
    {"kind": "drive", "seq": 1, "t": 1.0, "throttle": 0.0, "steer": -1.0001},
    {"kind": "drive", "seq": -1, "t": 1.0, "throttle": 0.0, "steer": 0.0},
    {"kind": "drive", "seq": 2**53, "t": 1.0, "throttle": 0.0, "steer": 0.0},
    {"kind": "drive", "seq": 1.5, "t": 1.0, "throttle": 0.0, "steer": 0.0},
    {"kind": "drive", "seq": 1, "t": -1.0, "throttle": 0.0, "steer": 0.0},
    {"kind": "drive", "seq": 1, "t": 1.0, "throttle": "fast", "steer": 0.0},
    {"kind": "drive", "seq": 1, "t": 1.0, "throttle": None, "steer": 0.0},
    {"kind": "drive", "seq": 1, "t": 1.0, "throttle": 0.0},
    {"kind": "drive", "seq": 1, "t": 1.0, "throttle": 0.0, "steer": 0.0, "gas": 1},
    {"kind": "estop", "now": True},
    {"kind": "lights", "head": "on"},
    {"kind": "horn"},
    {"kind": "limit", "throttle": 1.5},
    {"kind": "limit", "throttle": -0.1},
    {"kind": "ping", "seq": 3},
    {"kind": "report", "path": "w" * 17},
    {"kind": "report", "path": "mse", "fps": 1001.0},
]

UP_REFUSED_TEXT = [
    "", "{", "[]", "null", '"drive"', "{}", '{"kind":7}', '{"seq":1}',
    '{"kind":"drive","seq":1,"t":1,"throttle":NaN,"steer":0}',
    '{"kind":"drive","seq":1,"t":1,"throttle":1e999,"steer":0}',
    '{"kind":"take"}{"kind":"take"}',
]  # fmt: skip

STATE = wire.State(
    seq=41, clock_us=90_000_123_456, role="driver", may_drive=True, grown_up=False,
    driver="Zoë", seat_free=False, throttle=0.5, steer=-0.25, reason="driving",
    stop=None, limit=0.75, head_lights=True, viewers=2,
    battery=wire.Battery(7.4, 1.25, 0.6, False),
    ranges=(
        wire.Range("front", 0.0, 0.42, 0.01),
        wire.Range("left", 45.0, None, None, "does not answer"),
    ),
)  # fmt: skip
STOPPED = wire.State(
    seq=42, clock_us=90_000_223_456, role="watching", may_drive=False, grown_up=False,
    driver=None, seat_free=True, throttle=0.0, steer=0.0, reason="stopped",
    stop=wire.Stop("estop", "resume", "Ann"), limit=1.0, head_lights=False, viewers=1,
    wheels="no answer", camera="no picture",
)  # fmt: skip
DOWN_GOOD: list[wire.Downward] = [
    wire.Welcome(
        1, "Plague", "0.1.0", 90_000_000_000, 250, 40, 640, 480, 30.0, 8444,
        True, True, False,
    ),
    STATE,
    STOPPED,
    wire.Pong(3, 99.75, 2**53 - 1),
    wire.Error("wrong code", "", "", "look at the screen that started the car"),
    wire.Error("message refused", '{"kind":7}', "Expected `str`, got `int`"),
]  # fmt: skip
DOWN_REFUSED = [
    "", "{", "[]", "null", "7", "{}", '{"kind":7}',
    '{"kind":"pong","seq":1,"t":2.5}',
    '{"kind":"pong","seq":"1","t":2.5,"clock_us":3}',
    '{"kind":"error"}',
    '{"kind":"state","seq":1}',
]  # fmt: skip
DOWN_UNKNOWN = ['{"kind":"weather","rain":true}']


def drive_up() -> dict[str, Any]:
    """Browser -> car. `refused` entries with `fields` a page must not even send."""
    return {
        "good": [_text(message) for message in UP_GOOD],
        "refused": [
            {"text": json.dumps(fields), "fields": fields} for fields in UP_REFUSED
        ]
        + [{"text": text} for text in UP_REFUSED_TEXT]
        + [{"text": '{"kind":"take","pad":"' + "x" * wire.DRIVE_MAX_BYTES + '"}'}],
        "unknown": [{"text": '{"kind":"fly","height":3}'}],
    }


def drive_down() -> dict[str, Any]:
    """Car -> browser."""
    return {
        "good": [_text(message) for message in DOWN_GOOD],
        "refused": [{"text": text} for text in DOWN_REFUSED],
        "unknown": [{"text": text} for text in DOWN_UNKNOWN],
    }


def _text(message: wire.Upward | wire.Downward) -> dict[str, Any]:
    text = msgspec.json.encode(message).decode()
    return {"text": text, "fields": json.loads(text)}


def video() -> dict[str, Any]:
    """/ws/video."""
    good = [
        (True, 0, 0, UNIT),
        (False, 1, 90_000_123_456, b"\x00\x00\x01\x41\x9a"),
        (True, 2**32 - 1, 2**53 - 1, UNIT),
        (False, 5, 12, b""),
    ]
    frame = wire.pack_video(True, 7, 9, UNIT)
    refused = [
        b"", frame[:19], frame[:-1], frame + b"\x00",
        b"\x02" + frame[1:], frame[:1] + b"\x02" + frame[2:],
    ]  # fmt: skip
    return {
        "good": [
            {
                "hex": wire.pack_video(*one).hex(),
                "fields": {
                    "key": one[0], "sequence": one[1], "capture_us": one[2],
                    "length": len(one[3]), "unit": one[3].hex(),
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }  # fmt: skip


def camera_record() -> dict[str, Any]:
    """Camera process -> run: whole records; `refused` are headers."""
    good = [(True, 90_000_123_456, UNIT), (False, 2**64 - 1, b"\x00")]
    pack = wire.RECORD_HEADER.pack
    refused = [
        pack(0, 1, 0, 0, 5), pack(wire.UNIT_MAX_BYTES + 1, 1, 0, 0, 5),
        pack(9, 2, 0, 0, 5), pack(9, 1, 2, 0, 5), pack(9, 1, 1, 1, 5),
        pack(2**32 - 1, 1, 1, 0, 5),
    ]  # fmt: skip
    return {
        "good": [
            {
                "hex": wire.pack_record(*one).hex(),
                "fields": {
                    "key": one[0], "capture_us": str(one[1]), "unit": one[2].hex()
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }  # fmt: skip


def wheels() -> dict[str, Any]:
    """run <-> wheels."""
    setpoints = [
        wire.Setpoint(1, 123_456_789_012, (0.5, -0.25)),
        wire.Setpoint(2**32 - 1, 2**64 - 1, (1.0, -1.0, 0.0, 0.125)),
        wire.Setpoint(0, 0, (0.0,)),
    ]
    good = wire.pack_setpoint(setpoints[0])
    pack = wire.SETPOINT.pack
    bad_setpoints = [
        b"", good[:-1], good + b"\x00", b"\x02" + good[1:],
        good[:1] + b"\x02" + good[2:], pack(1, 1, 0, 1, 1, 0, 0, 0, 0),
        pack(1, 1, 5, 1, 1, 0, 0, 0, 0), pack(1, 1, 2, 1, 1, 1.5, 0, 0, 0),
        pack(1, 1, 2, 1, 1, 0, 0, 0, -2.0), pack(1, 1, 2, 1, 1, math.nan, 0, 0, 0),
        pack(1, 1, 2, 1, 1, math.inf, 0, 0, 0),
    ]  # fmt: skip
    answers = [
        wire.Answer(status, reason, 7, 99)
        for status in wire.Status
        for reason in wire.WheelsReason
    ]
    fine = wire.pack_answer(answers[0])
    bad_answers = [
        b"", fine[:-1], fine + b"\x00", b"\x02" + fine[1:],
        fine[:1] + b"\x01" + fine[2:], wire.ANSWER.pack(1, 2, 3, 0, 7, 99, 0),
        wire.ANSWER.pack(1, 2, 0, 99, 7, 99, 0),
    ]  # fmt: skip
    return {
        "setpoint": {
            "good": [
                {
                    "hex": wire.pack_setpoint(one).hex(),
                    "fields": {
                        "seq": one.seq, "deadline_ns": str(one.deadline_ns),
                        "duties": list(one.duties),
                    },
                }
                for one in setpoints
            ],
            "refused": [{"hex": one.hex()} for one in bad_setpoints],
        },
        "answer": {
            "good": [
                {
                    "hex": wire.pack_answer(one).hex(),
                    "fields": {
                        "status": one.status.name, "reason": one.reason.name,
                        "seq": one.seq, "now_ns": str(one.now_ns),
                    },
                }
                for one in answers
            ],
            "refused": [{"hex": one.hex()} for one in bad_answers],
        },
    }  # fmt: skip


FILES = {
    "drive_up": drive_up, "drive_down": drive_down, "video": video,
    "camera_record": camera_record, "wheels": wheels,
}  # fmt: skip
"""Each file and what makes it; the Python test compares, and never writes."""


def rendered(name: str) -> str:
    """The text of one file."""
    return json.dumps(FILES[name](), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in FILES:
        (HERE / f"{name}.json").write_text(rendered(name), encoding="utf-8")

"""Writes the golden vectors from fpvcar.wire:  .venv/bin/python tests/vectors/make.py

Python, JavaScript (and later C) tests read the same files. Run it only when a message
changes on purpose, and look at the difference: what it shows breaks older pages.
"""

import json
import math
from pathlib import Path
from typing import Any

import msgspec

from fpvcar import config, status
from fpvcar.wire import down, up
from fpvcar.wire.buttons import (
    BUTTONS_MAX,
    Button,
    ButtonsDownward,
    ButtonsHello,
    ButtonsUpward,
    Choose,
    Glow,
    Hold,
    Panel,
)
from fpvcar.wire.camera import (
    DEPTH_HEADER,
    DEPTH_PNG_MAX_BYTES,
    RECORD_HEADER,
    pack_depth,
    pack_record,
)
from fpvcar.wire.json_text import DRIVE_MAX_BYTES
from fpvcar.wire.video import UNIT_MAX_BYTES, pack_video
from fpvcar.wire.wheels import (
    ANSWER,
    SETPOINT,
    Answer,
    Setpoint,
    Status,
    WheelsReason,
    pack_answer,
    pack_setpoint,
    pack_why,
)

HERE = Path(__file__).parent
CLIENT = "0f8fad5b-d9cb-469f-a165-70867728950e"
UNIT = bytes.fromhex("0000000165b8000004")

UP_GOOD: list[up.Upward] = [
    up.Hello(1, CLIENT),
    up.Hello(1, "abcdefgh", "Zoë", "123456"),
    up.Unlock("042137"),
    up.Drive(0, 0.0, 0.0, 0.0),
    up.Drive(7, 1234.5, 1.0, -1.0, 90_000_123_456),
    up.Drive(2**53 - 1, 1e13, -0.125, 0.5),
    up.Take(),
    up.Release(),
    up.Estop(),
    up.Resume(),
    up.Lights(),
    up.Lights(True),
    up.Horn(True),
    up.Limit(0.5),
    up.Guard("warn"),
    up.Guard("limit"),
    up.SetPicture(config.Picture(width=1280, height=720, fps=25.0, flip="both")),
    up.SetPicture(config.Picture(exposure="sport", brightness=-0.5, night=True)),
    up.SetRecording(True),
    up.SetRecording(False),
    up.Keep(),
    up.Mark(),
    up.Mark("here it slipped"),
    up.Lock(),
    up.Who(),
    up.End(CLIENT),
    up.Ping(3, 99.75),
    up.Report("webcodecs", 12.5, 4.25, 29.9, 3),
    up.Report("mse"),
]

UP_REFUSED: list[dict[str, Any]] = [
    {"kind": "hello", "v": 2, "client": CLIENT},
    {"kind": "hello", "v": 1, "client": "short"},
    {"kind": "hello", "v": 1, "client": "no spaces here"},
    {"kind": "hello", "v": 1, "client": f"{CLIENT}\n"},
    {"kind": "hello", "v": 1, "client": CLIENT, "name": "n" * 33},
    {"kind": "hello", "v": 1, "client": CLIENT, "name": "a\nfpvcar.gate: driving"},
    {"kind": "hello", "v": 1, "client": CLIENT, "name": "\x1b[2J"},
    {"kind": "hello", "v": 1, "client": CLIENT, "name": "\u202egnirts"},
    {"kind": "mark", "text": "\x9b31m"},
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
    {"kind": "picture"},
    {"kind": "picture", "to": {"width": 641}},
    {"kind": "picture", "to": {"brightness": 1.5}},
    {"kind": "picture", "to": {"flip": "over"}},
    {"kind": "picture", "to": {"zoom": 2}},
    {"kind": "guard"},
    {"kind": "guard", "mode": "on"},
    {"kind": "guard", "mode": "limits"},
    {"kind": "guard", "mode": None},
    {"kind": "record"},
    {"kind": "record", "on": "yes"},
    {"kind": "keep", "seconds": 30},
    {"kind": "mark", "text": "m" * 65},
    {"kind": "mark", "text": None},
    {"kind": "lock", "now": True},
    {"kind": "end"},
    {"kind": "end", "id": "a b"},
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

STATE = down.State(
    seq=41, clock_us=90_000_123_456, role="driver", may_drive=True, grown_up=False,
    driver="Zoë", seat_free=False, throttle=0.5, steer=-0.25, reason="driving",
    stop=None, limit=0.75, head_lights=True, viewers=2,
    battery=status.Battery(7.4, 1.25, 0.6, False, 0.04),
    ranges=(
        status.Range("front", 0.0, 0.42, 0.01),
        status.Range("left", 45.0, None, None, "does not answer"),
    ),
    guard=status.Guarding("limit", 0.15, 0.35, 1.0, "front", ""),
    health=status.Health(("weak Wi-Fi: -84 dBm",), 48.3, 0, -84.0, 72.2, 9000.0, 210.5,
                       0.35, 3600.0, 0.8),
    recording=status.Recording(True, "ok", 61.5, 11_000.0, 1, 0, True),
    lost=0.004,
)  # fmt: skip
STOPPED = down.State(
    seq=42, clock_us=90_000_223_456, role="watching", may_drive=False, grown_up=False,
    driver=None, seat_free=True, throttle=0.0, steer=0.0, reason="stopped",
    stop=down.Stop("estop", "resume", "Ann"), limit=1.0, head_lights=False, viewers=1,
    wheels="no answer", camera="no picture",
    battery=status.Battery(
        None, None, None, False, None, "nobody acknowledges the read"
    ),
    guard=status.Guarding("off", 0.15), health=status.Health(),
    recording=status.Recording(True, "no folder", 3.0, None, 0, 17),
)  # fmt: skip
DOWN_GOOD: list[down.Downward] = [
    down.Welcome(
        1, "Plague", "0.1.0", 90_000_000_000, 250, 400, 40, 640, 480, 30.0, 8444,
        True, True, False, "9f86d081884c7d659a2feaa0c55ad015",
    ),
    STATE,
    STOPPED,
    down.Pong(3, 99.75, 2**53 - 1),
    down.Pass("EQAQpnLSCLKYxIsXzXTkPHvWhlBmIeqK"),
    down.Pass("EQAQpnLSCLKYxIsXzXTkPHvWhlBmIeqK", 3599.5),
    down.People((
        down.Person("9f86d081884c7d65", "Mum", "home network", True, False, True),
        down.Person("884c7d659a2feaa0", "Zoë", "elsewhere", False, False, False, 61.5),
        down.Person("7d659a2feaa0c55a", "Bo", "", False, False, False, 0.0, 60.5),
        down.Person("2feaa0c55a884c7d", "Eve", "elsewhere", False, False, False, 0.0,
                    0.0, True),
    )),
    down.People(()),
    down.Error("wrong code", "", "", "look at the screen that started the car"),
    down.Error("message refused", '{"kind":7}', "Expected `str`, got `int`"),
]  # fmt: skip
DOWN_REFUSED = [
    "", "{", "[]", "null", "7", "{}", '{"kind":7}',
    '{"kind":"pong","seq":1,"t":2.5}',
    '{"kind":"pong","seq":"1","t":2.5,"clock_us":3}',
    '{"kind":"error"}',
    '{"kind":"state","seq":1}',
    '{"kind":"pass"}',
    '{"kind":"people","people":[{"id":"1"}]}',
]  # fmt: skip
DOWN_UNKNOWN = ['{"kind":"weather","rain":true}']


BUTTONS_UP_GOOD: list[ButtonsUpward] = [
    ButtonsHello(1),
    Hold(0),
    Hold(0b101001),
    Hold(2**BUTTONS_MAX - 1),
    Choose("free"),
    Choose("rainbow"),
    Choose("game"),
]
BUTTONS_UP_REFUSED: list[dict[str, Any]] = [
    {"kind": "hello", "v": 2},
    {"kind": "hello"},
    {"kind": "hold", "held": -1},
    {"kind": "hold", "held": 2**BUTTONS_MAX},
    {"kind": "hold", "held": 1.5},
    {"kind": "hold", "held": "1"},
    {"kind": "hold"},
    {"kind": "hold", "held": 1, "by": "Ann"},
    {"kind": "choose", "mode": "sad"},
    {"kind": "choose", "mode": None},
]
BUTTONS_UP_UNKNOWN = [
    '{"kind":"drive","seq":1,"t":1,"throttle":1,"steer":0}',
    '{"kind":"estop"}',
    '{"kind":"sing"}',
]
BUTTONS_DOWN_GOOD: list[ButtonsDownward] = [
    Panel(
        1, "Plague",
        (Button("a", "red", "circle"), Button("b", "blue", "star")),
    ),
    Panel(1, "Plague", ()),
    Glow(41, 0b10, "turn", 3, 2, 7),
    Glow(0, 0, "free", 0, 0, 0),
    down.Error("hello first", "", "hello"),
]  # fmt: skip
BUTTONS_DOWN_REFUSED = [
    "", "[]", "{}", '{"kind":"panel","v":1,"car":"Plague"}',
    '{"kind":"panel","v":1,"car":"Plague","buttons":[{"name":"a"}]}',
    '{"kind":"glow","seq":1,"lit":64,"mode":"free","length":0,"done":0,"best":0}',
    '{"kind":"glow","seq":1,"lit":0,"length":0,"done":0,"best":0}',
    '{"kind":"error"}',
]  # fmt: skip


def buttons_up() -> dict[str, Any]:
    """/ws/buttons, browser -> car; what drives is unknown there."""
    return {
        "good": [_text(message) for message in BUTTONS_UP_GOOD],
        "refused": [
            {"text": json.dumps(fields), "fields": fields}
            for fields in BUTTONS_UP_REFUSED
        ]
        + [{"text": text} for text in UP_REFUSED_TEXT[:8]],
        "unknown": [{"text": text} for text in BUTTONS_UP_UNKNOWN],
    }


def buttons_down() -> dict[str, Any]:
    """/ws/buttons, car -> browser."""
    return {
        "good": [_text(message) for message in BUTTONS_DOWN_GOOD],
        "refused": [{"text": text} for text in BUTTONS_DOWN_REFUSED],
        "unknown": [{"text": text} for text in DOWN_UNKNOWN],
    }


def drive_up() -> dict[str, Any]:
    """Browser -> car. `refused` entries with `fields` a page must not even send."""
    return {
        "good": [_text(message) for message in UP_GOOD],
        "refused": [
            {"text": json.dumps(fields), "fields": fields} for fields in UP_REFUSED
        ]
        + [{"text": text} for text in UP_REFUSED_TEXT]
        + [{"text": '{"kind":"take","pad":"' + "x" * DRIVE_MAX_BYTES + '"}'}],
        "unknown": [{"text": '{"kind":"fly","height":3}'}],
    }


def drive_down() -> dict[str, Any]:
    """Car -> browser."""
    return {
        "good": [_text(message) for message in DOWN_GOOD],
        "refused": [{"text": text} for text in DOWN_REFUSED],
        "unknown": [{"text": text} for text in DOWN_UNKNOWN],
    }


def _text(
    message: up.Upward | down.Downward | ButtonsUpward | ButtonsDownward,
) -> dict[str, Any]:
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
    frame = pack_video(True, 7, 9, UNIT)
    refused = [
        b"", frame[:19], frame[:-1], frame + b"\x00",
        b"\x02" + frame[1:], frame[:1] + b"\x02" + frame[2:],
    ]  # fmt: skip
    return {
        "good": [
            {
                "hex": pack_video(*one).hex(),
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
    pack = RECORD_HEADER.pack
    refused = [
        pack(0, 1, 0, 0, 5), pack(UNIT_MAX_BYTES + 1, 1, 0, 0, 5),
        pack(9, 2, 0, 0, 5), pack(9, 1, 2, 0, 5), pack(9, 1, 1, 1, 5),
        pack(2**32 - 1, 1, 1, 0, 5),
    ]  # fmt: skip
    return {
        "good": [
            {
                "hex": pack_record(*one).hex(),
                "fields": {
                    "key": one[0], "capture_us": str(one[1]), "unit": one[2].hex()
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }  # fmt: skip


def depth_record() -> dict[str, Any]:
    """Depth process -> run: whole records; `refused` are headers."""
    good = [(0.5, 90_000_123_456, b"png"), (math.inf, 2**64 - 1, b""), (0.0, 0, b"")]
    pack = DEPTH_HEADER.pack
    refused = [
        pack(DEPTH_PNG_MAX_BYTES + 1, 0.5, 1), pack(2**32 - 1, 0.5, 1),
        pack(3, -0.5, 1), pack(3, -math.inf, 1),
    ]  # fmt: skip
    return {
        "good": [
            {
                "hex": pack_depth(*one).hex(),
                "fields": {
                    "nearest_m": str(one[0]), "capture_us": str(one[1]),
                    "length": len(one[2]),
                },
            }
            for one in good
        ],
        "blind": pack_depth(math.nan, 1, b"").hex(),
        "refused": [{"hex": one.hex()} for one in refused],
    }  # fmt: skip


def setpoints() -> dict[str, Any]:
    """run -> wheels."""
    good = [
        Setpoint(1, 123_456_789_012, (0.5, -0.25)),
        Setpoint(2**32 - 1, 2**64 - 1, (1.0, -1.0, 0.0, 0.125)),
        Setpoint(0, 0, (0.0,)),
    ]
    first, pack = pack_setpoint(good[0]), SETPOINT.pack
    refused = [
        b"", first[:-1], first + b"\x00", b"\x02" + first[1:],
        first[:1] + b"\x02" + first[2:], pack(1, 1, 0, 1, 1, 0, 0, 0, 0),
        pack(1, 1, 5, 1, 1, 0, 0, 0, 0), pack(1, 1, 2, 1, 1, 1.5, 0, 0, 0),
        pack(1, 1, 2, 1, 1, 0, 0, 0, -2.0), pack(1, 1, 2, 1, 1, math.nan, 0, 0, 0),
        pack(1, 1, 2, 1, 1, math.inf, 0, 0, 0),
    ]  # fmt: skip
    return {
        "good": [
            {
                "hex": pack_setpoint(one).hex(),
                "fields": {
                    "seq": one.seq, "deadline_ns": str(one.deadline_ns),
                    "duties": list(one.duties),
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }  # fmt: skip


def answers() -> dict[str, Any]:
    """wheels -> run."""
    good = [
        Answer(status, reason, 7, 99) for status in Status for reason in WheelsReason
    ]
    first = pack_answer(good[0])
    refused = [
        b"", first[:-1], first + b"\x00", b"\x02" + first[1:],
        first[:1] + b"\x01" + first[2:], ANSWER.pack(1, 2, 3, 0, 7, 99, 0),
        ANSWER.pack(1, 2, 0, 99, 7, 99, 0),
    ]  # fmt: skip
    return {
        "good": [
            {
                "hex": pack_answer(one).hex(),
                "fields": {
                    "status": one.status.name, "reason": one.reason.name,
                    "seq": one.seq, "now_ns": str(one.now_ns),
                },
            }
            for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }  # fmt: skip


def whys() -> dict[str, Any]:
    """wheels -> run, too."""
    good = ["", "I2C bus 1: no such file; enable I2C", "é"]
    refused = [b"\x01\x03\xff", b"\x02\x03no", b"\x01\x04no"]
    return {
        "good": [
            {"hex": pack_why(one).hex(), "fields": {"words": one}} for one in good
        ],
        "refused": [{"hex": one.hex()} for one in refused],
    }


def wheels() -> dict[str, Any]:
    """Both ways of the socket between run and wheels."""
    return {"setpoint": setpoints(), "answer": answers(), "why": whys()}


FILES = {
    "drive_up": drive_up, "drive_down": drive_down, "video": video,
    "camera_record": camera_record, "depth_record": depth_record, "wheels": wheels,
    "buttons_up": buttons_up, "buttons_down": buttons_down,
}  # fmt: skip
"""Each file and what makes it; the Python test compares, and never writes."""


def rendered(name: str) -> str:
    """The text of one file."""
    return json.dumps(FILES[name](), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in FILES:
        (HERE / f"{name}.json").write_text(rendered(name), encoding="utf-8")

"""JSON messages between a page and the car."""

import json
from typing import Any

import msgspec

from fpvcar import config
from fpvcar.wire import down, telemetry, up
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
from fpvcar.wire.json_text import DRIVE_MAX_BYTES

CLIENT = "0f8fad5b-d9cb-469f-a165-70867728950e"

UP_GOOD: list[up.Upward] = [
    up.Hello(1, CLIENT),
    up.Hello(1, "abcdefgh", "Zoë", "123456"),
    up.Name("Blue Fox (phone)"),
    up.Name(""),
    up.NameCar("Blitz"),
    up.Unlock("042137"),
    up.Drive(0, 0.0, 0.0, 0.0),
    up.Drive(7, 1234.5, 1.0, -1.0, 90_000_123_456),
    up.Drive(2**53 - 1, 1e13, -0.125, 0.5),
    up.Take(),
    up.Release(),
    up.Ask(),
    up.Answer("9f86d081884c7d659a2feaa0c55ad015", True),
    up.Estop(),
    up.Resume(),
    up.Lights(),
    up.Lights(True),
    up.Limit(0.5),
    up.Guard("warn"),
    up.Guard("limit"),
    up.SetPicture(config.Picture(width=1280, height=720, fps=25.0, flip="both")),
    up.SetPicture(config.Picture(exposure="sport", brightness=-0.5, night=True)),
    up.View("rear"),
    up.View("", shown=False),
    up.SetIntercom(True),
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
    {"kind": "name"},
    {"kind": "name", "name": "n" * 33},
    {"kind": "name", "name": "a\nfpvcar.gate: driving"},
    {"kind": "car_name"},
    {"kind": "car_name", "name": "n" * 257},
    {"kind": "ask", "now": True},
    {"kind": "intercom"},
    {"kind": "answer", "id": "a b", "give": True},
    {"kind": "answer", "id": CLIENT, "give": "yes"},
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
    "",
    "{",
    "[]",
    "null",
    '"drive"',
    "{}",
    '{"kind":7}',
    '{"seq":1}',
    '{"kind":"drive","seq":1,"t":1,"throttle":NaN,"steer":0}',
    '{"kind":"drive","seq":1,"t":1,"throttle":1e999,"steer":0}',
    '{"kind":"take"}{"kind":"take"}',
]

STATE = down.State(
    seq=41,
    clock_us=90_000_123_456,
    nonce=2**52,
    role="driver",
    may_drive=True,
    grown_up=False,
    driver="Zoë",
    seat_free=False,
    throttle=0.5,
    steer=-0.25,
    reason="driving",
    stop=None,
    limit=0.75,
    head_lights=True,
    viewers=2,
    battery=telemetry.Battery(7.4, 1.25, 0.6, False, 0.04),
    ranges=(
        telemetry.Range("front", 0.0, 0.42, 0.01),
        telemetry.Range("left", 45.0, None, None, "does not answer"),
    ),
    guard=telemetry.Guarding("limit", 0.15, 0.35, 1.0, "front", ""),
    health=telemetry.Health(
        ("weak Wi-Fi: -84 dBm",),
        48.3,
        0,
        -84.0,
        72.2,
        9000.0,
        210.5,
        0.35,
        3600.0,
        0.8,
        ("weak_wifi",),
    ),
    recording=telemetry.Recording(True, "ok", 61.5, 11_000.0, 1, 0, True),
    lost=0.004,
    wait_s=10.0,
    asking=down.Asking("asks", 29.5, "9f86d081884c7d659a2feaa0c55ad015", "Mia"),
)
STOPPED = down.State(
    seq=42,
    clock_us=90_000_223_456,
    nonce=1,
    role="watching",
    may_drive=False,
    grown_up=False,
    driver=None,
    seat_free=True,
    throttle=0.0,
    steer=0.0,
    reason="stopped",
    stop=down.Stop("estop", "resume", "Ann"),
    limit=1.0,
    head_lights=False,
    viewers=1,
    wheels="no answer",
    camera="no picture",
    battery=telemetry.Battery(None, None, None, False, None, "nobody acknowledges the read"),
    guard=telemetry.Guarding("off", 0.15),
    health=telemetry.Health(),
    recording=telemetry.Recording(True, "no folder", 3.0, None, 0, 17),
    asking=down.Asking("later", 12.5),
)
DOWN_GOOD: list[down.Downward] = [
    down.Welcome(
        1,
        "Plague",
        "0.1.0",
        90_000_000_000,
        250,
        400,
        40,
        200,
        640,
        480,
        30.0,
        8444,
        True,
        True,
        "9f86d081884c7d659a2feaa0c55ad015",
        cameras=("rear",),
        has_intercom=True,
    ),
    STATE,
    STOPPED,
    down.CarName("Blitz"),
    down.Pong(3, 99.75, 2**53 - 1, 2**51 + 1),
    down.Pass("EQAQpnLSCLKYxIsXzXTkPHvWhlBmIeqK"),
    down.Pass("EQAQpnLSCLKYxIsXzXTkPHvWhlBmIeqK", 3599.5),
    down.People(
        (
            down.Person("9f86d081884c7d65", "Mum", "home network", True, False, True),
            down.Person("884c7d659a2feaa0", "Zoë", "elsewhere", False, False, False, 61.5),
            down.Person("7d659a2feaa0c55a", "Bo", "", False, False, False, 0.0, 60.5),
            down.Person(
                "2feaa0c55a884c7d", "Eve", "elsewhere", False, False, False, 0.0, 0.0, True
            ),
        )
    ),
    down.People((), "No space left on device"),
    down.Error("wrong code", "", "", "look at the screen that started the car", "wrong_code"),
    down.Error(
        "Zoë has the wheel", "take", "", "ask Zoë to give it, or wait", "wheel_taken", "Zoë", 7.5
    ),
    down.Error("message refused", '{"kind":7}', "Expected `str`, got `int`"),
]
DOWN_REFUSED = [
    "",
    "{",
    "[]",
    "null",
    "7",
    "{}",
    '{"kind":7}',
    '{"kind":"pong","seq":1,"t":2.5}',
    '{"kind":"pong","seq":1,"t":2.5,"clock_us":3}',
    '{"kind":"pong","seq":"1","t":2.5,"clock_us":3,"nonce":4}',
    '{"kind":"error"}',
    '{"kind":"state","seq":1}',
    '{"kind":"pass"}',
    '{"kind":"car_name"}',
    '{"kind":"people","people":[{"id":"1"}]}',
]
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
    Panel(1, "Plague", (Button("a", "red", "circle"), Button("b", "blue", "star"))),
    Panel(1, "Plague", ()),
    Glow(41, 0b10, "turn", 3, 2, 7),
    Glow(0, 0, "free", 0, 0, 0),
    down.Error("hello first", "", "hello"),
]
BUTTONS_DOWN_REFUSED = [
    "",
    "[]",
    "{}",
    '{"kind":"panel","v":1,"car":"Plague"}',
    '{"kind":"panel","v":1,"car":"Plague","buttons":[{"name":"a"}]}',
    '{"kind":"glow","seq":1,"lit":64,"mode":"free","length":0,"done":0,"best":0}',
    '{"kind":"glow","seq":1,"lit":0,"length":0,"done":0,"best":0}',
    '{"kind":"error"}',
]


def buttons_up() -> dict[str, Any]:
    """Messages of /ws/buttons, browser -> car; driving messages are unknown there."""
    return {
        "good": [_text(message) for message in BUTTONS_UP_GOOD],
        "refused": [{"text": json.dumps(fields), "fields": fields} for fields in BUTTONS_UP_REFUSED]
        + [{"text": text} for text in UP_REFUSED_TEXT[:8]],
        "unknown": [{"text": text} for text in BUTTONS_UP_UNKNOWN],
    }


def buttons_down() -> dict[str, Any]:
    """Messages of /ws/buttons, car -> browser."""
    return {
        "good": [_text(message) for message in BUTTONS_DOWN_GOOD],
        "refused": [{"text": text} for text in BUTTONS_DOWN_REFUSED],
        "unknown": [{"text": text} for text in DOWN_UNKNOWN],
    }


def drive_up() -> dict[str, Any]:
    """Messages browser -> car. A page must not even send `refused` entries with `fields`."""
    return {
        "good": [_text(message) for message in UP_GOOD],
        "refused": [{"text": json.dumps(fields), "fields": fields} for fields in UP_REFUSED]
        + [{"text": text} for text in UP_REFUSED_TEXT]
        + [{"text": '{"kind":"take","pad":"' + "x" * DRIVE_MAX_BYTES + '"}'}],
        "unknown": [{"text": '{"kind":"fly","height":3}'}],
    }


def drive_down() -> dict[str, Any]:
    """Messages of the car to the browser."""
    return {
        "good": [_text(message) for message in DOWN_GOOD],
        "refused": [{"text": text} for text in DOWN_REFUSED],
        "unknown": [{"text": text} for text in DOWN_UNKNOWN],
    }


def _text(message: up.Upward | down.Downward | ButtonsUpward | ButtonsDownward) -> dict[str, Any]:
    text = msgspec.json.encode(message).decode()
    return {"text": text, "fields": json.loads(text)}

"""JSON messages between a page and the car: every bound of every field, from the types in
fpvcar.wire."""

import functools
import itertools
import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
from msgspec import inspect

from fpvcar.runtime.texts import Text
from fpvcar.wire import buttons, down, settings, telemetry, up
from fpvcar.wire.errors import VERSION
from fpvcar.wire.json_text import DRIVE_MAX_BYTES, Up

NASTY = (
    "a\nfpvcar.gate: driving",
    "\x1b[2J",
    "\x9b31m",
    "\u202egnirts",
    "a b",
    "no spaces!",
    "aaaaaaaa\n",
)
"""Texts that a pattern may forbid."""
DEEPEST = 3
"""Values in values, of those that nest in themselves."""
MALFORMED = ("", "{", "[]", "null", "7", '"drive"', "{}", '{"kind":7}', '{"seq":1}')
MALFORMED_UP = (
    '{"kind":"drive","seq":1,"t":1,"throttle":NaN,"steer":0}',
    '{"kind":"drive","seq":1,"t":1,"throttle":1e999,"steer":0}',
    '{"kind":"take"}{"kind":"take"}',
    '{"kind":"take","pad":"' + "x" * DRIVE_MAX_BYTES + '"}',
)
UNKNOWN = ('{"kind":"weather","rain":true}',)
WELCOME = down.Welcome(
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
    features=("buttons", "intercom", "servos"),
)
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
    settings=settings.SettingsState(head_lights=True),
    viewers=2,
    battery=telemetry.Battery(7.4, 1.25, 0.6, False, 0.04),
    ranges=(
        telemetry.Range("front", 0.0, 0.42, 0.01),
        telemetry.Range("left", 45.0, None, None, Text("echo_absent", "does not answer")),
    ),
    guard=telemetry.Guarding("limit", 0.15, 0.35, 1.0, "front", ""),
    health=telemetry.Health(
        (Text("weak_wifi", "weak Wi-Fi: {dbm} dBm", dbm=-84),),
        48.3,
        0,
        -84.0,
        72.2,
        9000.0,
        210.5,
        0.35,
        3600.0,
        0.8,
    ),
    recording=telemetry.Recording(True, "ok", 61.5, 11_000.0, 1, 0, True),
    lost=0.004,
    wait_s=10.0,
    asking=down.Asking("asks", 29.5, "9f86d081884c7d659a2feaa0c55ad015", "Mia"),
)


def values(kind: inspect.Type, sent: bool, depth: int = 0) -> Iterator[Any]:
    """Yield JSON values for a field, a good one first: its bounds, just outside, other types.

    Pages check text and whole numbers of the car less than Python does: any text, not negative.
    """
    inner = functools.partial(values, sent=sent, depth=depth + 1)
    match kind:
        case inspect.UnionType(types=types):
            yield from itertools.chain.from_iterable(inner(part) for part in types)
        case inspect.NoneType():
            yield None
        case inspect.StructType() | inspect.DataclassType():
            yield from structs(kind, sent, depth + 1)
        case inspect.VarTupleType(item_type=item):
            yield []
            yield from ([value] for value in inner(item))
            yield {}
        case inspect.DictType(value_type=item):
            yield {}
            yield from ({"name": value} for value in inner(item))
            yield []
        case inspect.LiteralType(values=literals):
            yield from (*literals, *((f"{literals[0]}s", 1) if sent else (1,)))
        case inspect.StrType(min_length=least, max_length=most, pattern=pattern):
            lengths = (least or 1, (least or 1) - 1, *((most, most + 1) if most else ()))
            yield from ("a" * length for length in lengths)
            yield from (*(NASTY if pattern else ("Zoë \N{FOX FACE}",)), 1)
        case inspect.AnyType():
            yield {"on": True}
        case inspect.BoolType():
            yield from (True, False, "yes", 1)
        case inspect.IntType(ge=low, le=le, lt=lt, multiple_of=step):
            high = le or (lt - 1 if lt else 2**53 - 1)
            outside = [(low or 0) - 1, high + (step or 1), (low or 0) + 1] if sent else [high + 1]
            yield from (low or 0, high, *(outside if le or lt else ()), 1.5, "1")
        case inspect.FloatType(ge=low, le=high) if low is not None and high is not None:
            # typing caches Meta(ge=0) and Meta(ge=0.0) as one: the first decides.
            yield from (float(low), float(high), low - 1e-4, high * 1.001, "1")
        case inspect.FloatType():
            yield from (0.5, 1e9, "1")


def structs(
    kind: inspect.StructType | inspect.DataclassType, sent: bool, depth: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield a value with its required fields, with all, with each field's values, without one
    field, and with one more."""
    first = {field.name: next(values(field.type, sent, DEEPEST)) for field in kind.fields}
    least = {field.name: first[field.name] for field in kind.fields if field.required}
    yield from (least, first)
    if depth < DEEPEST:
        for field in kind.fields:
            for value in values(field.type, sent, depth):
                yield least | {field.name: value}
            yield {name: value for name, value in least.items() if name != field.name}
    yield least | {"more": 1}


def messages(union: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the good and the refused messages of a union, as its decoder finds them."""
    found: dict[bool, dict[str, dict[str, Any]]] = {True: {}, False: {}}
    for message in get_args(union):
        info, sent = inspect.type_info(message), issubclass(message, Up)
        assert isinstance(info, inspect.StructType)
        for fields in structs(info, sent):
            message_fields = {"kind": info.tag, **fields}
            if "v" in fields and sent:
                message_fields["v"] = VERSION
            text = encoded(message_fields)
            good = decodes(text, message)
            found[good][text] = {"text": text}
            if sent and not good:
                found[good][text]["fields"] = message_fields
    return list(found[True].values()), list(found[False].values())


def decodes(text: str, kind: type) -> bool:
    """Return whether a text is such a message."""
    try:
        msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        return False
    return True


def encoded(value: Any) -> str:
    """Encode JSON as the car does."""
    return msgspec.json.encode(value).decode()


def drive_up() -> dict[str, Any]:
    """Messages browser -> car. A page must not even send `refused` entries with `fields`."""
    return upward(up.Upward)


def buttons_up() -> dict[str, Any]:
    """Messages of /ws/buttons, browser -> car; driving messages are unknown there."""
    found = upward(buttons.ButtonsUpward)
    found["unknown"] += [{"text": encoded(message)} for message in (up.Estop(), up.Take())]
    return found


def upward(union: Any) -> dict[str, Any]:
    """Return the vectors of a socket to the car."""
    good, refused = messages(union)
    version = {"text": encoded({"kind": "hello", "v": VERSION + 1, "client": "aaaaaaaa"})}
    others = [{"text": text} for text in (*MALFORMED, *MALFORMED_UP)]
    return {
        "good": good,
        "refused": [*refused, version, *others],
        "unknown": [{"text": text} for text in UNKNOWN],
    }


def drive_down() -> dict[str, Any]:
    """Messages of the car to the browser; the first ones are of a usual car."""
    found = downward(down.Downward)
    usual = [encoded(message) for message in (WELCOME, STATE)]
    found["good"][:0] = [{"text": text, "fields": json.loads(text)} for text in usual]
    return found


def buttons_down() -> dict[str, Any]:
    """Messages of /ws/buttons, car -> browser."""
    return downward(buttons.ButtonsDownward)


def downward(union: Any) -> dict[str, Any]:
    """Return the vectors of a socket to the page."""
    good, refused = messages(union)
    return {
        "good": good,
        "refused": [*refused, *({"text": text} for text in MALFORMED)],
        "unknown": [{"text": text} for text in UNKNOWN],
    }

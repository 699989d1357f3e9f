"""Generator of docs/reference/openapi.json and the tables of docs/reference/wire.md: `make docs`.

pi/fpvcar/wire/ -> each message: fields, types, bounds, units, defaults
http_api.py     -> the HTTP API
"""

import enum
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import inspect
from tools.docs import http_api
from tools.docs.written import filled

from fpvcar.config import PLAIN
from fpvcar.drive import gate
from fpvcar.wire import buttons, down, up

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "wire.md"
TABLE = "| field | type | bounds | unit | default |\n|---|---|---|---|---|"
ENDS = {
    "_us": "µs",
    "_ms": "ms",
    "_s": "s",
    "_m": "m",
    "_deg": "°",
    "_dbm": "dBm",
    "_mbps": "Mbit/s",
    "_mb": "MB",
}
"""Suffix of a field's name -> its unit."""
SHARES = ("limit", "throttle", "steer", "share", "lost", "ahead", "back", "brightness")
NAMES = {
    **dict.fromkeys(SHARES, "share"),
    "volts": "V",
    "amps": "A",
    "celsius": "°C",
    "fps": "1/s",
    "width": "pixels",
    "height": "pixels",
    "t": "ms",
    "seconds": "s",
}
"""Full name of a field -> its unit."""
NO_UNIT = set(
    "seq seen nonce v viewers https_port dropped kept held lit length done best "
    "throttled load".split()
)
"""Numbers that are counts, masks, ports or ids."""
WORDS: dict[type, str] = {
    inspect.AnyType: "value",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.StrType: "text",
    inspect.BoolType: "true or false",
}


def unit_of(name: str) -> str:
    """Return the unit of a number, by the name of its field."""
    ends = [end for end in ENDS if name.endswith(end)]
    return NAMES.get(name) or (ENDS[max(ends, key=len)] if ends else "")


def fields_of(kind: type) -> tuple[inspect.Field, ...]:
    """Return the fields of a message or value."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType | inspect.DataclassType)
    return info.fields


def values_in(*kinds: type) -> list[type]:
    """Return the structs inside messages, each once, also those inside of one another."""
    structs: dict[type, None] = {}

    def walk(kind: inspect.Type) -> None:
        match kind:
            case inspect.UnionType(types=types):
                for part in types:
                    walk(part)
            case (
                inspect.VarTupleType(item_type=inner)
                | inspect.ListType(item_type=inner)
                | inspect.DictType(value_type=inner)
            ):
                walk(inner)
            case (
                inspect.StructType(cls=cls, fields=fields)
                | inspect.DataclassType(cls=cls, fields=fields)
            ) if cls not in structs:
                structs[cls] = None
                for field in fields:
                    walk(field.type)

    for kind in kinds:
        for field in fields_of(kind):
            walk(field.type)
    return list(structs)


def numbers(kind: type) -> list[str]:
    """Return the names of the numeric fields."""
    number = inspect.IntType | inspect.FloatType
    return [field.name for field in fields_of(kind) if isinstance(bare(field.type), number)]


def type_cell(kind: inspect.Type) -> str:
    """Return the English word for a type."""
    match kind:
        case inspect.UnionType(types=types):
            return " or ".join(type_cell(member) for member in types)
        case inspect.NoneType():
            return "null"
        case inspect.StructType(cls=cls) | inspect.DataclassType(cls=cls):
            return f"[{cls.__name__}](#{cls.__name__.lower()}-value)"
        case inspect.VarTupleType(item_type=item):
            return f"list of {type_cell(item)}"
        case inspect.DictType(value_type=value):
            return f"object of {type_cell(value)}"
        case inspect.LiteralType():
            return "text"
    return WORDS[type(kind)]


def bare(kind: inspect.Type) -> inspect.Type:
    """Return a type without null."""
    if isinstance(kind, inspect.UnionType):
        return next(member for member in kind.types if not isinstance(member, inspect.NoneType))
    return kind


def bounds_cell(kind: inspect.Type) -> str:
    """Return the bounds of a value as text."""
    match bare(kind):
        case inspect.LiteralType(values=values):
            return ", ".join(f"`{value}`" for value in values)
        case inspect.StrType(min_length=least, max_length=most, pattern=pattern):
            length = f"{least or 0} to {most} characters" if most else ""
            plain = {PLAIN: "no control or format characters"}
            form = "" if pattern is None else plain.get(pattern, f"`{pattern}`")
            return "; ".join(filter(None, (length, form.replace(r"\Z", "$"))))
        case inspect.IntType() | inspect.FloatType() as number if number.ge is not None:
            high = number.le if number.lt is None else number.lt - 1
            step = f", a multiple of {number.multiple_of}" if number.multiple_of else ""
            return f"{number.ge:g} to {power(high)}{step}"
    return ""


def power(value: float | None) -> str:
    """Format a bound for people."""
    return "2^53 - 1" if value == 2**53 - 1 else f"{value:g}"


def default_cell(field: inspect.Field) -> str:
    """Return the default of a field as text."""
    if field.required:
        return "required"
    if field.default is msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default_factory()).decode()}`"
    return f"`{msgspec.json.encode(field.default).decode()}`"


def table(kind: type) -> str:
    """Return the table of a message's fields; "" for a message that has no fields."""
    rows = [
        f"| `{field.encode_name}` | {type_cell(field.type)} | "
        f"{bounds_cell(field.type)} | {unit_of(field.name)} | {default_cell(field)} |"
        for field in fields_of(kind)
    ]
    return "\n".join([TABLE, *rows]) if rows else ""


def meaning(kind: type) -> str:
    """Return the docstring with one line per paragraph."""
    paragraphs = (kind.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def section(kind: type, title: str) -> str:
    """Return a message's title, its meaning and its fields."""
    parts = (f"### {title}", meaning(kind), table(kind))
    return "\n\n".join(filter(None, parts))


def messages(union: Any) -> str:
    """Return all messages of one direction of a socket."""
    return "\n\n".join(section(message, f"`{tag_of(message)}`") for message in get_args(union))


def values(union: Any) -> str:
    """Return the values inside the messages of a union."""
    return "\n\n".join(
        section(kind, f"{kind.__name__} value") for kind in values_in(*get_args(union))
    )


def tag_of(kind: Any) -> str:
    """Return the `kind` of a message."""
    return str(kind.__struct_config__.tag)


def listed(values: type[enum.StrEnum] | tuple[str, ...]) -> str:
    """Return the values of an enumeration as text."""
    return ", ".join(f"`{value}`" for value in values)


def parts() -> dict[str, str]:
    """Return the generated parts of the page by key."""
    return {
        "drive up": messages(up.Upward),
        "drive down": messages(down.Downward),
        "values": values(up.Upward | down.Downward),
        "causes": f"- `stop.cause`: {listed(gate.Cause)}\n"
        f"- `reason`: {listed(get_args(gate.Reason))}",
        "buttons up": messages(buttons.ButtonsUpward),
        "buttons down": f"{messages(buttons.Panel | buttons.Glow)}\n\n"
        f"{values(buttons.Panel | buttons.Glow)}",
        "http": http_api.table(),
    }


def page() -> str:
    """Return the full page, up to date."""
    return filled(PAGE.read_text(encoding="utf-8"), parts())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    http_api.FILE.write_text(http_api.text(), encoding="utf-8")

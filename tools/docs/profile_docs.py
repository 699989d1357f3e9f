"""Generator of docs/reference/profile.md from the schema of a profile: `make docs`.

config/{schema,motors,network,...}.py -> types, bounds, defaults, the docstring under each key
"""

import ast
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from fpvcar.config import motors, network, schema, sensors, server, servos
from fpvcar.config.base import Gpio, LowGpio, PwmGpio, Section, Share
from fpvcar.config.schema import Profile

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "profile.md"
HEAD = """\
# Every key of a profile

<!-- Written by `make docs` from pi/fpvcar/config/*.py: change these. -->

A profile is a [TOML](https://toml.io) file, one a car. It says what the car has and on
which pins; [hardware/bench.toml](../../hardware/bench.toml) is a whole one. `[car]`,
and two of `[motors]`, are required: `drive` and `steer`, or, for a car with a motor a
side, `left` and `right`. Any other section may be left out,
and any key that has a default. An option of `fpvcar run`, `wheels` and `bench` changes
one key for one run, written as TOML: `--set 'server.max_viewers = 10'`.

A profile that is wrong is refused with the place, the value and what would do:

- an unknown key; the refusal names the nearest known one
- a value of another type or beyond its bounds
- a GPIO with two uses; so are the pins of an I2C bus that something is on, and those of
  a HAT's EEPROM (0 and 1)
- a servo that drives, motors of which only one hangs on a PCA9685, a servo on a PCA9685
  whose `pwm_hz` is that of motors
- pins in `pins.pwm` that have no PWM or share one, or that are one of two inputs of a motor
- more than six `servos`, one without or with both of `signal` and `channel`, two on one output,
  and one whose `rest_deg` or pulses are outside their limits
- two devices with one address on an I2C bus, and a second VL53L0X without `power`
- two range sensors with one name; a name has letters, digits and -, 24 at most
- two buttons with one colour or one shape; there are three to six buttons, or none
- battery voltages out of order: `empty_v` <= `nominal_v` <= `full_v`; an `empty_v` with
  which a motor's driver does not work
- a `camera.exposure` where a Pi's own camera is not the source
- a `server.base_path` without a "/" at both ends, or that the car itself has; an origin in
  `server.frame_ancestors` with a `*`, a path or without its scheme
- more `sensors.ultrasound` than take their turns within `guard.stale_s`

GPIOs are BCM numbers, 0 to 27. A *share* is 0 to 1 of what its meaning names. MB are
10^6 bytes.
"""
TABLE = "| key | type | bounds | unit | default | meaning |\n|---|---|---|---|---|---|"
UNITS = {
    "_hz": "Hz",
    "_per_s": "1/s",
    "_deg_s": "°/s",
    "_us": "us",
    "_s": "s",
    "_v": "V",
    "_volts": "V",
    "_ohm": "Ω",
    "_deg": "°",
    "_mps": "m/s",
    "_mps2": "m/s²",
    "_m": "m",
    "_mb": "MB",
    "celsius": "°C",
    "fps": "1/s",
    "bitrate": "bit/s",
    "width": "pixels",
    "height": "pixels",
    "trim": "share",
    "balance": "share",
}
"""Suffix of a key -> its unit, in the table."""
TYPES = {int: "integer", float: "number", bool: "true or false", str: "text"}


def meanings() -> dict[str, dict[str, str]]:
    """Return class -> key -> the docstring under it; the class's own docstring is under ""."""
    meanings: dict[str, dict[str, str]] = {}
    modules = (schema, motors, network, sensors, server, servos)
    trees = [ast.parse(inspect.getsource(module)) for module in modules]
    nodes = [node for tree in trees for node in tree.body]
    for section in (node for node in nodes if isinstance(node, ast.ClassDef)):
        meanings[section.name] = {"": ast.get_docstring(section) or ""}
        for field, below in zip(section.body, section.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=key)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    meanings[section.name][key] = " ".join(words.split())
    return meanings


MEANINGS = meanings()


def owner(section: type[Section], key: str) -> str:
    """Return the class that declares a key: the section's own, or a base class."""
    return next(base.__name__ for base in section.__mro__ if key in base.__annotations__)


def meaning(section: type[Section], key: str) -> str:
    """Return the meaning of a key. Raises KeyError for a key that has no docstring."""
    return MEANINGS[owner(section, key)][key]


def variants(hint: Any) -> list[type[Section]]:
    """Return the sections that a key may hold: one, several distinguished by a tag, or an empty
    list."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]


def fields(section: type[Section]) -> list[tuple[FieldInfo, Any]]:
    """Return the keys of a section, each with its annotation: its own, then inherited ones."""
    hints = get_type_hints(section, include_extras=True)
    owners = [base.__name__ for base in section.__mro__]
    keys = sorted(
        msgspec.structs.fields(section), key=lambda key: owners.index(owner(section, key.name))
    )
    return [(key, hints[key.name]) for key in keys]


def bare(hint: Any) -> tuple[Any, Meta]:
    """Return a type stripped of its bounds and None, and these bounds."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is Annotated:
        kind, *annotations = get_args(hint)
        return kind, next(part for part in annotations if isinstance(part, Meta))
    return hint, Meta()


def choices(kind: Any) -> tuple[str, ...]:
    """Return the permitted words of a text; () for any text."""
    return get_args(kind) if get_origin(kind) is Literal else ()


def type_cell(kind: Any) -> str:
    """Return the English word for a type."""
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        lists = {Gpio: "list of GPIO", PwmGpio: "list of GPIO", Share: "list of numbers"}
        return lists.get(item, "list of text")
    return "text" if get_origin(kind) is Literal else TYPES[kind]


def number(key: str, value: float) -> str:
    """Format a number as in a profile."""
    if key == "address":
        return f"{value:#04x}"
    return f"{value:_}" if value >= 10_000 else f"{value:g}"


def bounds_cell(key: str, meta: Meta, choices: tuple[str, ...]) -> str:
    """Return the bounds of a value as text."""
    if choices:
        return ", ".join(f'`"{choice}"`' for choice in choices)
    if meta.pattern is not None and meta.max_length is None:
        return "letters, digits, - _, in levels with / between"
    if meta.pattern is not None:
        return f"{meta.min_length} to {meta.max_length} letters, digits, -"
    if meta.gt is not None:
        most = "" if meta.le is None else f", <= {number(key, meta.le)}"
        return f"> {meta.gt:g}{most}"
    if meta.ge is None or meta.le is None:
        return ""
    return f"{number(key, meta.ge)} to {number(key, meta.le)}"


def unit_cell(key: str, hint: Any) -> str:
    """Return the unit, by the suffix of the key or by its type."""
    ends = [end for end in UNITS if key.endswith(end)]
    if ends:
        return UNITS[max(ends, key=len)]
    if {Gpio, LowGpio} & {hint, *get_args(hint)}:
        return "GPIO"
    return "share" if hint == Share else ""


def default_cell(field: FieldInfo) -> str:
    """Return the default of a key as text."""
    match field.default:
        case msgspec.NODEFAULT:
            return "required"
        case None:
            return "none"
        case bool(value):
            return f"`{str(value).lower()}`"
        case str(value):
            return f'`"{value}"`'
        case tuple(value):
            return f"`{list(value)}`"
        case value:
            return f"`{number(field.name, value)}`"


def row(section: type[Section], field: FieldInfo, hint: Any) -> str:
    """Return a key as a table row."""
    kind, meta = bare(hint)
    values = choices(kind)
    cells = (
        f"`{field.name}`",
        type_cell(kind),
        bounds_cell(field.name, meta, values),
        unit_cell(field.name, hint),
        default_cell(field),
        meaning(section, field.name),
    )
    return f"| {' | '.join(cells)} |"


def table(section: type[Section], keys: list[str]) -> str:
    """Return the table of a section's own keys, in their order."""
    rows = [row(section, *entry) for entry in fields(section) if entry[0].name in keys]
    return "\n".join([TABLE, *rows]) + "\n"


def own_keys(section: type[Section]) -> list[str]:
    """Return the keys of a section that hold a value, not a section."""
    return [
        field.name
        for field, hint in fields(section)
        if not variants(hint) and get_origin(hint) is not dict
    ]


def tag_row(kinds: list[type[Section]]) -> str:
    """Return the row of the key that distinguishes the kinds."""
    tags = tuple(str(kind.__struct_config__.tag) for kind in kinds)
    cells = (
        f"`{kinds[0].__struct_config__.tag_field}`",
        "text",
        bounds_cell("", Meta(), tags),
        "",
        f'`"{motors.DEFAULT_DRIVER}"`',
        "Which of the tables below holds, too.",
    )
    return f"| {' | '.join(cells)} |\n"


def union(kinds: list[type[Section]]) -> Iterator[str]:
    """Yield the common keys of some kinds, then a table for each kind's own keys."""
    base = next(
        base_kind
        for base_kind in kinds[0].__mro__
        if all(issubclass(kind, base_kind) for kind in kinds)
    )
    yield MEANINGS[base.__name__][""] + "\n"
    common = own_keys(base)
    yield table(base, common) + tag_row(kinds)
    for kind in kinds:
        tag = kind.__struct_config__
        yield f'### `{tag.tag_field} = "{tag.tag}"`\n'
        yield MEANINGS[kind.__name__][""] + "\n"
        yield table(kind, [key for key in own_keys(kind) if key not in common])


def part(place: str, titles: str, kinds: list[type[Section]]) -> Iterator[str]:
    """Yield a section: its meaning, its keys, then its sub-sections."""
    yield f"## {titles}\n"
    if len(kinds) > 1:
        yield from union(kinds)
        return
    (kind,) = kinds
    yield MEANINGS[kind.__name__][""] + "\n"
    if keys := own_keys(kind):
        yield table(kind, keys)
    yield from parts(kind, f"{place}.")


def parts(section: type[Section], prefix: str = "") -> Iterator[str]:
    """Yield the sections in a section; two of one kind share a table."""
    places: dict[tuple[type[Section], ...], list[str]] = {}
    for field, hint in fields(section):
        named = get_origin(hint) is dict
        kinds = variants(get_args(hint)[1] if named else hint)
        if kinds:
            place = f"{prefix}{field.name}{'.NAME' if named else ''}"
            places.setdefault(tuple(kinds), []).append(place)
    for together, names in places.items():
        titles = " and ".join(f"[{name}]" for name in names)
        yield from part(names[0], titles, list(together))


def page() -> str:
    """Return the full text of docs/reference/profile.md."""
    return "\n".join([HEAD, *parts(Profile)])


def main() -> int:
    """Write docs/reference/profile.md, up to date."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

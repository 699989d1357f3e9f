"""Loader of a profile's file to config.Profile. Unknown keys and clashes are refused.

A refusal names the key, quotes the value, and states the accepted values.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from fpvcar.config import checks
from fpvcar.config.base import HEADER_GPIO, ConfigError, Section
from fpvcar.config.motors import DEFAULT_DRIVER
from fpvcar.config.schema import Profile

T = TypeVar("T", bound=Section)


def load(path: Path, overrides: Sequence[str] = ()) -> Profile:
    """Read a profile. Raises ConfigError, which names the file and the fault.

    Each override is a line of TOML with a dotted key: 'pins.port = 8889'. An empty table removes
    its content: 'sensors.tof = {}'.
    """
    raw = read_toml(path)
    for line in overrides:
        _merge(raw, _override(line))
    try:
        return parse(raw)
    except ConfigError as fault:
        raise ConfigError(f"{path}: {fault}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises ConfigError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        absent = isinstance(fault, FileNotFoundError)
        hint = "; `fpvcar profile list` lists the shipped profiles" if absent else ""
        raise ConfigError(f"{path}: {fault.strerror}{hint}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: not TOML: {fault}") from None


def _override(line: str) -> dict[str, Any]:
    try:
        return tomllib.loads(line)
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(
            f"--set {line!r}: {fault}; expected KEY=VALUE as in the profile, text in "
            "quotes: --set 'pins.port = 8889' or --set 'camera.source = \"none\"'"
        ) from None


def _merge(base: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and value and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def parse(raw: dict[str, Any]) -> Profile:
    """Return a profile from decoded TOML. Raises ConfigError."""
    profile = converted(_with_drivers(raw), Profile)
    checks.refuse_clashes(profile)
    return profile


def converted(raw: dict[str, Any], kind: type[T]) -> T:
    """Return a section from decoded TOML. Raises ConfigError."""
    for refusal in _refusals(raw, kind, ""):
        raise ConfigError(refusal)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as fault:
        raise ConfigError(_rephrased(str(fault), raw)) from None


def _rephrased(message: str, raw: Any, where: str = "") -> str:
    """Rephrase msgspec's "Expected `int` <= 27 - at `$.lights.head[0]`" to start with the key
    and the value. `where` is the key of `raw`."""
    expected, _, path = message.partition(" - at `$")
    expected = expected[0].lower() + expected[1:]
    place = f"{where}{path.strip('`')}".strip(".")
    if expected.endswith(f"<= {HEADER_GPIO}"):
        expected += (
            ": the BCM number of a GPIO, not its pin on the header; both are listed by: "
            "fpvcar wiring mx1508 --pins"
        )
    value = _at(raw, re.findall(r"[^.`\[\]]+|\.\.\.", path))
    shown = f" = {json.dumps(value)}" if isinstance(value, str | int | float) else ""
    return f"{place}{shown}: {expected}" if place else expected


def _at(value: Any, steps: Sequence[str]) -> Any:
    """Return the value at this path; None if msgspec leaves the path open ("...")."""
    for step in steps:
        if isinstance(value, list) and step.isdecimal():
            value = value[int(step)]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _with_drivers(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the profile with a driver for every motor."""
    motors = raw.get("motors")
    if not isinstance(motors, dict):
        return raw
    default = {"driver": DEFAULT_DRIVER}
    named = {
        name: default | motor if isinstance(motor, dict) else motor
        for name, motor in motors.items()
    }
    return raw | {"motors": named}


def _refusals(raw: dict[str, Any], kind: Any, where: str) -> Iterator[str]:
    """Yield refusals of unknown keys and invalid choices, with a hint.

    `kind` is a section, or a union of sections that their tags tell apart.
    """
    sections = {section.__struct_config__.tag: section for section in _kinds(kind)}
    tag_field = next(iter(sections.values())).__struct_config__.tag_field
    tag: Any = raw.get(tag_field)
    if tag_field is not None and not isinstance(tag, str):
        return  # the conversion reports it
    if tag not in sections:
        yield _no_choice(f"{where}{tag_field}", tag, tuple(sections))
        return
    known = get_type_hints(sections[tag])
    for key, value in raw.items():
        inner, place = known.get(key), f"{where}{key}"
        if key == tag_field:
            continue
        if inner is None:
            near = difflib.get_close_matches(key, known, 1, 0.5)
            hint = (
                f"did you mean {where}{near[0]}?"
                if near
                else f"known keys: {', '.join(sorted(known))}"
            )
            yield f"unknown key {place}; {hint}"
        elif get_origin(inner) is Literal:
            if isinstance(value, str) and value not in get_args(inner):
                yield _no_choice(place, value, get_args(inner))
        elif isinstance(value, dict):
            if get_origin(inner) is dict:
                section = get_args(inner)[1]
                for name, entry in value.items():
                    if isinstance(entry, dict):
                        yield from _refusals(entry, section, f"{place}.{name}.")
                    try:
                        msgspec.convert(entry, section)
                    except msgspec.ValidationError as fault:
                        yield _rephrased(str(fault), entry, f"{place}.{name}")
            elif _is_section(inner):
                yield from _refusals(value, inner, f"{place}.")


def _is_section(kind: Any) -> bool:
    kinds = _kinds(kind)
    return bool(kinds) and all(
        isinstance(member, type) and issubclass(member, Section) for member in kinds
    )


def _kinds(kind: Any) -> tuple[Any, ...]:
    """Return a type, or the members of a union except None."""
    return tuple(member for member in get_args(kind) or (kind,) if member is not NoneType)


def _no_choice(place: str, value: str, choices: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(value, choices, 1, 0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f'{place} = "{value}": expected one of {", ".join(choices)}{hint}'

"""A profile's file -> config.Profile. Strangers and what clashes are refused.

A refusal names the place, quotes the value, and says what would do.
"""

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from fpvcar.config import checks
from fpvcar.config.schema import ConfigError, Profile, Section


def load(path: Path, overrides: Sequence[str] = ()) -> Profile:
    """Reads a profile. Raises ConfigError, which names the file and what is wrong.

    Each override is a line of TOML with a dotted key: 'pins.port = 8889'. An empty
    table takes all away that is in it: 'sensors.tof = {}'.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        for line in overrides:
            _merge(raw, tomllib.loads(line))
    except OSError as fault:
        raise ConfigError(f"{path}: {fault.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: not TOML: {fault}") from None
    try:
        return parse(raw)
    except ConfigError as fault:
        raise ConfigError(f"{path}: {fault}") from None


def _merge(base: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and value and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def parse(raw: dict[str, Any]) -> Profile:
    """A profile from decoded TOML. Raises ConfigError."""
    for refusal in _refusals(raw, Profile, ""):
        raise ConfigError(refusal)
    try:
        profile = msgspec.convert(raw, Profile)
    except msgspec.ValidationError as fault:
        raise ConfigError(str(fault)) from None
    checks.refuse_clashes(profile)
    return profile


def _refusals(raw: dict[str, Any], kind: type, where: str) -> Iterator[str]:
    """Keys that nobody knows and words that are none of the choices, with a hint."""
    known = get_type_hints(kind)
    for key, value in raw.items():
        inner, place = known.get(key), f"{where}{key}"
        if inner is None:
            near = difflib.get_close_matches(key, known, 1, 0.5)
            hint = (
                f"did you mean {where}{near[0]}?"
                if near
                else f"known here: {', '.join(sorted(known))}"
            )
            yield f"unknown key {place}; {hint}"
        elif get_origin(inner) is Literal:
            if isinstance(value, str) and value not in get_args(inner):
                wanted = ", ".join(get_args(inner))
                yield f'{place} = "{value}": expected one of {wanted}'
        elif isinstance(value, dict):
            if isinstance(inner, type) and issubclass(inner, Section):
                yield from _refusals(value, inner, f"{place}.")
            elif get_origin(inner) is dict:
                for name, entry in value.items():
                    if isinstance(entry, dict):
                        section = get_args(inner)[1]
                        yield from _refusals(entry, section, f"{place}.{name}.")

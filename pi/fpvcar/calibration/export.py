"""Text of a profile with some values replaced; comments stay. Pure."""

import re

from fpvcar.calibration.values import SPEED, Value, Values


def written(toml: str, values: Values) -> str:
    """Return the profile's text with these values."""
    if SPEED in values:
        toml = with_key(toml, "guard.measured", "true")
    for key, value in sorted(values.items()):
        toml = with_key(toml, key, _text(value))
    return toml


def with_key(toml: str, key: str, value: str) -> str:
    """Return the profile's text with one value, in TOML syntax. A missing section is added at
    the end."""
    section, _, name = key.rpartition(".")
    line = f"{name} = {value}"
    head = re.search(rf"(?m)^\[{re.escape(section)}\][ \t]*(#.*)?$", toml)
    if head is None:
        return f"{toml.rstrip()}\n\n[{section}]\n{line}\n"
    after = re.search(r"(?m)^\[", toml[head.end() :])
    end = head.end() + after.start() if after else len(toml)
    inside = toml[head.end() : end]
    old = re.search(rf"(?m)^{name}[ \t]*=[ \t]*(\[[^\]]*\]|[^\s#]+)", inside)
    if old is None:
        inside = f"\n{line}{inside}"
    else:
        inside = inside[: old.start()] + line + inside[old.end() :]
    return toml[: head.end()] + inside + toml[end:]


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    return repr(round(value, 4))

"""Texts of HTML that the server writes itself, in the browser's language, from the pages' lang/."""

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path

from fpvcar.runtime import paths
from fpvcar.runtime.texts import VALUE, Text

DECIMAL = re.compile(r"-?\d+\.\d+")
UNBROKEN = re.compile(r" ([:;!?»])|(?<=«) ")


def language_of(accepted: str, root: Path = paths.WEB) -> str:
    """Return the first known language of an Accept-Language."""
    tags = (tag.split(";")[0].split("-")[0].strip().lower() for tag in accepted.split(","))
    known = {path.parent.name for path in root.glob("lang/*/seat.json")}
    return next((tag for tag in tags if tag in known), "en")


def translated(language: str, text: Text) -> str:
    """Return a text in a language; English if it has no translation."""
    template = _texts(language).get(text.key) if language != "en" else None
    if template is None:
        return str(text)
    local = {name: _local(language, value) for name, value in text.values.items()}
    return VALUE.sub(lambda value: local.get(value[1], ""), template)


def _local(language: str, value: str | Text) -> str:
    """Return a value as the language writes it: a text of its own, or a decimal."""
    if isinstance(value, Text):
        return translated(language, value)
    comma = language != "zh" and DECIMAL.fullmatch(value)
    return value.replace(".", ",") if comma else value


@functools.cache
def _texts(language: str) -> Mapping[str, str]:
    file = paths.WEB / "lang" / language / "sentences.json"
    found: dict[str, str] = json.loads(file.read_bytes())["sentences"] if file.exists() else {}
    if language != "fr":
        return found
    return {key: UNBROKEN.sub("\N{NO-BREAK SPACE}\\1", text) for key, text in found.items()}

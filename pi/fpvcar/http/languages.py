"""Texts of HTML that the server writes itself, in the browser's language, from the pages' lang/."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from fpvcar.runtime import paths
from fpvcar.runtime.sentences import sent_as
from fpvcar.wire.refusals import Refusal

FILES = ("refusals.js", "sentences.js")
TEXT = re.compile(r"^    (\w+): '(.*)',$", re.MULTILINE)
VALUE = re.compile(r"\{(\w+)\}")
DECIMAL = re.compile(r"-?\d+\.\d+")
UNBROKEN = re.compile(r" ([:;!?»])|(?<=«) ")


def language_of(accepted: str, root: Path = paths.WEB) -> str:
    """Return the first known language of an Accept-Language."""
    tags = (tag.split(";")[0].split("-")[0].strip().lower() for tag in accepted.split(","))
    known = {path.parent.name for path in root.glob("lang/*/seat.js")}
    return next((tag for tag in tags if tag in known), "en")


def translated(language: str, english: str, sent: str = "") -> str:
    """Return a sentence or a refusal in a language; `sent`: key and values, if the text is no
    known sentence. An unknown text stays English."""
    values = dict(parse_qsl(sent or sent_as(english), keep_blank_values=True))
    text = _texts(language).get(values.pop("key", "")) if language != "en" else None
    if text is None:
        return english
    local = {name: _local(language, value) for name, value in values.items()}
    return VALUE.sub(lambda value: local.get(value[1], ""), text)


def translated_refusal(language: str, key: str, **values: object) -> str:
    """Return a refusal of wire/refusals.py in a language."""
    refusal = Refusal(key, **values)
    return translated(language, str(refusal), refusal.header["X-Refusal"])


def _local(language: str, value: str) -> str:
    """Return a value as the language writes it: a nested sentence, or a decimal."""
    if value.startswith("key="):
        return translated(language, value, value)
    comma = language != "zh" and DECIMAL.fullmatch(value)
    return value.replace(".", ",") if comma else value


@functools.cache
def _texts(language: str) -> Mapping[str, str]:
    folder = paths.WEB / "lang" / language
    found = {key: text for name in FILES for key, text in TEXT.findall((folder / name).read_text())}
    if language != "fr":
        return found
    return {key: UNBROKEN.sub("\N{NO-BREAK SPACE}\\1", text) for key, text in found.items()}

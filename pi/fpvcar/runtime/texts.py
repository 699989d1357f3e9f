"""Texts for people, by key and values: pages translate them; logs and terminals get English.

    Text("recorder_slow", "the card has not answered for {seconds} s", seconds=7)
        -> str(): "the card has not answered for 7 s"
        -> JSON: {"key": "recorder_slow", "english": "the card ...", "values": {"seconds": "7"}}
        -> web/lang/words.js:said

A key and its English stand at one place of the source: in the call, or in a Phrase for several.
"""

import errno
import re
import sys
from dataclasses import dataclass
from typing import Literal

import msgspec

VALUE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, init=False)
class Text:
    """Text for people. A value may be a text of its own; others become strings."""

    key: str
    english: str
    """Template with the names of values in braces."""
    values: "dict[str, str | Text]"

    def __init__(self, key: str, english: str, /, **values: object) -> None:
        put = object.__setattr__
        put(self, "key", key)
        put(self, "english", english)
        texts = {name: it if isinstance(it, Text) else str(it) for name, it in values.items()}
        put(self, "values", texts)

    def __str__(self) -> str:
        return VALUE.sub(lambda name: str(self.values.get(name[1], name[0])), self.english)

    def __hash__(self) -> int:
        return hash((self.key, str(self)))


@dataclass(frozen=True, slots=True)
class Phrase:
    """Text whose values are yet to come, for use at several places."""

    key: str
    english: str

    def __call__(self, **values: object) -> Text:
        return Text(self.key, self.english, **values)


State = Literal["ok", "none"] | Text
"""State of a part: it works, the car has none, or its fault. str() is a word for programs."""

SAYS = Phrase("says", "{place}: {reason}")
BOTH = Phrase("both", "{first}; {second}")
VERBATIM = Phrase("verbatim", "{text}")
"""Words of another program, or of a person: no language has a translation."""
STARTING = Text("starting", "starting")
PROGRAM_EXIT = Phrase("program_exit", "{program} ended with status {status}")
PROGRAM_SILENT = Phrase("wifi_silent", "{program} does not answer")
NOT_INSTALLED = Phrase("not_installed", "{program} is not installed; {command}")
FILE_DAMAGED = Phrase("file_damaged", "{path}: {reason}: delete it, then {command}")
FILE_MISSING = Phrase("export_missing", "{name}: not found")
OUT_OF_RANGE = Phrase("range", "{value} was refused: expected {least} to {most}.")
SEGMENT, SEGMENTS = Phrase("segment", "{count} segment"), Phrase("segments", "{count} segments")
SYSTEM = (
    Text("os_eacces", "Permission denied"),
    Text("os_ebusy", "Device or resource busy"),
    Text("os_econnrefused", "Connection refused"),
    Text("os_ehostunreach", "No route to host"),
    Text("os_eio", "Input/output error"),
    Text("os_enetunreach", "Network is unreachable"),
    Text("os_enodev", "No such device"),
    Text("os_enoent", "No such file or directory"),
    Text("os_enospc", "No space left on device"),
    Text("os_erofs", "Read-only file system"),
    Text("os_etimedout", "Connection timed out"),
)
"""Errors of the operating system."""
_system = {text.key: text for text in SYSTEM}


def segments(count: int) -> Text:
    """Return a number of segments."""
    return (SEGMENT if count == 1 else SEGMENTS)(count=count)


def os_reason(fault: OSError) -> Text:
    """Return the text of a fault of the operating system."""
    name = errno.errorcode.get(fault.errno or 0, "")
    text = _system.get(f"os_{name}".lower())
    if text is not None and fault.strerror == text.english:
        return text
    return VERBATIM(text=fault.strerror or fault)


def fault_text(fault: Exception) -> Text:
    """Return the text of a fault: its own, that of the system, or its words."""
    if fault.args and isinstance(fault.args[0], Text):
        return fault.args[0]
    if not isinstance(fault, OSError) or not fault.errno:
        return VERBATIM(text=fault)
    reason = os_reason(fault)
    return SAYS(place=fault.filename, reason=reason) if fault.filename else reason


def stderr_line(text: Text) -> str:
    """Return a line for stderr: English on a terminal, JSON for a parent process."""
    return str(text) if sys.stderr.isatty() else msgspec.json.encode(text).decode()


def text_of_line(line: str) -> Text:
    """Return the text of a `stderr_line`; a line of another form is a text by itself."""
    if line.startswith("{"):
        try:
            return msgspec.json.decode(line, type=Text)
        except msgspec.DecodeError:
            pass
    return VERBATIM(text=line)


class Refusal(ValueError):
    """Refused wish of a person; `text` has the reason and the next step."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self.text = text

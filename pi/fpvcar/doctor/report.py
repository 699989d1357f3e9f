"""Findings, and how they are told: as text, as JSON, by an exit status. Pure."""

import enum
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import Struct

Symptom = Literal[
    "The car does not start",
    "The car does not move",
    "It stops by itself",
    "No page, or a slow one",
    "No picture, or a late one",
    "A sensor is silent",
    "Nothing is recorded",
]
"""What somebody notices first; in this order in docs/troubleshooting.md."""


class Severity(enum.StrEnum):
    """How bad it is; the worst last."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAULT = "fault"


WORSE = list(Severity)
STATUSES = {Severity.OK: 0, Severity.NOTE: 0, Severity.WARNING: 3, Severity.FAULT: 4}
"""The exit status by the worst; 1 and 2 say that doctor itself could not."""
LABELS = {Severity.NOTE: "Note", Severity.WARNING: "Warning", Severity.FAULT: "FAULT"}


class Finding(Struct, frozen=True):
    """Something that is not as it should be. `mend`: what to type, or to do."""

    key: str
    severity: Severity
    what: str
    why: str
    mend: str


class Unasked(Struct, frozen=True):
    """What nobody could look at, and why: it is not said to be well."""

    why: str


@dataclass(frozen=True)
class Kind:
    """A finding that there may be. {words} are filled in by whoever finds it."""

    key: str
    severity: Severity
    symptom: Symptom
    what: str
    why: str
    mend: str

    def found(self, **values: object) -> Finding:
        """The finding. Raises KeyError for a word that is left open."""
        texts = (text.format(**values) for text in (self.what, self.why, self.mend))
        return Finding(self.key, self.severity, *texts)


Said = Iterator[Finding | Unasked]


class NotAsked(Struct, frozen=True):
    """A part that could not be looked at."""

    part: str
    why: str


class Report(Struct, frozen=True):
    """All that was looked at; the worst first. `well`: parts without a finding."""

    about: str
    worst: Severity
    findings: tuple[Finding, ...]
    well: tuple[str, ...]
    not_asked: tuple[NotAsked, ...]


def report_of(about: str, parts: Iterable[tuple[str, Iterable[Finding | Unasked]]]) -> Report:
    """Sorts what was said of each part."""
    findings: list[Finding] = []
    well: list[str] = []
    open_parts: list[NotAsked] = []
    for part, said in parts:
        silent = True
        for one in said:
            silent = False
            if isinstance(one, Finding):
                findings.append(one)
            else:
                open_parts.append(NotAsked(part, one.why))
        if silent:
            well.append(part)
    findings.sort(key=lambda one: -WORSE.index(one.severity))
    worst = findings[0].severity if findings else Severity.OK
    return Report(about, worst, tuple(findings), tuple(well), tuple(open_parts))


def status(report: Report) -> int:
    """The exit status."""
    return STATUSES[report.worst]


def as_json(report: Report) -> bytes:
    """For programs, and for the page."""
    return msgspec.json.encode(report)


def text(report: Report, width: int = 80) -> str:
    """For a terminal."""
    lines = [report.about, ""]
    for one in report.findings:
        lines += _wrapped(f"{LABELS[one.severity]}: {one.what}", width, "")
        lines += _wrapped(one.why, width, "  ")
        lines += [*_wrapped(f"Do: {one.mend}", width, "  "), ""]
    if report.well:
        lines += [*_wrapped(f"Well: {', '.join(report.well)}.", width, ""), ""]
    if report.not_asked:
        lines.append("Not asked:")
        for part in report.not_asked:
            lines += _wrapped(f"{part.part}: {part.why}", width, "  ")
        lines.append("")
    return "\n".join([*lines, summary(report)])


def summary(report: Report) -> str:
    """How many of what."""
    counts = [
        (sum(one.severity is level for one in report.findings), level) for level in reversed(WORSE)
    ]
    said = [f"{count} {level}{'s' * (count != 1)}" for count, level in counts if count]
    return f"{', '.join(said)}." if said else "Nothing is wrong with what was asked."


def _wrapped(words: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        words,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )

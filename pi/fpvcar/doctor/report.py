"""Findings and their output: as text, as JSON, as an exit status. Pure."""

import enum
import itertools
import string
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
    "The camera does not turn",
    "Nothing is recorded",
]
"""Symptoms as a user first notices them; in this order in docs/troubleshooting.md."""


class Severity(enum.StrEnum):
    """Severity of a finding; the worst last."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAULT = "fault"


WORSE = list(Severity)
STATUSES = {Severity.OK: 0, Severity.NOTE: 0, Severity.WARNING: 3, Severity.FAULT: 4}
"""Exit status by the worst severity; 1 and 2 are failures of doctor itself."""
LABELS = {Severity.NOTE: "Note", Severity.WARNING: "Warning", Severity.FAULT: "FAULT"}


class Finding(Struct, frozen=True):
    """Deviation from the expected state. `mend`: the command to type, or the action to take.

    Pages translate the texts by `key` and `values`.
    """

    key: str
    severity: Severity
    what: str
    why: str
    mend: str
    values: dict[str, str]


class Unasked(Struct, frozen=True):
    """Query that could not be made, with the reason; its part is not reported as healthy."""

    why: str


class Works(Struct, frozen=True):
    """Good answer of a part; `sensor`: name of a Pi's camera sensor, if the answer has it."""

    sensor: str = ""


class Broken(Struct, frozen=True):
    """Fault of a part, as text."""

    fault: str


Answer = Works | Broken | Unasked


@dataclass(frozen=True)
class Kind:
    """Kind of finding. The check that finds it fills in the {placeholders}."""

    key: str
    severity: Severity
    symptom: Symptom
    what: str
    why: str
    mend: str

    def finding(self, **values: object) -> Finding:
        """Return a finding with these values. Raises KeyError for a missing value."""
        texts = (self.what, self.why, self.mend)
        shown = {
            name: format(values[name], form or "")
            for _, name, form, _ in itertools.chain(*map(string.Formatter().parse, texts))
            if name
        }
        what, why, mend = (text.format(**values) for text in texts)
        return Finding(self.key, self.severity, what, why, mend, shown)


Findings = Iterator[Finding | Unasked]


class UnaskedPart(Struct, frozen=True):
    """Part that could not be examined."""

    part: str
    why: str


class Report(Struct, frozen=True):
    """Results of all parts; the worst first. `well`: parts that had no finding."""

    about: str
    worst: Severity
    findings: tuple[Finding, ...]
    well: tuple[str, ...]
    not_asked: tuple[UnaskedPart, ...]


def report_of(about: str, parts: Iterable[tuple[str, Iterable[Finding | Unasked]]]) -> Report:
    """Sort the results of each part."""
    findings: list[Finding] = []
    well: list[str] = []
    unasked: list[UnaskedPart] = []
    for part, results in parts:
        healthy = True
        for result in results:
            healthy = False
            if isinstance(result, Finding):
                findings.append(result)
            else:
                unasked.append(UnaskedPart(part, result.why))
        if healthy:
            well.append(part)
    findings.sort(key=lambda finding: -WORSE.index(finding.severity))
    worst = findings[0].severity if findings else Severity.OK
    return Report(about, worst, tuple(findings), tuple(well), tuple(unasked))


def status(report: Report) -> int:
    return STATUSES[report.worst]


def as_json(report: Report) -> bytes:
    """Encode the report for programs, and for the page."""
    return msgspec.json.encode(report)


def text(report: Report, width: int = 80) -> str:
    """Format the report for a terminal."""
    lines = [report.about, ""]
    for finding in report.findings:
        lines += _wrapped(f"{LABELS[finding.severity]}: {finding.what}", width, "")
        lines += _wrapped(finding.why, width, "  ")
        lines += [*_wrapped(f"Do: {finding.mend}", width, "  "), ""]
    if report.well:
        lines += [*_wrapped(f"OK: {', '.join(report.well)}.", width, ""), ""]
    if report.not_asked:
        lines.append("Not tested:")
        for part in report.not_asked:
            lines += _wrapped(f"{part.part}: {part.why}", width, "  ")
        lines.append("")
    return "\n".join([*lines, summary(report)])


def summary(report: Report) -> str:
    """Return the number of findings by severity."""
    counts = [
        (sum(finding.severity is level for finding in report.findings), level)
        for level in reversed(WORSE)
    ]
    parts = [f"{count} {level}{'s' * (count != 1)}" for count, level in counts if count]
    return f"{', '.join(parts)}." if parts else "No faults found."


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )

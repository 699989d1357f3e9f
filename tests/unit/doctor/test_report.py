"""Report of findings as text."""

import json

import pytest

from fpvcar.doctor import report
from fpvcar.doctor.report import Kind, Severity, Unasked, report_of

KINDS: dict[Severity, Kind] = {
    level: Kind(
        level.value,
        level,
        "It stops by itself",
        f"{level.value} of {{part}}",
        "because of a reason that is told in full, in words, on more than one line",
        "sudo mend-it --at-once {part}",
    )
    for level in Severity
    if level is not Severity.OK
}


def made(*levels: Severity) -> report.Report:
    said = [(level.value, [KINDS[level].finding(part="it")]) for level in levels]
    return report_of("Rusty, on a Pi", [*said, ("heat", []), ("wear", [Unasked("no")])])


@pytest.mark.parametrize(
    ("levels", "status", "summary"),
    [
        ((), 0, "No faults found."),
        ((Severity.NOTE,), 0, "1 note."),
        ((Severity.NOTE, Severity.WARNING), 3, "1 warning, 1 note."),
        ((Severity.FAULT, Severity.NOTE, Severity.FAULT), 4, "2 faults, 1 note."),
    ],
)
def test_worst_finding_sets_the_exit_status(
    levels: tuple[Severity, ...], status: int, summary: str
) -> None:
    found = made(*levels)
    assert report.status(found) == status
    assert report.text(found).splitlines()[-1] == summary


def test_worst_finding_comes_first_and_lines_are_short() -> None:
    text = report.text(made(Severity.NOTE, Severity.FAULT), 40)
    assert text.index("FAULT: fault of it") < text.index("Note: note of it")
    assert "  Do: sudo mend-it --at-once it" in text
    assert "OK: heat." in text and "  wear: no" in text
    assert max(map(len, text.splitlines())) <= 40


def test_json_has_the_same_findings() -> None:
    said = json.loads(report.as_json(made(Severity.WARNING)))
    assert said["worst"] == "warning" and said["well"] == ["heat"]
    assert said["findings"][0]["mend"] == "sudo mend-it --at-once it"
    assert said["not_asked"] == [{"part": "wear", "why": "no"}]


def test_finding_without_its_text_fields_raises() -> None:
    with pytest.raises(KeyError):
        KINDS[Severity.NOTE].finding()

"""Writes docs/reference/status.md from a report: confirmed statements, where, and open ones. Pure.

A report of the bench says "bench" for everything it measured.
"""

from collections.abc import Iterator, Sequence

from fpvcar.hil.checks import CHECKS
from fpvcar.hil.page import TITLES, figure
from fpvcar.hil.results import Report, Result
from fpvcar.hil.rig import Check

HEAD = """\
# Confirmed statements

<!-- Written by `make docs` from docs/reference/status.json, a report of `fpvcar hil`. -->

Measured {where}.
By [`fpvcar hil`](hil.md) of fpvcar {version} on {date}; {machine}:
{counts}."""
WHERE = {
    "bench": "on the bench, an emulated car; real hardware may differ",
    "metal": "on a real car's pins",
}
COLUMNS = "| statement | check | confirmed on | worst | limit |\n|---|---|---|---|---|"
OPEN = """
## To be confirmed on metal

An emulator cannot confirm these. They need the real part: on a [rig](../../hardware/rig.md), with
`sudo fpvcar hil --metal`, or by hand.

| statement | check | confirmed on | how |
|---|---|---|---|"""
NOT_YET = "not yet confirmed"


def page(report: Report, checks: Sequence[Check] = CHECKS) -> str:
    """Return the whole page. A check that is absent or did not pass counts as not
    confirmed; a failed one is marked."""
    results = {result.name: result for result in report.results}
    passed = sum(result.verdict == "passed" for result in report.results)
    counts = f"{passed} of {len(checks)} statements confirmed"
    head = HEAD.format(
        where=WHERE[report.where],
        date=report.date,
        version=report.version,
        machine=report.machine,
        counts=counts,
    )
    lines = [head, *_confirmed(report, checks, results), OPEN]
    for check in (check for check in checks if check.metal):
        where = _where(report, results.get(check.name))
        how = check.by_hand or "automatically"
        lines.append(f"| {check.proves} | `{check.name}` | {where} | {how} |")
    return "\n".join(lines) + "\n"


def _confirmed(
    report: Report, checks: Sequence[Check], results: dict[str, Result]
) -> Iterator[str]:
    group = ""
    for check in (check for check in checks if not check.metal):
        if check.group != group:
            group = check.group
            yield f"\n## {TITLES[group]}\n\n{COLUMNS}"
        result = results.get(check.name)
        worst = figure(result.worst, check.limit.unit) if result else ""
        yield (
            f"| {check.proves} | `{check.name}` | {_where(report, result)} | {worst} | "
            f"{check.limit} |"
        )


def _where(report: Report, result: Result | None) -> str:
    """Return where a statement is confirmed. A bench cannot confirm a statement that
    needs metal."""
    if result is None or (result.metal and report.where != "metal"):
        return NOT_YET
    if result.verdict == "failed":
        return f"**failed** on {report.where}"
    return report.where if result.verdict == "passed" else NOT_YET

"""Report as one self-contained HTML file and as JUnit XML. Pure."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html import escape
from itertools import groupby

from fpvcar.hil import plots
from fpvcar.hil.results import Report, Result, again, summary

TITLES = {
    "pins": "Pins and PWM",
    "sensors": "Sensors and buttons",
    "camera": "Camera",
    "stops": "Stopping the car",
    "metal": "Real hardware only",
}
WHERE = {
    "bench": "on the bench, an emulated car. Real hardware may differ.",
    "metal": "on a real car's pins.",
}
STYLE = """\
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em;
  padding: 0 1em; color: #202020; background: #fff }
table { border-collapse: collapse; width: 100%; margin: 0 0 2em; table-layout: fixed }
th:nth-child(1) { width: 26% } th:nth-child(5) { width: 16% }
th:nth-child(7) { width: 230px } svg { display: block }
th, td { text-align: left; vertical-align: top; padding: .4em .6em;
  border-bottom: 1px solid #d8d8d8 }
th { font-weight: 600 } th { overflow-wrap: break-word }
.verdict { font-weight: 600; white-space: nowrap } .passed { color: #0a6b2c }
.failed { color: #b3200f } .not-run { color: #606060 }
small { color: #606060 } .worse { color: #b3200f } code { font-size: 13px }
@media (max-width: 60em) {
  table, tr, td { display: block } th, td:empty { display: none }
  table { border-top: 1px solid #d8d8d8 } td { border: 0; padding: .1em 0 }
  tr:not(:first-child) { border-bottom: 1px solid #d8d8d8; padding: .8em 0 }
  td[data-head]::before { content: attr(data-head) ": "; color: #606060 }
}"""
HEADS = ("check", "verdict", "worst", "median", "limit", "last report", "plots")


def html(report: Report, last: Report | None = None) -> str:
    """Return the whole page, compared with the last report."""
    before = {result.name: result for result in last.results} if last is not None else {}
    compared = f"; compared with {escape(last.date)}" if last is not None else ""
    lines = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>fpvcar hil: {summary(report.results)}</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>fpvcar hil: {summary(report.results)}</h1>",
        f"<p>Measured <strong>{WHERE[report.where]}</strong><br>"
        f"{escape(report.date)}, fpvcar {escape(report.version)}, "
        f"{escape(report.machine)}{compared}</p>",
    ]
    for group, results in groupby(report.results, lambda one: one.group):
        lines.append(f"<h2>{TITLES[group]}</h2>")
        lines += _table(list(results), before)
    return "\n".join([*lines, "</body></html>"]) + "\n"


def _table(results: list[Result], before: dict[str, Result]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{head}</th>" for head in HEADS) + "</tr>"
    for result in results:
        yield _row(result, before.get(result.name))
    yield "</table>"


def _row(result: Result, before: Result | None) -> str:
    shape = result.verdict.replace(" ", "-")
    notes = [note for note in (result.why, again(result)) if note]
    why = "".join(f"<br><small>{escape(note)}</small>" for note in notes)
    cells = [
        f"<td><code>{result.name}</code><br>{escape(result.proves)}{why}</td>",
        f'<td class="verdict {shape}">{result.verdict}</td>',
        _figure("worst", figure(result.worst, result.limit.unit)),
        _figure("median", figure(result.median, result.limit.unit)),
        _figure(
            "limit", f"{escape(str(result.limit))}<br><small>{escape(result.limit.source)}</small>"
        ),
        _figure("last report", _compared(result, before)),
        f"<td>{plots.trace(result)}{plots.values(result, before)}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _figure(head: str, content: str) -> str:
    """Return a table cell that repeats its column's name for narrow screens."""
    return f'<td data-head="{head}">{content}</td>'


def figure(value: float | None, unit: str) -> str:
    """Return a value for a cell: seconds and metres below 1 in ms and mm; "" for None."""
    if value is None:
        return ""
    value = round(value, 9)
    if unit in ("s", "m") and value < 1.0:
        return f"{1000.0 * value:.3g} m{unit}"
    return escape(f"{value:.3g} {unit}".rstrip())


def _compared(result: Result, before: Result | None) -> str:
    """Return the worst value of the last report and the change since then."""
    if before is None or before.worst is None:
        return ""
    last = figure(before.worst, result.limit.unit)
    if result.worst is None:
        return last
    change = result.worst - before.worst
    sign = "+" if change >= 0.0 else "-"
    shape = ' class="worse"' if change > 0.1 * result.limit.most else ""
    return f"{last}<br><small{shape}>{sign}{figure(abs(change), result.limit.unit)}</small>"


def junit(report: Report) -> bytes:
    """Return JUnit XML for continuous integration; times are seconds for checks in seconds."""
    verdicts = [result.verdict for result in report.results]
    suite = ET.Element(
        "testsuite",
        name=f"fpvcar hil ({report.where})",
        tests=str(len(verdicts)),
        failures=str(verdicts.count("failed")),
        skipped=str(verdicts.count("not run")),
        errors="0",
        timestamp=f"{report.date}T00:00:00",
    )
    for result in report.results:
        seconds = result.worst if result.limit.unit == "s" and result.worst else 0.0
        case = ET.SubElement(
            suite,
            "testcase",
            name=result.name,
            time=f"{seconds:.6f}",
            classname=f"fpvcar.hil.{result.group}",
        )
        if result.verdict == "failed":
            ET.SubElement(case, "failure", message=result.why)
        elif result.verdict == "not run":
            ET.SubElement(case, "skipped", message=result.why)
    ET.indent(suite)
    written: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written + b"\n"

"""Report as HTML and as JUnit XML."""

import re
import xml.etree.ElementTree as ET

from fpvcar.hil import page, plots
from fpvcar.hil.results import Limit, Report, Result, Verdict

STOP = Limit(0.3, "s", "docs/safety.md")


def result(
    name: str, verdict: Verdict, *values: float, why: str = "", group: str = "stops"
) -> Result:
    trace = ((-0.1, 1.0), (0.2, 0.0)) if values else ()
    return Result(name, group, "It <stops>.", STOP, verdict, values, why, trace)


def report(*results: Result, date: str = "2026-11-23") -> Report:
    return Report("bench", date, "0.1", "2 cores", results)


NOW = report(
    result("one", "passed", 0.125, 0.25),
    result("two", "failed", 0.4, why="late & <so>"),
    result("three", "not run", why="no relay on pin 9", group="metal"),
)


def test_html_report_is_well_formed_and_loads_no_other_file() -> None:
    text = page.html(NOW)
    assert "emulated car. Real hardware may differ" in text
    assert not re.search(r"(src|href|url\()", text)
    assert "It &lt;stops&gt;." in text and "late &amp; &lt;so&gt;" in text
    assert "no relay on pin 9" in text and "Real hardware only" in text
    ET.fromstring(re.sub(r"(?s).*(<body>.*</body>).*", r"\1", text).replace("<br>", ""))


def test_html_report_shows_worst_median_and_limit() -> None:
    row = next(one for one in page.html(NOW).splitlines() if "<code>one<" in one)
    figures = re.findall(r'data-head="[^"]+">([^<]*)<', row)
    assert figures[:3] == ["250 ms", "188 ms", "0.3 s"]


def test_html_report_is_compared_with_the_last_report() -> None:
    last = report(result("one", "passed", 0.1), date="2026-11-01")
    text = page.html(NOW, last)
    assert "compared with 2026-11-01" in text
    row = next(one for one in text.splitlines() if "<code>one<" in one)
    assert '100 ms<br><small class="worse">+150 ms</small>' in row
    better = page.html(last, NOW)
    assert "250 ms<br><small>-150 ms</small>" in better


def test_html_report_of_metal_names_real_pins() -> None:
    assert "on a real car's pins" in page.html(Report("metal", "d", "v", "m", ()))


def test_junit_report_names_failed_and_skipped_checks() -> None:
    suite = ET.fromstring(page.junit(NOW))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    cases = {one.get("name"): one for one in suite}
    assert cases["one"].get("time") == "0.250000" and not list(cases["one"])
    (failure,) = cases["two"]
    assert failure.tag == "failure" and failure.get("message") == "late & <so>"
    (skipped,) = cases["three"]
    assert skipped.tag == "skipped" and skipped.get("message") == "no relay on pin 9"


def test_plot_has_a_dot_per_value_and_a_step_per_change() -> None:
    one = NOW.results[0]
    assert plots.values(one).count("<circle") == 2
    assert plots.values(one, NOW.results[1]).count("<circle") == 3
    drawn = plots.trace(one)
    assert "limit" in drawn and "failure" in drawn and drawn.count("V") == 1
    assert plots.values(NOW.results[2]) == plots.trace(NOW.results[2]) == ""

"""Exit status, and results to JSON and back."""

import msgspec
import pytest

from fpvcar.hil import results
from fpvcar.hil.results import Limit, Report, Result, Verdict


def result(verdict: Verdict, metal: bool = False, *values: float) -> Result:
    limit = Limit(0.3, "s", "docs/safety.md")
    return Result("one", "stops", "It stops.", limit, verdict, values, metal=metal)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([result("passed", False, 0.1)], 0),
        ([result("passed", False, 0.1), result("not run")], 3),
        ([result("not run"), result("failed", False, 0.4)], 4),
        ([result("passed", False, 0.1), result("not run", True)], 0),
        ([result("failed", True, 1.0)], 4),
    ],
)
def test_exit_status_is_that_of_the_worst_result(found: list[Result], status: int) -> None:
    assert results.status(found) == status


def test_failed_metal_check_without_a_value_counts() -> None:
    assert results.status([result("failed", True)]) == 4


def test_summary_counts_results_by_verdict() -> None:
    found = [result("passed"), result("not run"), result("passed")]
    assert results.summary(found) == "2 passed, 1 not run"
    assert results.summary([]) == "no check"


def test_report_is_unchanged_by_json_round_trip() -> None:
    report = Report("bench", "2026-11-23", "0.1", "2 cores", (result("passed"),))
    assert results.from_json(results.as_json(report)) == report
    with pytest.raises(msgspec.DecodeError):
        results.from_json(b'{"where": "moon"}')

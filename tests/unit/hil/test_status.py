"""docs/reference/status.md: a bench confirms only the bench's checks, and no metal ones."""

from typing import Any

import pytest

from fpvcar.hil import status
from fpvcar.hil.results import Limit, Measured, Report, Result, RigKind, Verdict
from fpvcar.hil.rig import Check

LIMIT = Limit(0.3, "s", "docs/safety.md")


def act(rig: Any) -> Measured:
    return Measured(0.1)


CHECKS = (
    Check("one", "stops", "It stops.", LIMIT, (), act),
    Check("two", "metal", "It is so.", LIMIT, ("metal",), act, metal=True),
    Check("three", "metal", "It bears it.", LIMIT, ("metal",), None, True, "Look."),
)


def rows(where: RigKind, **verdicts: Verdict) -> dict[str, list[str]]:
    """Return the cells of each check's row by its name."""
    found = tuple(
        Result(one.name, one.group, one.proves, LIMIT, verdicts[one.name], (0.1,), metal=one.metal)
        for one in CHECKS
        if one.name in verdicts
    )
    text = status.page(Report(where, "2026-11-23", "0.1", "2 cores", found), CHECKS)
    cells = [line.split(" | ") for line in text.splitlines() if "| `" in line]
    return {one[1].strip("`"): one for one in cells}


def test_bench_confirms_its_passed_checks_as_bench() -> None:
    found = rows("bench", one="passed", two="not run")
    assert found["one"][2:4] == ["bench", "100 ms"]
    assert found["two"][2] == found["three"][2] == "not yet confirmed"
    assert found["three"][3] == "Look. |"


@pytest.mark.parametrize("verdict", ["passed", "failed"])
def test_bench_does_not_confirm_metal_checks(verdict: Verdict) -> None:
    assert rows("bench", two=verdict)["two"][2] == "not yet confirmed"


def test_metal_confirms_bench_and_metal_checks() -> None:
    found = rows("metal", one="passed", two="passed")
    assert found["one"][2] == found["two"][2] == "metal"


def test_failed_or_missing_check_is_not_confirmed() -> None:
    assert rows("bench", one="failed")["one"][2] == "**failed** on bench"
    assert rows("bench")["one"][2] == "not yet confirmed"
    assert rows("bench", one="not run")["one"][2] == "not yet confirmed"

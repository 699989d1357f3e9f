"""Stop times, from the failure to the last moment at which a bridge was driven.

The rows are those of tests/e2e/causes.py. A run that stops for another reason than the
row's, or moves again afterwards, ends the benchmark: that is a defect, not a figure.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.bench.rig import Given
from tests.bench.rows import Aim, Result, Row, row
from tests.e2e import browser_causes, causes


def proves(clean: int) -> str:
    """What so many runs without a miss say: the rule of three, with 95 % confidence."""
    return f"{clean} clean runs: fewer than {300.0 / clean:.2g} % miss (95 % sure)"


def rows(given: Given) -> Iterator[Result]:
    """Every cause, as often as asked for."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ground = stack.enter_context(causes.ground(home))
        for cause in filter(causes.possible, causes.CAUSES):
            taken_s = [causes.run_one(ground, cause) for _ in range(given.runs)]
            yield _row(cause.name, taken_s, cause.limit_s)
        browser = stack.enter_context(given.chromium())
        seat = stack.enter_context(browser_causes.Seat(ground, browser))
        for one in browser_causes.CAUSES:
            taken_s = [browser_causes.run_one(seat, one) for _ in range(given.runs)]
            yield _row(one.name, taken_s, one.limit_s)


def _row(name: str, taken_s: list[float], limit_s: float) -> Row:
    missed = sum(one > limit_s for one in taken_s)
    note = f"{missed} of {len(taken_s)} missed" if missed else proves(len(taken_s))
    values = [one * 1000.0 for one in taken_s]
    return row("stop", name, "ms", values, Aim(worst=limit_s * 1000.0), note)

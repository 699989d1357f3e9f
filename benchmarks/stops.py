"""Stop times, from the failure to the last moment at which a bridge was driven.

The rows are those of testkit/stops/causes.py. A run that stops for another reason than the row's,
or moves again afterwards, is a defect and ends the benchmark.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from testkit.pins.wheels import Chip
from testkit.stops import (
    browser_causes,
    causes,
    doctor_causes,
    double_faults,
    linux_causes,
    stopping,
)
from testkit.stops.ground import Ground, open_ground

from benchmarks.rig import Settings
from benchmarks.rows import Aim, Result, Row, row
from fpvcar.hil.stop_causes import BY_NAME, TWO_FAULTS_S


def proves(clean: int) -> str:
    """Return the upper limit of the miss rate after `clean` runs that had no miss, as text: the
    rule of three, with 95 % confidence."""
    return f"{clean} clean runs: fewer than {300.0 / clean:.2g} % miss (95 % sure)"


def rows(settings: Settings) -> Iterator[Result]:
    """Measure every cause, as often as requested."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ground = stack.enter_context(open_ground(home))
        for cause in filter(causes.possible, causes.CAUSES):
            runs = [causes.run_one(ground, cause) for _ in range(settings.runs)]
            yield _row(cause.name, runs, cause.limit_s, cause.guard)
        yield from _kernels(home / "kernel", settings.runs)
        yield from _pairs(ground, settings.runs)
        yield from _doctors(home, settings.runs)
        browser = stack.enter_context(settings.chromium())
        seat = stack.enter_context(browser_causes.Seat(ground, browser))
        for browser_cause in browser_causes.CAUSES:
            runs = [browser_causes.run_one(seat, browser_cause) for _ in range(settings.runs)]
            yield _row(browser_cause.name, runs, browser_cause.limit_s, browser_cause.guard)


def _kernels(home: Path, count: int) -> Iterator[Row]:
    """Measure the causes of `fpvcar hil` on a car that drives the kernel's pins."""
    home.mkdir()
    with open_ground(home, *linux_causes.OPTIONS) as ground:
        for cause in linux_causes.CAUSES:
            if cause.name in BY_NAME:
                runs = [causes.run_one(ground, cause) for _ in range(count)]
                yield _row(f"{cause.name}, kernel's pins", runs, cause.limit_s, cause.guard)


def _doctors(home: Path, count: int) -> Iterator[Row]:
    """Measure the motors that `fpvcar doctor --move` turns."""
    runtime = home / "doctor"
    runtime.mkdir()
    with Chip(runtime) as chip:
        for cause in doctor_causes.CAUSES:
            taken_s = [doctor_causes.run_one(chip, runtime, cause) for _ in range(count)]
            runs = [stopping.Run(off_s, ()) for off_s in taken_s]
            yield _row(cause.name, runs, cause.limit_s, "off")


def _pairs(ground: Ground, count: int) -> Iterator[Row]:
    """Measure two simultaneous faults, in the most critical pairs."""
    dice = random.Random(1)
    for first, second in double_faults.GRAVEST:
        runs = []
        for _ in range(count):
            gap_s = dice.random() * double_faults.GAP_MOST_S
            taken_s = double_faults.off_after_s(ground, (first, second), gap_s)
            runs.append(stopping.Run(taken_s, ()))
        yield _row(f"{first}, {second}", runs, TWO_FAULTS_S, "off")


def _row(name: str, runs: list[stopping.Run], limit_s: float, guard: str) -> Row:
    missed = sum(run.taken_s > limit_s for run in runs)
    note = f"{missed} of {len(runs)} missed" if missed else proves(len(runs))
    note += f"; guard: {guard}"
    spoilt = Counter(disturbance for run in runs for disturbance in run.spoilt)
    for disturbance, times in spoilt.items():
        note += f"; {times} repeated: {disturbance} (a busy machine)"
    values = [run.taken_s * 1000.0 for run in runs]
    return row("stop", name, "ms", values, Aim(worst=limit_s * 1000.0), note)

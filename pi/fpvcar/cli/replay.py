"""Verb `fpvcar replay`: reads recordings, runs them again (see recordings/replay/replay.py), and
reports differences."""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fpvcar.recordings.export import tables
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvcar.recordings.replay.drives import ReplayedDrive, replay_drives
from fpvcar.recordings.replay.replay import Difference
from fpvcar.runtime.units import SECOND_NS


def run(paths: Sequence[Path], partial: bool = False) -> int:
    """Run `fpvcar replay FILE...`. Return 0 if all results match the recording, 1 if not,
    INCOMPLETE if data is missing or the guard could not be run again in some steps; `partial`
    accepts that."""
    statuses, began_s = set[int](), time.monotonic()
    try:
        for drive in replay_drives(paths, _warn):
            print("\n".join(_report(drive, time.monotonic() - began_s)))
            statuses.add(drive.status)
            began_s = time.monotonic()
    except RecordingError as fault:
        _warn(str(fault))
        return 1
    if 1 in statuses or not statuses:
        return 1
    if INCOMPLETE in statuses and not partial:
        _warn("some steps could not be rerun; --partial accepts this")
        return INCOMPLETE
    return 0


def _warn(message: str) -> None:
    print(f"fpvcar replay: {message}", file=sys.stderr)


def _report(drive: ReplayedDrive, took_s: float) -> Iterator[str]:
    """Yield the report, line by line."""

    def utc(monotonic_ns: int) -> str:
        return tables.utc_text(drive.utc_ns(monotonic_ns))

    names, result = [file.name for file in drive.files], drive.result
    if result is None:
        yield f"fpvcar replay: {names[-1]}: {drive.fault}"
        return
    label = names[0] + (f" to {names[-1]}" if names[1:] else "")
    if not result.steps:
        yield f"{label}: contains no steps of the gate"
        return
    minutes, seconds = divmod((result.last_ns - result.first_ns) // SECOND_NS, 60)
    outcome = f"{result.differing:,} DIFFERENCES" if result.differing else "all as recorded"
    yield f"{label}: {result.steps:,} steps in {minutes}:{seconds:02d}, {outcome} ({took_s:.1f} s)"
    if result.unsure:
        sensors = ", ".join(sorted(result.unsure_by))
        yield (
            f"  the guard was not rerun in {result.unsure:,} of the steps, "
            f"as readings are missing of: {sensors}"
        )
    for hole in result.holes:
        ends = (utc(round(at_s * 1e9)) for at_s in hole)
        yield f"  steps are missing from {' to '.join(ends)}; continued after the gap"
    for difference in result.differences:
        yield from _difference(difference, utc(difference.step.now_ns))
    if result.differing > len(result.differences):
        yield f"  ... and {result.differing - len(result.differences):,} more"


def _difference(difference: Difference, at: str) -> Iterator[str]:
    yield f"  {at} {difference.name}"
    yield f"    recorded  {difference.recorded}"
    yield f"    rerun     {difference.replayed}"
    yield f"    step      {msgspec.json.encode(difference.step).decode()}"

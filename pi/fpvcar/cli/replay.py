"""Verb `fpvcar replay`: reads recordings, runs them again (see recordings/replay/replay.py), and
reports differences."""

import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from fpvcar.config import ConfigError
from fpvcar.recordings import messages
from fpvcar.recordings.export import export, tables
from fpvcar.recordings.export.export import OpenRecording
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.messages import About, FormatError
from fpvcar.recordings.repair import damage
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvcar.recordings.replay import replay
from fpvcar.recordings.replay.ages import CapturedPicture
from fpvcar.recordings.replay.check_inputs import RecordedWish
from fpvcar.recordings.replay.replay import Difference, ReplayResult
from fpvcar.runtime.units import SECOND_NS


def run(paths: Sequence[Path], partial: bool = False) -> int:
    """Run `fpvcar replay FILE...`. Return 0 if all results match the recording, 1 if not,
    INCOMPLETE if data is missing or the guard could not be run again in some steps; `partial`
    accepts that."""
    try:
        with closing(export.one_by_one(export.in_order(paths, _warn), _warn)) as inputs:
            drives = itertools.groupby(inputs, _drive)
            statuses = {_replay(files) for _, files in drives} or {1}
    except RecordingError as fault:
        _warn(str(fault))
        return 1
    if 1 in statuses:
        return 1
    if INCOMPLETE in statuses and not partial:
        _warn("some steps could not be rerun; --partial accepts this")
        return INCOMPLETE
    return 0


def _warn(message: str) -> None:
    print(f"fpvcar replay: {message}", file=sys.stderr)


def _drive(file: OpenRecording) -> str:
    """Return the name of a file's drive; the files of a drive are run in sequence."""
    about = file.recording.about
    return about.recording if about else str(file.path)


def _replay(files: Iterator[OpenRecording]) -> int:
    """Run one drive again; the first file's description holds for all its files."""
    first, names = next(files), list[str]()
    about = first.recording.about
    if about is None:
        name = first.path.name
        print(f"fpvcar replay: {name}: contains no profile, so it cannot be replayed")
        return 1

    missing = False

    def recorded() -> Iterator[messages.Step | RecordedWish | CapturedPicture]:
        nonlocal missing
        for path, recording in itertools.chain([first], files):
            names.append(path.name)
            missing = missing or damage.cut_short(path, recording)
            inputs = recording.messages(set(replay.TOPICS))
            yield from replay.inputs_of(inputs, about.utc_offset_ns)

    began_s = time.monotonic()
    try:
        verdict = replay.run(about.parsed(), recorded())
    except (ConfigError, FormatError) as fault:
        print(f"fpvcar replay: {(names or [first.path.name])[-1]}: {fault}")
        return 1
    took_s = time.monotonic() - began_s
    label = names[0] + (f" to {names[-1]}" if names[1:] else "")
    print("\n".join(report(label, about, verdict, took_s)))
    if verdict.differing or not verdict.steps:
        return 1
    return INCOMPLETE if missing or verdict.holes or verdict.unsure else 0


def report(names: str, about: About, verdict: ReplayResult, took_s: float) -> Iterator[str]:
    """Yield the report, line by line."""

    def utc(monotonic_ns: int) -> str:
        return tables.utc_text(monotonic_ns + about.utc_offset_ns)

    if not verdict.steps:
        yield f"{names}: contains no steps of the gate"
        return
    minutes, seconds = divmod((verdict.last_ns - verdict.first_ns) // SECOND_NS, 60)
    result = f"{verdict.differing:,} DIFFERENCES" if verdict.differing else "all as recorded"
    yield (
        f"{names}: {verdict.steps:,} steps in {minutes}:{seconds:02d}, {result} ({took_s:.1f} s)"
    )
    if verdict.unsure:
        names = ", ".join(sorted(verdict.unsure_by))
        yield (
            f"  the guard was not rerun in {verdict.unsure:,} of the steps, "
            f"as readings are missing of: {names}"
        )
    for hole in verdict.holes:
        ends = (utc(round(at_s * 1e9)) for at_s in hole)
        yield f"  steps are missing from {' to '.join(ends)}; continued after the gap"
    for difference in verdict.differences:
        yield from _difference(difference, utc(difference.step.now_ns))
    if verdict.differing > len(verdict.differences):
        yield f"  ... and {verdict.differing - len(verdict.differences):,} more"


def _difference(difference: Difference, at: str) -> Iterator[str]:
    yield f"  {at} {difference.name}"
    yield f"    recorded  {difference.recorded}"
    yield f"    rerun     {difference.replayed}"
    yield f"    step      {msgspec.json.encode(difference.step).decode()}"

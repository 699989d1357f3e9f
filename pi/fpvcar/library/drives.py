"""Split recordings into drives: time ranges over consecutive files. Pure.

    consecutive files               one run of the recorder
    a driver at the wheel           a drive; pauses under SPLIT_S do not split it
    no driver for SPLIT_S or more   parked: a separate range

A one-minute file may belong to two drives, and files are never cut. Deleting a drive deletes the
files that no other drive shares, including parked time in them. The remaining parts of a deleted
drive do not count as a drive, so they share no files.
"""

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from fpvcar.library.summaries import Entry
from fpvcar.recordings.messages import Mark
from fpvcar.recordings.names import stem
from fpvcar.runtime.workers import Rest, no_rest

SPLIT_S = 30.0
PAUSE_S = 5.0
"""Files further apart than this belong to different runs."""
OVERLAP_S = 1.0
"""Files that overlap by more than this belong to different runs: the car's clock was set back."""
LEAST_S = 0.05
"""Minimum overlap of a file with a drive, in seconds."""


class Part(Struct, frozen=True):
    """Part of a file in a drive; all times except `start_ms` are seconds from the file's start.

    The drive covers `from_s` to `to_s`. `shared` is true if another drive also uses the file.
    """

    name: str
    start_ms: float
    seconds: float
    bytes: int
    state: str
    lost: str
    pictures: int
    from_s: float
    to_s: float
    shared: bool
    marks: tuple[Mark, ...]


class Drive(Struct, frozen=True):
    """Time from the first driver until no driver was active for SPLIT_S.

    `parked` marks a range with no driver. `drivers` lacks names that the files do not contain.
    `metres` is None if unknown. `state` combines those of its files: "open" before "damaged" before
    "closed".
    """

    id: str
    start_ms: float
    seconds: float
    parked: bool
    drivers: tuple[str, ...]
    stops: dict[str, int]
    metres: float | None
    bytes: int
    state: str
    parts: tuple[Part, ...]
    title: str = ""

    @property
    def moments(self) -> list[tuple[str, float]]:
        """Return the middle of each part as (file stem, seconds). Titles are keyed by these."""
        return [(stem(part.name), (part.from_s + part.to_s) / 2) for part in self.parts]


class DriveFilter(NamedTuple):
    """Filter of a drive list; times are UTC. `causes` are stop causes.

    `wheel` is "parked", "driven" (driven, or with a mark), or "" for all.
    """

    driver: str = ""
    wheel: str = ""
    since_ms: float = float("-inf")
    until_ms: float = float("inf")
    text: str = ""
    causes: frozenset[str] = frozenset()
    id: str = ""

    def takes(self, drive: Drive) -> bool:
        """Return whether the list shows this drive."""
        return (
            self._at_wheel(drive)
            and (not self.id or self.id == drive.id)
            and (not self.driver or self.driver in drive.drivers)
            and self.since_ms <= drive.start_ms < self.until_ms
            and (not self.text or self._mentions(drive))
        )

    def unhidden(self) -> "DriveFilter":
        """Return the filter extended to parked ranges that have no mark."""
        return self._replace(wheel="") if self.wheel == "driven" else self

    def _at_wheel(self, drive: Drive) -> bool:
        if self.wheel == "driven":
            return not drive.parked or any(part.marks for part in drive.parts)
        return not self.wheel or drive.parked

    def _mentions(self, drive: Drive) -> bool:
        text = self.text.casefold()
        texts = (drive.title, *(mark.text for part in drive.parts for mark in part.marks))
        return not self.causes.isdisjoint(drive.stops) or any(
            text in candidate.casefold() for candidate in texts
        )


DeletedTest = Callable[[Entry, float, float], bool]
"""Test whether a range of a file, in seconds, was deleted. See deleted.py."""


class _Run(NamedTuple):
    """Consecutive files of one run, oldest first."""

    files: list[Entry]

    @property
    def start_ms(self) -> float:
        return self.files[0].start_ms

    @property
    def end_ms(self) -> float:
        return max(map(_end_ms, self.files[-2:]))


def _end_ms(entry: Entry) -> float:
    return entry.start_ms + entry.seconds * 1000.0


def _runs(entries: Iterable[Entry]) -> list[_Run]:
    runs: list[_Run] = []
    by_recording: dict[str, _Run] = {}
    by_car: dict[str, _Run] = {}
    """Last run of each car: two cars may drive at once."""
    for entry in sorted(entries, key=lambda entry: entry.start_ms):
        recording = stem(entry.name).rpartition("-")[0] or entry.name
        car = recording.rpartition("-")[0]
        candidates = [
            runs_by_key[key]
            for runs_by_key, key in ((by_recording, recording), (by_car, car))
            if key in runs_by_key
        ]
        run = next((run for run in candidates if _follows(run, entry)), None)
        if run is None:
            run = _Run([])
            runs.append(run)
        run.files.append(entry)
        by_recording[recording] = by_car[car] = run
    return runs


def _follows(run: _Run, entry: Entry) -> bool:
    pause_s = (entry.start_ms - run.end_ms) / 1000.0
    return -OVERLAP_S < pause_s < PAUSE_S


class _DriveRange(NamedTuple):
    """Range of a run in ms. A parked range has no driver."""

    start_ms: float
    end_ms: float
    parked: bool


def _driven(run: _Run) -> Iterator[tuple[float, float]]:
    """Yield the times with a driver, or with an unknown driver. Other times are parked."""
    for entry in run.files:
        if entry.stints is None:
            yield entry.start_ms, _end_ms(entry)
        for stint in entry.stints or ():
            start_ms = min(max(entry.start_ms, stint.from_ns / 1e6), _end_ms(entry))
            yield start_ms, max(start_ms, min(stint.to_ns / 1e6, _end_ms(entry)))


def _ranges(run: _Run) -> list[_DriveRange]:
    """Split a run. Parked time under SPLIT_S at either end joins the nearest drive."""
    short_ms = SPLIT_S * 1000.0
    busy: list[list[float]] = []
    for start_ms, end_ms in sorted(_driven(run)):
        if busy and start_ms - busy[-1][1] < short_ms:
            busy[-1][1] = max(busy[-1][1], end_ms)
        else:
            busy.append([start_ms, end_ms])
    at_ms, ranges = run.start_ms, list[_DriveRange]()
    for start_ms, end_ms in busy:
        if start_ms - at_ms < short_ms:
            start_ms = at_ms
        else:
            ranges.append(_DriveRange(at_ms, start_ms, True))
        ranges.append(_DriveRange(start_ms, end_ms, False))
        at_ms = end_ms
    if not ranges or run.end_ms - at_ms >= short_ms:
        ranges.append(_DriveRange(at_ms, run.end_ms, True))
    else:
        ranges[-1] = ranges[-1]._replace(end_ms=max(at_ms, run.end_ms))
    return ranges


def drives_of(
    entries: Iterable[Entry],
    rest: Rest = no_rest,
    gone: DeletedTest = lambda file, from_s, to_s: False,
) -> list[Drive]:
    """Return the drives of all files, newest first. Calls `rest` before each drive.

    Drives whose files are all `gone` are omitted.
    """
    result = []
    for run in _runs(entries):
        starts_ms = [file.start_ms for file in run.files]
        ranges = list[tuple[_DriveRange, list[Entry]]]()
        for span in _ranges(run):
            rest()
            first = max(0, bisect.bisect_left(starts_ms, span.start_ms) - 2)
            last = bisect.bisect_right(starts_ms, span.end_ms)
            near = _near(run.files[first:last], span)
            if not all(gone(file, *_range(file, span)) for file in near):
                ranges.append((span, near))
        owners, drives = Counter[str](), Counter[str]()
        for span, near in ranges:
            owners.update(file.name for file in near)
            if not span.parked:  # parked time does not make a file shared
                drives.update(file.name for file in near)
        for span, near in ranges:
            result.append(_drive(near, span, owners if span.parked else drives))
    return sorted(result, key=lambda drive: (drive.start_ms, drive.parked), reverse=True)


def _range(entry: Entry, span: _DriveRange) -> tuple[float, float]:
    """Return the overlap of a file and a range, in seconds from the file's start."""
    from_s = min(entry.seconds, max(0.0, (span.start_ms - entry.start_ms) / 1000.0))
    to_s = min(entry.seconds, (span.end_ms - entry.start_ms) / 1000.0)
    return from_s, max(from_s, to_s)


def _near(files: Sequence[Entry], span: _DriveRange) -> list[Entry]:
    """Return the files that overlap a range; at least one, however short the range."""
    near = [entry for entry in files if _shares(entry, span)]
    return near or [max(files, key=lambda entry: _shared_ms(entry, span))]


def _drive(near: Sequence[Entry], span: _DriveRange, of: Counter[str]) -> Drive:
    """Build a drive. `of` counts the drives that use each file."""
    parts = [_part(entry, span, of[entry.name] > 1) for entry in near]
    stints = [
        stint
        for entry in near
        for stint in entry.stints or ()
        if span.start_ms <= stint.from_ns / 1e6 <= span.end_ms and not span.parked
    ]
    stops = Counter[str]()
    for stint in stints:
        stops.update(stint.stops)
    return Drive(
        f"{stem(parts[0].name)}@{parts[0].from_s:.0f}{'p' * span.parked}",
        span.start_ms,
        (span.end_ms - span.start_ms) / 1000.0,
        span.parked,
        tuple(dict.fromkeys(stint.name for stint in stints if stint.name)),
        dict(stops),
        round(sum(stint.metres for stint in stints), 1) if stints else None,
        sum(part.bytes for part in parts),
        _state(parts),
        tuple(parts),
    )


def _shares(entry: Entry, span: _DriveRange) -> bool:
    """Return whether a file overlaps a range. A file under LEAST_S must begin in it."""
    if entry.seconds < LEAST_S:
        return span.start_ms <= entry.start_ms <= span.end_ms
    return _shared_ms(entry, span) >= LEAST_S * 1000.0


def _shared_ms(entry: Entry, span: _DriveRange) -> float:
    return min(_end_ms(entry), span.end_ms) - max(entry.start_ms, span.start_ms)


def _part(entry: Entry, span: _DriveRange, shared: bool) -> Part:
    from_s, to_s = _range(entry, span)
    marks = tuple(mark for mark in entry.marks if from_s <= mark.t <= to_s)
    return Part(
        entry.name,
        entry.start_ms,
        entry.seconds,
        entry.bytes,
        entry.state,
        entry.lost,
        entry.pictures,
        from_s,
        to_s,
        shared,
        marks,
    )


def _state(parts: Iterable[Part]) -> str:
    states = {part.state for part in parts}
    return next((state for state in ("open", "damaged") if state in states), "closed")

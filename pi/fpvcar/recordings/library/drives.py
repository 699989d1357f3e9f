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

from fpvcar.recordings.library.summaries import Entry, Mark
from fpvcar.recordings.names import stem

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
        return [(stem(one.name), (one.from_s + one.to_s) / 2) for one in self.parts]


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

    def takes(self, drive: Drive) -> bool:
        """Return whether the list shows this drive."""
        return (
            self._at_wheel(drive)
            and (not self.driver or self.driver in drive.drivers)
            and self.since_ms <= drive.start_ms < self.until_ms
            and (not self.text or self._says(drive))
        )

    def unhidden(self) -> "DriveFilter":
        """Return the filter extended to parked ranges that have no mark."""
        return self._replace(wheel="") if self.wheel == "driven" else self

    def _at_wheel(self, drive: Drive) -> bool:
        if self.wheel == "driven":
            return not drive.parked or any(one.marks for one in drive.parts)
        return not self.wheel or drive.parked

    def _says(self, drive: Drive) -> bool:
        text = self.text.casefold()
        said = (drive.title, *(mark.text for one in drive.parts for mark in one.marks))
        return not self.causes.isdisjoint(drive.stops) or any(
            text in one.casefold() for one in said
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
    of: dict[str, _Run] = {}
    last: dict[str, _Run] = {}
    """Last run of each car: two cars may drive at once."""
    for one in sorted(entries, key=lambda one: one.start_ms):
        recording = stem(one.name).rpartition("-")[0] or one.name
        car = recording.rpartition("-")[0]
        before = [known[key] for known, key in ((of, recording), (last, car)) if key in known]
        run = next((run for run in before if _follows(run, one)), None)
        if run is None:
            run = _Run([])
            runs.append(run)
        run.files.append(one)
        of[recording] = last[car] = run
    return runs


def _follows(run: _Run, one: Entry) -> bool:
    pause_s = (one.start_ms - run.end_ms) / 1000.0
    return -OVERLAP_S < pause_s < PAUSE_S


class _DriveRange(NamedTuple):
    """Range of a run in ms. A parked range has no driver."""

    start_ms: float
    end_ms: float
    parked: bool


def _driven(run: _Run) -> Iterator[tuple[float, float]]:
    """Yield the times with a driver, or with an unknown driver. Other times are parked."""
    for one in run.files:
        if one.stints is None:
            yield one.start_ms, _end_ms(one)
        for stint in one.stints or ():
            start_ms = min(max(one.start_ms, stint.from_ns / 1e6), _end_ms(one))
            yield start_ms, max(start_ms, min(stint.to_ns / 1e6, _end_ms(one)))


def _stretches(run: _Run) -> list[_DriveRange]:
    """Split a run. Parked time under SPLIT_S at either end joins the nearest drive."""
    short_ms = SPLIT_S * 1000.0
    busy: list[list[float]] = []
    for start_ms, end_ms in sorted(_driven(run)):
        if busy and start_ms - busy[-1][1] < short_ms:
            busy[-1][1] = max(busy[-1][1], end_ms)
        else:
            busy.append([start_ms, end_ms])
    at_ms, found = run.start_ms, list[_DriveRange]()
    for start_ms, end_ms in busy:
        if start_ms - at_ms < short_ms:
            start_ms = at_ms
        else:
            found.append(_DriveRange(at_ms, start_ms, True))
        found.append(_DriveRange(start_ms, end_ms, False))
        at_ms = end_ms
    if not found or run.end_ms - at_ms >= short_ms:
        found.append(_DriveRange(at_ms, run.end_ms, True))
    else:
        found[-1] = found[-1]._replace(end_ms=max(at_ms, run.end_ms))
    return found


def drives_of(
    entries: Iterable[Entry],
    rest: Callable[[], None] = lambda: None,
    gone: DeletedTest = lambda file, from_s, to_s: False,
) -> list[Drive]:
    """Return the drives of all files, newest first. Calls `rest` before each drive.

    Drives whose files are all `gone` are omitted.
    """
    found = []
    for run in _runs(entries):
        starts_ms = [one.start_ms for one in run.files]
        made = list[tuple[_DriveRange, list[Entry]]]()
        for one in _stretches(run):
            rest()
            first = max(0, bisect.bisect_left(starts_ms, one.start_ms) - 2)
            last = bisect.bisect_right(starts_ms, one.end_ms)
            near = _near(run.files[first:last], one)
            if not all(gone(file, *_range(file, one)) for file in near):
                made.append((one, near))
        owners, drives = Counter[str](), Counter[str]()
        for one, near in made:
            owners.update(file.name for file in near)
            if not one.parked:  # parked time does not make a file shared
                drives.update(file.name for file in near)
        for one, near in made:
            found.append(_drive(near, one, owners if one.parked else drives))
    return sorted(found, key=lambda one: (one.start_ms, one.parked), reverse=True)


def _range(one: Entry, stretch: _DriveRange) -> tuple[float, float]:
    """Return the overlap of a file and a stretch, in seconds from the file's start."""
    from_s = min(one.seconds, max(0.0, (stretch.start_ms - one.start_ms) / 1000.0))
    to_s = min(one.seconds, (stretch.end_ms - one.start_ms) / 1000.0)
    return from_s, max(from_s, to_s)


def _near(files: Sequence[Entry], stretch: _DriveRange) -> list[Entry]:
    """Return the files that overlap a stretch; at least one, however short the stretch."""
    near = [one for one in files if _shares(one, stretch)]
    return near or [max(files, key=lambda one: _shared_ms(one, stretch))]


def _drive(near: Sequence[Entry], stretch: _DriveRange, of: Counter[str]) -> Drive:
    """Build a drive. `of` counts the drives that use each file."""
    parts = [_part(one, stretch, of[one.name] > 1) for one in near]
    stints = [
        stint
        for one in near
        for stint in one.stints or ()
        if stretch.start_ms <= stint.from_ns / 1e6 <= stretch.end_ms and not stretch.parked
    ]
    stops = Counter[str]()
    for stint in stints:
        stops.update(stint.stops)
    return Drive(
        f"{stem(parts[0].name)}@{parts[0].from_s:.0f}{'p' * stretch.parked}",
        stretch.start_ms,
        (stretch.end_ms - stretch.start_ms) / 1000.0,
        stretch.parked,
        tuple(dict.fromkeys(one.name for one in stints if one.name)),
        dict(stops),
        round(sum(one.metres for one in stints), 1) if stints else None,
        sum(one.bytes for one in parts),
        _state(parts),
        tuple(parts),
    )


def _shares(one: Entry, stretch: _DriveRange) -> bool:
    """Return whether a file overlaps a stretch. A file under LEAST_S must begin in it."""
    if one.seconds < LEAST_S:
        return stretch.start_ms <= one.start_ms <= stretch.end_ms
    return _shared_ms(one, stretch) >= LEAST_S * 1000.0


def _shared_ms(one: Entry, stretch: _DriveRange) -> float:
    return min(_end_ms(one), stretch.end_ms) - max(one.start_ms, stretch.start_ms)


def _part(one: Entry, stretch: _DriveRange, shared: bool) -> Part:
    from_s, to_s = _range(one, stretch)
    marks = tuple(mark for mark in one.marks if from_s <= mark.t <= to_s)
    return Part(
        one.name,
        one.start_ms,
        one.seconds,
        one.bytes,
        one.state,
        one.lost,
        one.pictures,
        from_s,
        to_s,
        shared,
        marks,
    )


def _state(parts: Iterable[Part]) -> str:
    states = {one.state for one in parts}
    return next((one for one in ("open", "damaged") if one in states), "closed")

"""Splits recordings into drives: ranges of time over files. Pure.

    files that follow each other    a run of the recorder
    somebody at the wheel           a drive; less than SPLIT_S without one splits none
    nobody for SPLIT_S and more     parked: a range of its own

A file of a minute may belong to two drives, and no file is cut: to delete a drive is to
delete the files in which no other drive has a part. Parked time in them goes along.
What stays of a drive that was deleted is no drive any more: it shares no file.
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
"""Files that are further apart than this are of two runs,"""
OVERLAP_S = 1.0
"""and so are files that overlap: between them somebody set the car's clock back."""
LEAST_S = 0.05
"""A file that shares less than this with a drive has no part in it."""


class Part(Struct, frozen=True):
    """A file's part in a drive; all times but `start_ms` are s from the file's start.

    Drive from `from_s` to `to_s`; `shared`: another drive has a part in it, too.
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
    """From when somebody took the wheel until nobody had it for SPLIT_S.

    `parked`: nobody had it. `drivers` may lack a name that no file says; `metres` None
    is unknown. state: as of its files, "open" before "damaged" before "closed".
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
        """The middle of each part, as (file's stem, s): what a title hangs on."""
        return [(stem(one.name), (one.from_s + one.to_s) / 2) for one in self.parts]


class Wanted(NamedTuple):
    """What a list is filtered by; times are UTC. `causes` are of stops. `wheel` is
    "parked", "driven" (what was driven or has a mark), or "" for all."""

    driver: str = ""
    wheel: str = ""
    since_ms: float = float("-inf")
    until_ms: float = float("inf")
    text: str = ""
    causes: frozenset[str] = frozenset()

    def takes(self, drive: Drive) -> bool:
        """Does the list show this drive?"""
        return (
            self._at_wheel(drive)
            and (not self.driver or self.driver in drive.drivers)
            and self.since_ms <= drive.start_ms < self.until_ms
            and (not self.text or self._says(drive))
        )

    def unhidden(self) -> "Wanted":
        """The same, with what was parked without a mark."""
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


Gone = Callable[[Entry, float, float], bool]
"""Was this of a file, from s to s, deleted? See deleted.py."""


class _Run(NamedTuple):
    """Files that follow each other, the oldest first."""

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
    """Of each car: two may drive at once."""
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


class _Stretch(NamedTuple):
    """A range of a run, ms; nobody drives in one that is parked."""

    start_ms: float
    end_ms: float
    parked: bool


def _driven(run: _Run) -> Iterator[tuple[float, float]]:
    """When somebody drove, or nobody knows; a file says nothing of other times."""
    for one in run.files:
        if one.stints is None:
            yield one.start_ms, _end_ms(one)
        for stint in one.stints or ():
            start_ms = min(max(one.start_ms, stint.from_ns / 1e6), _end_ms(one))
            yield start_ms, max(start_ms, min(stint.to_ns / 1e6, _end_ms(one)))


def _stretches(run: _Run) -> list[_Stretch]:
    """Splits a run; what is shorter than SPLIT_S at its two ends joins a drive."""
    short_ms = SPLIT_S * 1000.0
    busy: list[list[float]] = []
    for start_ms, end_ms in sorted(_driven(run)):
        if busy and start_ms - busy[-1][1] < short_ms:
            busy[-1][1] = max(busy[-1][1], end_ms)
        else:
            busy.append([start_ms, end_ms])
    at_ms, found = run.start_ms, list[_Stretch]()
    for start_ms, end_ms in busy:
        if start_ms - at_ms < short_ms:
            start_ms = at_ms
        else:
            found.append(_Stretch(at_ms, start_ms, True))
        found.append(_Stretch(start_ms, end_ms, False))
        at_ms = end_ms
    if not found or run.end_ms - at_ms >= short_ms:
        found.append(_Stretch(at_ms, run.end_ms, True))
    else:
        found[-1] = found[-1]._replace(end_ms=max(at_ms, run.end_ms))
    return found


def drives_of(
    entries: Iterable[Entry],
    rest: Callable[[], None] = lambda: None,
    gone: Gone = lambda file, from_s, to_s: False,
) -> list[Drive]:
    """Makes the drives of all files, the newest first; calls `rest` before each. What
    is wholly `gone` is none."""
    found = []
    for run in _runs(entries):
        starts_ms = [one.start_ms for one in run.files]
        made = list[tuple[_Stretch, list[Entry]]]()
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
            if not one.parked:  # parked time is nobody's
                drives.update(file.name for file in near)
        for one, near in made:
            found.append(_drive(near, one, owners if one.parked else drives))
    return sorted(found, key=lambda one: (one.start_ms, one.parked), reverse=True)


def _range(one: Entry, stretch: _Stretch) -> tuple[float, float]:
    """A file's part in a stretch, s from its start."""
    from_s = min(one.seconds, max(0.0, (stretch.start_ms - one.start_ms) / 1000.0))
    to_s = min(one.seconds, (stretch.end_ms - one.start_ms) / 1000.0)
    return from_s, max(from_s, to_s)


def _near(files: Sequence[Entry], stretch: _Stretch) -> list[Entry]:
    """The files that have a part in a stretch: never none, however short it is."""
    near = [one for one in files if _shares(one, stretch)]
    return near or [max(files, key=lambda one: _shared_ms(one, stretch))]


def _drive(near: Sequence[Entry], stretch: _Stretch, of: Counter[str]) -> Drive:
    """`of` counts the drives that a file has a part in."""
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


def _shares(one: Entry, stretch: _Stretch) -> bool:
    """Has a file a part in a stretch? One that is next to nothing begins in it."""
    if one.seconds < LEAST_S:
        return stretch.start_ms <= one.start_ms <= stretch.end_ms
    return _shared_ms(one, stretch) >= LEAST_S * 1000.0


def _shared_ms(one: Entry, stretch: _Stretch) -> float:
    return min(_end_ms(one), stretch.end_ms) - max(one.start_ms, stretch.start_ms)


def _part(one: Entry, stretch: _Stretch, shared: bool) -> Part:
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

"""Verification of sessions in the store: lists, records and files must agree."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fpvcar.runtime.clock import Clock
from fpvcar.runtime.units import MB
from fpvstation.store.disk import Disk
from fpvstation.store.store import Store

UNJUDGED = "not moved: fix this, and verify again"


class Verdict(NamedTuple):
    """Result for one segment, or a fault of a list. `fault` is "" if it is right; `done`: the
    action taken on the fault."""

    path: str
    size: int
    fault: str = ""
    done: str = ""
    right: bool = True
    """False if a segment is bad, or could not be verified."""


def verify(
    store: Store,
    disk: Disk,
    sessions: Iterable[str],
    most_mb_s: float,
    clock_s: Clock = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    utc_s: Clock = time.time,
) -> Iterator[Verdict]:
    """Verify sessions at a limited rate: the list of each, then its segments. A bad segment is
    set aside, so that it is fetched again while the car or a remote has it. A segment that
    this machine may not read is reported, and stays. Of a session whose
    archive is not mounted only the record is verified. Raises StoreGone."""
    begun_s, read = clock_s(), 0
    for session in sessions:
        right = True
        for verdict in _session(store, disk, session):
            yield verdict
            right = right and verdict.right
            read += verdict.size
            ahead_s = read / (most_mb_s * MB) - (clock_s() - begun_s)
            if ahead_s > 0.0:
                sleep(ahead_s)
        if right and not store.is_away(session):
            store.note_verified(session, utc_s())


def _session(store: Store, disk: Disk, session: str) -> Iterator[Verdict]:
    try:
        faults = store.audit(session)
        listed = [] if store.is_unmounted(session) else store.listed(session)
    except OSError as error:
        yield Verdict(session, 0, error.strerror or str(error), UNJUDGED, False)
        return
    for listed_fault in faults:
        yield Verdict(listed_fault.path, 0, listed_fault.fault, listed_fault.done)
    for segment in listed:
        try:
            size, finding = disk.size(segment.path) or 0, store.verify_segment(segment)
        except OSError as error:
            yield Verdict(segment.path, 0, error.strerror or str(error), UNJUDGED, False)
        else:
            fault, done = finding[1:] if finding else ("", "")
            yield Verdict(segment.path, size, fault, done, not finding)

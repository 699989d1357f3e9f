"""Size limit of a store: evicts the oldest sessions.

At a station with remotes, a session is evicted only if all remotes have it, verified within the
last day; an older replica is verified again first. At a station without remotes the store is a
ring: evicted sessions are lost.
"""

import calendar
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Text
from fpvcar.runtime.units import MB
from fpvstation.store.disk import Disk
from fpvstation.store.replica_log import DAY_S, ReplicaLog, is_recent, segments_of
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

FIRST_S = calendar.timegm((2025, 1, 1, 0, 0, 0))
"""Earliest plausible clock time, UTC."""
BEGAN = re.compile(r"-(\d{8}T\d{6})Z(?:\.[0-9a-f]{8})?")
UNSURE_S = 3600.0
"""Time that a replica at a remote may wait for verification before that is a fault."""
EVERY_S, AGAIN_S = 3600.0, 60.0
"""Pause between two runs: normally, and while the limit is exceeded."""
BOUND_COPIES = Phrase(
    "bound_copies",
    "{over} MB over the limit of {most} MB; sessions without a copy at every remote: {count} "
    "(the oldest: {first})",
)
BOUND_REST = Phrase(
    "bound_rest",
    "{over} MB over the limit of {most} MB: the rest is the newest session, or has a damaged list",
)
BOUND_UNSURE = Phrase(
    "bound_unsure",
    "{over} MB over the limit of {most} MB; sessions whose copies no remote has verified for "
    "a day: {count} (the oldest: {first})",
)
log = logging.getLogger("fpvstation")


class Bound:
    """Size limit of one store. Every call may block."""

    def __init__(
        self,
        store: Store,
        disk: Disk,
        replicas: ReplicaLog,
        most: int,
        places: Sequence[str] = (),
        verify_soon: Callable[[Iterable[str]], None] = lambda sessions: None,
        utc_s: Clock = time.time,
    ) -> None:
        """Set the limit. `most`: bytes of all segments. `places`: all remotes. `verify_soon` gets
        the sessions whose replicas at the remotes have to be verified again."""
        self._store, self._disk, self._replicas, self._most = store, disk, replicas, most
        self._places, self._verify_soon, self._utc_s = places, verify_soon, utc_s
        self._unsure_s = math.inf
        """Time since when only verifications hold up the eviction."""
        self.kept = True
        """False if the store exceeds the limit."""

    def run(self) -> Iterator[Text]:
        """Evict the oldest sessions, but never the newest one, until all others fit; yield a
        fault if they do not. Raises OSError, StationError."""
        self._store.check()
        listed = dict(self._store.readable())
        sizes = {
            session: sum(self._disk.size(segment.path) or 0 for segment in segments)
            for session, segments in listed.items()
            if segments and not self._store.archived(session)
        }
        over = sum(sizes.values()) - self._most
        lacking, unsure = list[str](), list[str]()
        by_age = sorted(sizes, key=lambda session: age_key(self._disk, session, listed[session]))
        for session in by_age[:-1] if over > 0 else ():
            if over <= 0:
                break
            status = self._at_remotes(listed[session])
            if status == "lacking":
                lacking.append(session)
            elif status == "unsure":
                unsure.append(session)
            elif self._store.evict(session, self._may_evict):
                log.info("%s evicted: the store is over its limit", session)
                over -= sizes[session]
        self.kept = over <= 0
        self._verify_soon(unsure if over > 0 else ())
        yield from self._faults(over, lacking, unsure)

    def pause_s(self, took_s: float) -> float:
        """Return the pause after a run that took so long."""
        return EVERY_S if self.kept else max(AGAIN_S, 50.0 * took_s)

    def _faults(self, over: int, lacking: Sequence[str], unsure: Sequence[str]) -> Iterator[Text]:
        now_s = self._utc_s()
        self._unsure_s = min(self._unsure_s, now_s) if unsure and over > 0 else math.inf
        if over <= 0:
            return
        excess = {"over": f"{over / MB:.0f}", "most": f"{self._most / MB:.0f}"}
        if lacking:
            yield BOUND_COPIES(**excess, count=len(lacking), first=lacking[0])
        elif not unsure:
            yield BOUND_REST(**excess)
        elif now_s - self._unsure_s >= UNSURE_S:
            yield BOUND_UNSURE(**excess, count=len(unsure), first=unsure[0])

    def _may_evict(self, listed: Sequence[StoredSegment]) -> bool:
        return bool(listed) and not self._at_remotes(listed)

    def _at_remotes(self, listed: Sequence[StoredSegment]) -> str:
        """Return "" if all remotes have these segments, "unsure" if a verification is too old,
        "lacking" if one remote does not have them."""
        if not self._places:
            return ""
        expected = segments_of(listed)
        session = listed[0].path.rpartition("/")[0]
        replicas, unsure = self._replicas.of(session), False
        for place in self._places:
            replica = replicas.get(place)
            if replica is None or not expected.items() <= replica.segments.items():
                return "lacking"
            unsure |= not is_recent(replica.verified_s, self._utc_s(), DAY_S)
        return "unsure" if unsure else ""


def age_key(disk: Disk, session: str, listed: Sequence[StoredSegment]) -> tuple[float, float]:
    """Return the sort key of a session: the time of its recording.

    If the car's clock was wrong (before 2025, or after the arrival here), the arrival counts.
    If that is before 2025, too, the session comes last: it is evicted after all others.
    """
    arrived_s = max(disk.changed_s(segment.path) for segment in listed)
    began = BEGAN.search(session.rpartition("/")[2])
    began_s = _utc_s(began[1]) if began else 0.0
    if arrived_s < FIRST_S:
        age_s = began_s if began_s >= FIRST_S else math.inf
    else:
        age_s = began_s if FIRST_S <= began_s <= arrived_s else arrived_s
    return age_s, arrived_s


def _utc_s(text: str) -> float:
    try:
        return calendar.timegm(time.strptime(text, "%Y%m%dT%H%M%S"))
    except ValueError:
        return 0.0

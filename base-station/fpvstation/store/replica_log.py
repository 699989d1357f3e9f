"""Records of the replicas of each session, and when each was verified.

    .copies/CAR/2026-11-21/SESSION.json      one small record, replaced as a whole

A record holds the name and checksum of each segment that a place had at its last verification. A
session that grows, or is mended, is incomplete there until it is verified again.

The record of this store itself (HERE) holds every segment that was ever published and not removed
by people. It is the second source besides SHA256SUMS: audit.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from fpvstation.store.disk import Disk
from fpvstation.store.sums_file import StoredSegment

COPIES, SUFFIX = ".copies", ".json"
HERE = ""
"""Place of this store's own copy: verified when each segment is stored, and by `fpvstation
verify`."""
EVICTED = "<evicted>"
"""Place of segments that a bound evicted from this store: remotes have them, and no car and no
remote brings them back."""
DAY_S = 86400.0
DAMAGED = ValueError, msgspec.DecodeError, RecursionError
REJUDGED_S, RECENT_S = 7 * DAY_S, 30 * DAY_S
"""Age at which a remote's replica is verified again, and up to which it counts."""
AHEAD_S = 3600.0
"""Clock difference up to which a verification in the future counts."""


class Replica(msgspec.Struct):
    """Segments of a session at one place, at the last verification."""

    verified_s: float
    """Time of the verification, UTC."""
    segments: dict[str, str]
    """Checksum of each segment by its file name."""


class ReplicaState(NamedTuple):
    """Current state of one replica. `whole`: it has every listed segment."""

    place: str
    verified_s: float
    whole: bool


class ReplicaLog:
    """Records of one store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def of(self, session: str) -> dict[str, Replica]:
        """Return the records by place; {} if they are missing or damaged."""
        try:
            return self._read(session)
        except (FileNotFoundError, *DAMAGED):
            return {}

    def readable(self, session: str) -> bool:
        """Return False if a record exists and is damaged."""
        try:
            self._read(session)
        except FileNotFoundError:
            pass
        except DAMAGED:
            return False
        return True

    def _read(self, session: str) -> dict[str, Replica]:
        text = self._disk.read(_path(session))
        return msgspec.json.decode(text, type=dict[str, Replica])

    def sessions(self) -> Iterator[str]:
        """Yield all sessions with a record."""
        for car in self._disk.names(COPIES):
            for day in self._disk.names(f"{COPIES}/{car}"):
                for name in self._disk.names(f"{COPIES}/{car}/{day}"):
                    if name.endswith(SUFFIX) and not name.startswith("."):
                        yield f"{car}/{day}/{name.removesuffix(SUFFIX)}"

    def states(self, session: str, listed: Iterable[StoredSegment]) -> list[ReplicaState]:
        """Return each place that has a part of a session; `listed`: its segments in the store
        now. This store is included only after `verify` has read the session."""
        expected = segments_of(listed)
        return [
            ReplicaState(place, replica.verified_s, expected.items() <= replica.segments.items())
            for place, replica in sorted(self.of(session).items())
            if place != EVICTED
        ]

    def count(self, stored: StoredSegment, among: Iterable[str], now_s: float) -> int:
        """Count the places `among` whose replica of this segment is right and recent."""
        session, _, name = stored.path.rpartition("/")
        replicas = self.of(session)
        return sum(
            place in replicas
            and is_recent(replicas[place].verified_s, now_s)
            and replicas[place].segments.get(name) == stored.sha256
            for place in among
        )

    def add(self, stored: StoredSegment, now_s: float) -> None:
        """Add a published segment to the record of this store; the disk is `changing`. The time
        of the oldest verification stays."""
        session, _, name = stored.path.rpartition("/")
        replicas = self.of(session)
        own = replicas.setdefault(HERE, Replica(now_s, {}))
        evicted = replicas.get(EVICTED, Replica(now_s, {})).segments
        if own.segments.get(name) != stored.sha256 or name in evicted:
            own.segments[name] = stored.sha256
            evicted.pop(name, None)
            self.write(session, replicas)

    def mark_verified(self, session: str, now_s: float) -> None:
        """Record that this store's own segments were verified; the disk is `changing`."""
        replicas = self.of(session)
        if HERE in replicas:
            replicas[HERE].verified_s = now_s
            self.write(session, replicas)

    def evicted(self, session: str) -> dict[str, str]:
        """Return the segments that a bound evicted: checksum by name."""
        return self._segments(session, EVICTED)

    def forget(self, session: str) -> None:
        """Drop this store's own record: people removed the session; the disk is `changing`."""
        replicas = self.of(session)
        if replicas.pop(HERE, None):
            self.write(session, replicas)

    def move(self, session: str, names: Iterable[str], to: str, now_s: float) -> None:
        """Record segments as evicted, or as wanted here again; the disk is `changing`."""
        replicas = self.of(session)
        source = replicas.get(HERE if to == EVICTED else EVICTED, Replica(now_s, {}))
        target = replicas.setdefault(to, Replica(now_s, {}))
        moved = [name for name in names if name in source.segments]
        for name in moved:
            target.segments[name] = source.segments.pop(name)
        if moved:
            self.write(session, replicas)

    def _segments(self, session: str, place: str) -> dict[str, str]:
        replica = self.of(session).get(place)
        return replica.segments if replica else {}

    def write(self, session: str, replicas: Mapping[str, Replica]) -> None:
        """Replace the record of a session; the disk is `changing`."""
        self._disk.replace(_path(session), msgspec.json.encode(replicas))

    def record(self, session: str, place: str, segments: Mapping[str, str], now_s: float) -> None:
        """Record a verification: the place has exactly these segments."""
        with self._disk.changing():
            replicas = {**self.of(session), place: Replica(now_s, dict(segments))}
            self.write(session, replicas)


def is_recent(verified_s: float, now_s: float, most_s: float = RECENT_S) -> bool:
    """Return True if a verification is at most so old. A time in the future, by a wrong clock or
    a damaged record, is not recent."""
    return now_s - most_s <= verified_s <= now_s + AHEAD_S


def segments_of(stored: Iterable[StoredSegment]) -> dict[str, str]:
    """Return the checksum of each segment of a session by its file name."""
    return {segment.path.rpartition("/")[2]: segment.sha256 for segment in stored}


def _path(session: str) -> str:
    return f"{COPIES}/{session}{SUFFIX}"

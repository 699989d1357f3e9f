"""Queue of sessions for a remote: due time, size, and time of waiting."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from fpvcar.runtime.clock import Clock

SETTLED_S, LATEST_S = 60.0, 600.0
"""A session is sent SETTLED_S after its last segment, or LATEST_S after its first one."""


class SessionExtent(NamedTuple):
    """Size of a session in the store, and the time of its last segment, UTC."""

    bytes: int
    changed_s: float


class PendingSessions:
    """Queue of one remote. Only `add` is called from other threads."""

    def __init__(self, clock_s: Clock) -> None:
        self._clock_s = clock_s
        self._due_s: dict[str, float] = {}
        self._first_s: dict[str, float] = {}
        self._extents: dict[str, SessionExtent] = {}

    def __len__(self) -> int:
        return len(self._due_s)

    def names(self) -> list[str]:
        """Return all queued sessions."""
        return list(self._due_s)

    def add(self, session: str) -> None:
        """Note that a session got a segment."""
        now_s = self._clock_s()
        first_s = self._first_s.setdefault(session, now_s)
        self._due_s[session] = min(now_s + SETTLED_S, first_s + LATEST_S)
        self._extents.pop(session, None)

    def add_now(self, session: str) -> None:
        """Queue a session at once: the remote lacks a part of it."""
        self._due_s.setdefault(session, -math.inf)

    def ready(self) -> list[str]:
        """Return the sessions that are due."""
        now_s = self._clock_s()
        return [session for session, due_s in list(self._due_s.items()) if due_s <= now_s]

    def take(self, session: str) -> float:
        """Take a session from the queue; return its due time, as `put_back` needs it."""
        self._first_s.pop(session, None)
        return self._due_s.pop(session)

    def put_back(self, session: str, due_s: float) -> None:
        """Put a session back into the queue after a failed transfer."""
        self._due_s.setdefault(session, due_s)

    # Sizes of queued sessions

    def without_extent(self) -> list[str]:
        """Return the queued sessions of unknown size."""
        return [session for session in list(self._due_s) if session not in self._extents]

    def set_extents(self, extents: Iterable[tuple[str, SessionExtent]]) -> None:
        """Store measured sizes; drop those of sessions that left the queue."""
        self._extents.update(extents)
        for session in self._extents.keys() - self._due_s.keys():
            del self._extents[session]

    def bytes_of(self, session: str) -> int:
        """Return the size of a session, queued or being sent; 0 if unknown."""
        return self._extents[session].bytes if session in self._extents else 0

    def extents(self) -> dict[str, SessionExtent]:
        """Return all queued sessions of known size."""
        queued = list(self._due_s)
        return {session: self._extents[session] for session in queued if session in self._extents}

"""Sessions that wait for an office: when each goes, how large it is, and since when."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

SETTLED_S, LATEST_S = 60.0, 600.0
"""A session goes when it got no segment for so long, or its first one waited longer."""


class Waits(NamedTuple):
    """A session as the store has it: its bytes, and when it got its last one, UTC."""

    bytes: int
    came_s: float


class Due:
    """Those of one office. Only `tell` is called from other threads."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._due_s: dict[str, float] = {}
        self._first_s: dict[str, float] = {}
        self._known: dict[str, Waits] = {}

    def __len__(self) -> int:
        return len(self._due_s)

    def tell(self, session: str) -> None:
        """It got a segment."""
        now_s = self._clock_s()
        first_s = self._first_s.setdefault(session, now_s)
        self._due_s[session] = min(now_s + SETTLED_S, first_s + LATEST_S)
        self._known.pop(session, None)

    def found(self, session: str) -> None:
        """The office has not all of it."""
        self._due_s.setdefault(session, -math.inf)

    def ready(self) -> list[str]:
        """Those that may go now."""
        now_s = self._clock_s()
        return [one for one, due_s in list(self._due_s.items()) if due_s <= now_s]

    def take(self, session: str) -> float:
        """It goes now; returns what `back` wants."""
        self._first_s.pop(session, None)
        return self._due_s.pop(session)

    def back(self, session: str, due_s: float) -> None:
        """It did not get there."""
        self._due_s.setdefault(session, due_s)

    # --- what waits ---

    def unmeasured(self) -> list[str]:
        """Those of which nobody knows how large they are."""
        return [one for one in list(self._due_s) if one not in self._known]

    def measured(self, found: Iterable[tuple[str, Waits]]) -> None:
        """What was found out about some."""
        self._known.update(found)
        for one in self._known.keys() - self._due_s.keys():
            del self._known[one]

    def bytes_of(self, session: str) -> int:
        """As far as it is known; of one that goes now, too."""
        return self._known[session].bytes if session in self._known else 0

    def waiting(self) -> dict[str, Waits]:
        """All that wait, as far as it is known."""
        there = list(self._due_s)
        return {one: self._known[one] for one in there if one in self._known}

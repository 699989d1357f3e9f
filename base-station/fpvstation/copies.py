"""Where the copies of a session are, and when each was verified.

    .copies/CAR/2026-11-21/SESSION.json      one small record, replaced as a whole

A record says what a place had when it was judged: name and checksum of each segment.
So a session that grows, or is mended, is not whole there until it is judged again. A
record that is lost or damaged costs another judgement, and no recording.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from fpvstation.disk import Disk
from fpvstation.sums_file import Stored

COPIES, SUFFIX = ".copies", ".json"
HERE = ""
"""The place of this store's own copy: judged when each segment is stored, and by
`fpvstation verify`."""


class Copy(msgspec.Struct):
    """What one place had of a session when it was judged last."""

    verified_s: float
    """UTC."""
    segments: dict[str, str]
    """Checksum of each segment by its file name."""


class Where(NamedTuple):
    """One copy of a session as it is now. `whole`: nothing of the list is missing."""

    place: str
    verified_s: float
    whole: bool


class Copies:
    """The records of one store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def of(self, session: str) -> dict[str, Copy]:
        """What was judged, by place; nothing if no place was."""
        try:
            text = self._disk.read(_path(session))
            return msgspec.json.decode(text, type=dict[str, Copy])
        except (FileNotFoundError, ValueError, msgspec.DecodeError, RecursionError):
            return {}

    def sessions(self) -> Iterator[str]:
        """All of which there is a record."""
        for car in self._disk.names(COPIES):
            for day in self._disk.names(f"{COPIES}/{car}"):
                for name in self._disk.names(f"{COPIES}/{car}/{day}"):
                    if name.endswith(SUFFIX) and not name.startswith("."):
                        yield f"{car}/{day}/{name.removesuffix(SUFFIX)}"

    def where(self, session: str, listed: Iterable[Stored]) -> list[Where]:
        """Each place that has some of a session; `listed`: what is in the store now.
        This store is not among them before `verify` has read the session."""
        wanted = segments_of(listed)
        return [
            Where(place, one.verified_s, wanted.items() <= one.segments.items())
            for place, one in sorted(self.of(session).items())
        ]

    def places(self, stored: Stored, among: Iterable[str]) -> int:
        """How many of the places `among` had this segment when they were judged."""
        session, _, name = stored.path.rpartition("/")
        there = self.of(session)
        return sum(
            place in there and there[place].segments.get(name) == stored.sha256
            for place in among
        )

    def note(
        self, session: str, place: str, segments: Mapping[str, str], now_s: float
    ) -> None:
        """A place has been judged: it has these, and no others."""
        with self._disk.changing():
            there = {**self.of(session), place: Copy(now_s, dict(segments))}
            self._disk.replace(_path(session), msgspec.json.encode(there))


def segments_of(stored: Iterable[Stored]) -> dict[str, str]:
    """Checksum of each segment of a session by its file name."""
    return {one.path.rpartition("/")[2]: one.sha256 for one in stored}


def _path(session: str) -> str:
    return f"{COPIES}/{session}{SUFFIX}"

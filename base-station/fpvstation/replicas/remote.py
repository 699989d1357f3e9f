"""Places of replicas: remotes, which are offices (rdcp.py) and buckets (s3.py), and archives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from fpvcar.runtime.texts import Phrase, State, Text
from fpvcar.runtime.units import MB
from fpvstation.errors import NOT_CONTACTED
from fpvstation.store.sums_file import StoredSegment

NO_ROOM = Phrase(
    "no_room",
    "{place} is full: {session} needs {needed} MB, and {free} MB are free there: make room there",
)
PLACE_BAD = Phrase(
    "place_bad",
    "{place}: {count} files of {session} are bad or missing there ({first}); they are sent again",
)

DAMAGED = Phrase(
    "place_damaged", "{path}: damaged here since it was verified: fpvstation verify {session}"
)
OTHER_STORE = Phrase(
    "place_other",
    "{place} has the sessions of another store than {store}: give each store its own folder",
)
UNMOUNTED = Phrase("place_unmounted", "{place}: {marker} is missing there: mount its disk")
UNMOUNTED_NEW = Phrase(
    "place_unmounted_new",
    "{place}: {marker} is missing there: mount its disk, or name an empty folder",
)
MAKE_ROOM = Phrase("make_room", "make room there; the next try continues the copy")
BAD_DISK = Phrase("place_disk", "{place}: {path}: the disk returns other bytes")


class PlaceFault(Exception):
    """Fault of a remote or an archive, or of the connection to it: try again later."""


def damaged_here(segment: StoredSegment) -> PlaceFault:
    """Return the fault of a segment whose file differs from its line."""
    session = segment.path.rpartition("/")[0]
    return PlaceFault(DAMAGED(path=segment.path, session=session))


def bad_copies(place: str, session: str, bad: Sequence[str]) -> PlaceFault:
    """Return the fault of a remote with damaged or missing files."""
    values = {"place": place, "count": len(bad), "session": session, "first": bad[0]}
    return PlaceFault(PLACE_BAD(**values))


def no_room(place: str, session: str, size: int, free: int) -> Text:
    """Return the text of a lack of room for a session."""
    needed, there = f"{size / MB:.1f}", f"{free / MB:.1f}"
    return NO_ROOM(place=place, session=session, needed=needed, free=there)


class CopyProgress(msgspec.Struct):
    """Progress of a copy, in bytes. `done` includes bytes that were there before; `total` is
    None until it is counted."""

    moved: int
    done: int
    total: int | None = None


OnProgress = Callable[[CopyProgress], None]
"""Callback for the progress of a copy, called from time to time."""


OnFile = Callable[[str], None]
"""Callback for the local path of each file that has arrived, called in a thread."""


def quiet(progress: CopyProgress) -> None:
    pass


class Remote(Protocol):
    """Interface of a remote for a replicator. Every call may raise PlaceFault."""

    @property
    def place(self) -> str:
        """Name of the remote in replica_log.py."""

    async def claim(self, store: str, known: bool) -> None:
        """Check that the remote belongs to this store; claim a new one. `known`: it was claimed
        before, so a missing marker means that its disk is not mounted."""

    async def send(
        self, session: str, listed: list[StoredSegment], anew: bool, on_progress: OnProgress
    ) -> None:
        """Copy missing files; `anew`: compare contents, not sizes and times."""

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        """Verify the replica; return the names of bad or absent files."""

    async def fetch(self, session: str, on_progress: OnProgress) -> Mapping[str, str]:
        """Copy a session to this store's disk; return the local path of each file."""


class Archive(Protocol):
    """Interface of an archive. Every call may raise PlaceFault and OSError."""

    @property
    def place(self) -> str:
        """Name of the archive in the records."""

    async def claim(self, store: str, known: bool) -> None:
        """Check that the archive is there, and of this store; claim a new one."""

    def link(self, session: str) -> str:
        """Return the link that stays behind for a session, or ""."""

    async def put(
        self, session: str, listed: list[StoredSegment], on_progress: OnProgress = quiet
    ) -> None:
        """Copy a session, and verify the copy."""

    async def sums(self, session: str) -> bytes:
        """Return the list of a session there; b"" if it is missing or unreadable."""

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        """Verify the copy; return the names of bad or absent segments."""

    async def fetch_segments(
        self, session: str, listed: list[StoredSegment], on_progress: OnProgress, on_file: OnFile
    ) -> Mapping[str, str]:
        """Copy the listed segments that can be read to this store's disk; return their local
        paths."""

    async def remove(self, session: str, names: list[str], last: bool) -> None:
        """Delete segments that are right in the store again; absent is fine. `last`: no other
        segment of the session is left there."""


class RemoteState(msgspec.Struct):
    """Station's view of one remote."""

    place: str
    state: State = NOT_CONTACTED
    """"ok", SENDING, or the fault."""
    verified_s: float = 0.0
    """Time when it last verified a session, UTC; 0: never."""
    sent: int = 0
    """Sessions since the station started."""
    waiting: int = 0
    waiting_bytes: int = 0
    bytes: int = 0
    """Bytes moved since the station started."""
    rate: float = 0.0
    """Bytes per second while a session is sent."""
    bad: dict[str, Text] = {}
    """Sessions that could not be sent, with the reason."""
    last_fault: Text | None = None
    fault_s: float = 0.0
    """Time of the last fault, UTC."""
    internal_fault: Text | None = None
    """Unexpected exception in the last round."""
    oldest_s: float = 0.0
    """Time of the oldest verification among the replicas there, UTC; 0 before the first replica."""
    rejudged: int = 0
    """Old replicas that were verified again since the station started."""
    rotted: int = 0
    """Segments that were bad or missing there in a repeated verification."""
    complete: int = 0
    """Sessions that are up to date there."""
    waits_until: str = ""
    """Local time at which the remote's window opens; "" while it is open."""

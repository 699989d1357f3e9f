"""Records of archived sessions, in the store.

    .archived/CAR/2026-11-21/SESSION.json    written before the files here are deleted
    .archived/CAR/2026-11-21/SESSION.old     its folder on the way out
    .archived/CAR/2026-11-21/SESSION.new     its folder on the way back

The store lists an archived session from its record, so that an archive that is away is never taken
for deleted sessions. mirror/tiers.py moves the files.
"""

from collections.abc import Iterator, Mapping

import msgspec

from fpvcar.runtime.sentences import sentence
from fpvstation.errors import StationError
from fpvstation.store.audit import Finding
from fpvstation.store.disk import Disk
from fpvstation.store.replica_log import DAMAGED, SUFFIX
from fpvstation.store.sums_file import StoredSegment

ARCHIVED = ".archived"
UNREADABLE = (
    "not changed; bring the session back with `fpvstation restore SESSION`, or copy its folder "
    "from the archive, then delete this record"
)
UNLIKE = "not changed; the copy in the archive tells which is right"


class SessionArchived(StationError):
    """Refusal of a change to a session in an archive."""


class ArchivedSession(msgspec.Struct):
    """Session whose files are at `place`, a folder or a bucket."""

    place: str
    verified_s: float
    """Time of the last verification there, UTC."""
    segments: dict[str, str]
    """Checksum of each segment by its file name."""
    sizes: dict[str, int]
    entries: dict[str, msgspec.Raw] = {}
    """Entry of each segment in the catalogue."""
    returned: bool = False
    """True once all files are here again, and those at `place` may be deleted."""

    def listed(self, session: str) -> list[StoredSegment]:
        """Return the segments with their paths in the store."""
        pairs = sorted(self.segments.items())
        return [StoredSegment(f"{session}/{name}", sha256) for name, sha256 in pairs]


class ArchiveLog:
    """Records of one store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def of(self, session: str) -> ArchivedSession | None:
        """Return the record of a session; None if it is not archived, or the record is damaged."""
        try:
            return self._read(session)
        except (FileNotFoundError, *DAMAGED):
            return None

    def refuse_change(self, session: str) -> None:
        """Raise SessionArchived if a session is archived."""
        if record := self.of(session):
            raise SessionArchived(
                sentence(
                    "station_archived",
                    session=session,
                    place=record.place,
                    step=recall_step(session),
                )
            )

    def audit(self, session: str, recorded: Mapping[str, str]) -> list[Finding]:
        """Return the faults of the record of a session, if there is one. `recorded`: checksum of
        each segment in .copies."""
        path = path_of(session)
        try:
            record = self._read(session)
        except FileNotFoundError:
            return []
        except DAMAGED:
            return [Finding(path, "cannot be decoded", UNREADABLE)]
        return [
            Finding(path, f"it has {sha256[:16]}... for {name}, unlike .copies", UNLIKE)
            for name, sha256 in record.segments.items()
            if recorded.get(name, sha256) != sha256
        ]

    def _read(self, session: str) -> ArchivedSession:
        return msgspec.json.decode(self._disk.read(path_of(session)), type=ArchivedSession)

    def sessions(self) -> Iterator[str]:
        """Yield all archived sessions."""
        for car in self._disk.names(ARCHIVED):
            for day in self._disk.names(f"{ARCHIVED}/{car}"):
                for name in self._disk.names(f"{ARCHIVED}/{car}/{day}"):
                    if name.endswith(SUFFIX) and not name.startswith("."):
                        yield f"{car}/{day}/{name.removesuffix(SUFFIX)}"

    def write(self, session: str, record: ArchivedSession) -> None:
        """Replace the record of a session; the disk is `changing`."""
        self._disk.replace(path_of(session), msgspec.json.encode(record))

    def forget(self, session: str) -> None:
        """Remove the record of a session that is here again; the disk is `changing`."""
        self._disk.remove(path_of(session))
        self._disk.prune(path_of(session).rpartition("/")[0])


def path_of(session: str) -> str:
    """Return the path of the record of a session."""
    return f"{ARCHIVED}/{session}{SUFFIX}"


def recall_step(session: str) -> str:
    """Return the next step for a session in an archive."""
    return sentence("station_recall", name=session.rpartition("/")[2])

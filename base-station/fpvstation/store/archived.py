"""Records of archived sessions, in the store.

    .archived/CAR/2026-11-21/SESSION.json    written before the files here are deleted
    .archived/CAR/2026-11-21/SESSION.old     its folder on the way out
    .archived/CAR/2026-11-21/SESSION.new     its folder on the way back
    .archived/CAR/2026-11-21/SESSION.left    files that are still in the archive after a recall

The store lists an archived session from its record, so that an archive that is away is never taken
for deleted sessions. replicas/tiers.py moves the files.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from fpvcar.runtime.texts import Phrase, Text
from fpvstation.errors import StationError
from fpvstation.store.audit import BY_RECORD, Finding
from fpvstation.store.disk import Disk
from fpvstation.store.replica_log import DAMAGED, SUFFIX
from fpvstation.store.sums_file import StoredSegment

STATION_RECALL = Phrase("station_recall", "bring it back with `fpvstation recall {name}`")
STATION_ARCHIVED = Phrase("station_archived", "{session} is in {place}: {step}")

ARCHIVED, LEFT = ".archived", ".left"
UNREADABLE = (
    "not changed; bring the session back with `fpvstation restore SESSION`, or copy its folder "
    "from the archive, then delete this record"
)
UNLIKE = "not changed; the next recall compares both with the archive's list and files"
UNREADABLE_LEFT = "not changed; delete this record: its files stay in the archive"
VOTERS = 3
"""Lists of an archived session: its record, `.copies`, and SHA256SUMS in the archive."""


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
        return self._decoded(session, SUFFIX)

    def left(self, session: str) -> ArchivedSession | None:
        """Return the files of a session that its recall left in the archive, or None."""
        return self._decoded(session, LEFT)

    def _decoded(self, session: str, suffix: str) -> ArchivedSession | None:
        try:
            return self._read(session, suffix)
        except (FileNotFoundError, *DAMAGED):
            return None

    def exists(self, session: str) -> bool:
        """Return True if a session has a record, also a damaged one."""
        return self._disk.size(path_of(session)) is not None

    def refuse_change(self, session: str) -> None:
        """Raise SessionArchived if a session is archived."""
        if record := self.of(session):
            raise SessionArchived(
                STATION_ARCHIVED(session=session, place=record.place, step=recall_step(session))
            )

    def audit(self, session: str, recorded: Mapping[str, str]) -> list[Finding]:
        """Return the faults of the record of a session, if there is one. `recorded`: checksum of
        each segment in .copies."""
        path, left = path_of(session), path_of(session, LEFT)
        if self._disk.size(left) is not None and self.left(session) is None:
            return [Finding(left, "cannot be decoded", UNREADABLE_LEFT)]
        try:
            record = self._read(session, SUFFIX)
        except FileNotFoundError:
            return []
        except DAMAGED:
            return [Finding(path, "cannot be decoded", UNREADABLE)]
        return [
            Finding(path, f"it has {sha256[:16]}... for {name}, unlike .copies", UNLIKE)
            for name, sha256 in record.segments.items()
            if recorded.get(name, sha256) != sha256
        ]

    def mend(self, session: str, name: str, sha256: str) -> Finding:
        """Correct a checksum that the file in the archive and .copies disprove."""
        record = self._read(session, SUFFIX)
        fault = f"it has {record.segments[name][:16]}... for {name}"
        record.segments[name] = sha256
        self.write(session, record)
        return Finding(path_of(session), fault, BY_RECORD)

    def _read(self, session: str, suffix: str) -> ArchivedSession:
        text = self._disk.read(path_of(session, suffix))
        return msgspec.json.decode(text, type=ArchivedSession)

    def sessions(self, suffix: str = SUFFIX) -> Iterator[str]:
        """Yield all archived sessions; or with LEFT those that have left files there."""
        for car in self._disk.names(ARCHIVED):
            for day in self._disk.names(f"{ARCHIVED}/{car}"):
                for name in self._disk.names(f"{ARCHIVED}/{car}/{day}"):
                    if name.endswith(suffix) and not name.startswith("."):
                        yield f"{car}/{day}/{name.removesuffix(suffix)}"

    def write(self, session: str, record: ArchivedSession, suffix: str = SUFFIX) -> None:
        """Replace the record of a session; the disk is `changing`."""
        self._disk.replace(path_of(session, suffix), msgspec.json.encode(record))

    def forget(self, session: str, suffix: str = SUFFIX) -> None:
        """Remove the record of a session that is here again; the disk is `changing`."""
        self._disk.remove(path_of(session, suffix))
        self._disk.prune(path_of(session).rpartition("/")[0])


def voted(lists: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the checksum of each segment by the majority of the lists; an empty list has no vote.
    A name in one of three lists is a damaged one."""
    present = [segments for segments in lists if segments]
    least = 2 if len(present) == VOTERS else 1
    votes = {
        name: Counter(segments[name] for segments in present if name in segments)
        for name in dict.fromkeys(name for segments in present for name in segments)
    }
    return {
        name: counter.most_common(1)[0][0]
        for name, counter in votes.items()
        if counter.total() >= least
    }


def path_of(session: str, suffix: str = SUFFIX) -> str:
    """Return the path of the record of a session."""
    return f"{ARCHIVED}/{session}{suffix}"


def recall_step(session: str) -> Text:
    """Return the next step for a session in an archive."""
    return STATION_RECALL(name=session.rpartition("/")[2])

"""Contents of a store: its sessions, listed segments and their sizes, archived ones too."""

from collections.abc import Iterator

from fpvstation.store.archived import ARCHIVED, ArchivedSession, ArchiveLog
from fpvstation.store.disk import Disk
from fpvstation.store.identity import MARKER
from fpvstation.store.manifest import Manifest
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment


class Contents:
    """Read access to a store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk, self._manifest = disk, Manifest(disk)
        self._replicas, self._archive = ReplicaLog(disk), ArchiveLog(disk)

    def find(self, car: str, name: str, size: int) -> StoredSegment | None:
        """Return the listed segment of that name and size, or None."""
        matches = (
            segment
            for session in self._manifest.folders_of(car, name)
            for segment in self.listed(session)
            if segment.path.endswith(f"/{name}") and self.size(segment) == size
        )
        return next(matches, None)

    def sessions(self) -> Iterator[str]:
        """Yield all sessions, archived ones last."""
        archived = sorted(self._archive.sessions())
        names = set(archived)
        yield from (session for session in self._manifest.sessions() if session not in names)
        yield from archived

    def archived(self, session: str) -> ArchivedSession | None:
        """Return the record of a session in an archive, or None."""
        return self._archive.of(session)

    def is_away(self, session: str) -> bool:
        """Return True if a session is archived, and its files cannot be read through its link."""
        record = self.archived(session)
        return record is not None and any(
            self._disk.size(segment.path) is None for segment in record.listed(session)
        )

    def is_unmounted(self, session: str) -> bool:
        """Return True if a session is away, and so is its archive; a bucket always is. So is a
        session whose move was interrupted."""
        record = self.archived(session)
        if record is None or not self.is_away(session):
            return False
        moving = (f"{ARCHIVED}/{session}{end}" for end in (".old", ".new"))
        # The path of a folder archive is absolute, and stays as it is.
        return self._disk.size(f"{record.place}/{MARKER}") is None or any(
            self._disk.size(path) is not None for path in moving
        )

    def listed(self, session: str) -> list[StoredSegment]:
        record = self.archived(session)
        return record.listed(session) if record else self._manifest.of(session)

    def size(self, segment: StoredSegment) -> int | None:
        """Return the bytes of a listed segment; None if it is missing."""
        session, _, name = segment.path.rpartition("/")
        record = self.archived(session)
        return record.sizes.get(name) if record else self._disk.size(segment.path)

    def removed(self) -> set[str]:
        return self._manifest.removed()

    def readable(self) -> Iterator[tuple[str, list[StoredSegment]]]:
        """Yield each session with its segments. One that cannot be read is left out: the list and
        `verify` name it."""
        for session in self.sessions():
            try:
                listed = self.listed(session)
            except OSError:
                continue
            yield session, listed

    def segments(self) -> Iterator[StoredSegment]:
        for session in self.sessions():
            yield from self.listed(session)

    def known(self) -> set[str]:
        """Return all sessions that have a folder or a record."""
        return {*self.sessions(), *self._replicas.sessions()}

    def extent(self, session: str) -> tuple[int, float]:
        """Return the bytes of a session's segments, and the time of its list's last change, UTC;
        0 if it is missing."""
        if record := self.archived(session):
            return sum(record.sizes.values()), 0.0
        size = sum(self._disk.size(segment.path) or 0 for segment in self.listed(session))
        return size, self._disk.changed_s(f"{session}/{SUMS_FILE}")

    def evicted(self, car: str, name: str, sha256: str) -> bool:
        """Return True if a bound evicted this segment from the store, or it is archived."""
        own = self._manifest.folders_of(car, name)[0]
        return any(
            self._replicas.evicted(session).get(name) == sha256
            or ((record := self.archived(session)) and record.segments.get(name) == sha256)
            for session in (own, f"{own}.{sha256[:8]}")
        )

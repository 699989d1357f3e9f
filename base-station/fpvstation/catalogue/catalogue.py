"""List of drives for the station's page; each figure is computed once per session.

    store: CAR/DAY/SESSION/SHA256SUMS    changed? then each of its new segments is
                                         probed, and its drives are listed again
    catalogue.sqlite                     segments, drives, and their words

The catalogue is a cache of the store. It is rebuilt if it is lost or damaged, or belongs to another
store or a newer fpvstation. It lies outside the store, because the store may be on a network disk,
where a write-ahead log does not work.
"""

import contextlib
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from fpvcar.library.drive_repository import GONE, UNREAD, DriveBusy, DriveMissing, DrivePage
from fpvcar.library.drives import Drive, DriveFilter, drives_of
from fpvcar.library.recording_index import Page
from fpvcar.library.titles import Titles
from fpvcar.runtime.texts import VERBATIM, Phrase, Text, fault_text, os_reason
from fpvstation.catalogue import search
from fpvstation.catalogue.catalogue_file import CatalogueFile
from fpvstation.catalogue.catalogue_rows import add_drive, forget, forget_drives
from fpvstation.catalogue.probe import ProbeJob, key_of, prober
from fpvstation.replicas.remote import DAMAGED
from fpvstation.store.archived import ArchivedSession, SessionArchived, path_of
from fpvstation.store.replica_index import CarInventory, ReplicaIndex
from fpvstation.store.store import Store, trash_of
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment

STATION_AWAY = Phrase(
    "station_away",
    "this drive is in the archive {place}: mount it, or bring the drive back: fpvstation "
    "recall {name}",
)

AT_ONCE = 256
"""Largest number of sessions in one transaction."""
PATIENCE_S = 2.0
FILE = "catalogue.sqlite"
Prober = Callable[[Iterable[ProbeJob]], Iterable[bytes]]
PAGE_OLD = Text("page_old", "This page is out of date: reload it.")
SESSION_SHARED = Phrase(
    "session_shared", "Other drives are in its session. To remove all: fpvstation rm {name}"
)
SESSION_KEPT = Phrase("session_kept", "The station keeps this drive: {reason}")
OnProgress = Callable[[int, int], None]
"""Callback for progress: sessions listed, and sessions in total."""


class Change(NamedTuple):
    """Session whose checksum list differs from the catalogued one; `stamp` is None if the
    session was removed."""

    session: str
    stamp: int | None
    known: bool = True
    """Whether the session is in the catalogue."""
    archived: bool = False


class ProbeBatch(NamedTuple):
    """Batch of changes: segments already catalogued, new segments, and the results of probing
    the new ones in their order, as they arrive: one Entry each, JSON."""

    changes: Sequence[Change]
    stored: dict[str, list[StoredSegment]]
    known: dict[StoredSegment, bytes]
    new: list[StoredSegment]
    entries: Iterable[bytes]


class StoreUsage(msgspec.Struct):
    """Contents of a store: bytes of its segments, and of its disk; apart from these, sessions in
    an archive."""

    path: str
    sessions: int
    segments: int
    bytes: int
    free: int
    total: int
    archived: int = 0
    archived_bytes: int = 0


class Catalogue:
    """Catalogue of one store; implements the DriveRepository of the page. Blocks."""

    editable = True

    def __init__(
        self, path: Path, root: Path, store: Store, store_id: str, cars: CarInventory | None = None
    ) -> None:
        self._root, self._store = root, store
        self._file = CatalogueFile(path, store_id)
        self._titles, self._replica_index = Titles(root), ReplicaIndex(root, store, cars)
        self._changing = threading.RLock()
        self.unread = 0
        """Number of sessions still to be probed."""
        self.faults: dict[str, Text] = {}
        """Reasons why the last sync could not read a session; its rows stay."""

    def open(self) -> None:
        self._file.open()

    def reset(self, reason: Text | None) -> None:
        self._file.reset(reason)

    def close(self) -> None:
        self._file.close()

    @property
    def reset_reason(self) -> Text | None:
        return self._file.reset_reason

    @property
    def root(self) -> Path:
        return self._root

    def stamps(self) -> dict[str, int]:
        """Return the sessions, each with the time of its list's last change, UTC in ns."""
        with self._file.connection() as db:
            return dict(db.execute("SELECT path, stamp FROM session"))

    # Following the store

    def sync(self, on_progress: OnProgress = lambda done, total: None) -> int:
        """List all changes of the store; return the number of changed sessions. Rebuild a
        damaged or missing catalogue. Raises OSError."""
        with self._changing:
            self._file.mend()
            try:
                return self._sync(on_progress)
            except sqlite3.OperationalError:
                raise  # say, the disk is full
            except sqlite3.DatabaseError as fault:
                self.reset(VERBATIM(text=fault))
                return self._sync(on_progress)

    def _sync(self, on_progress: OnProgress) -> int:
        self.faults = {}
        changes = list(self._changes())
        self.unread = total = len(changes)
        with prober(total) as probe:
            batches: list[ProbeBatch] = []
            for start in range(0, total + AT_ONCE, AT_ONCE):
                on_progress(min(start, total), total)
                # Probe the next batch while this one is written.
                batches.append(self._probe(changes[start : start + AT_ONCE], probe))
                if len(batches) > 1:
                    self._replace_rows(batches.pop(0))
                    self.unread = max(0, total - start)
        return total

    def _changes(self) -> Iterator[Change]:
        stamps = self.stamps()
        for session in self._store.sessions():
            try:
                record = self._store.archived(session)
                path = path_of(session) if record else f"{session}/{SUMS_FILE}"
                stamp = (self._root / path).stat().st_mtime_ns
            except FileNotFoundError:
                if not (self._root / path_of(session)).exists():
                    continue
                path = path_of(session)
                self._skip(session, DAMAGED(path=path, session=session))
                stamps.pop(session, None)
                continue
            except OSError as fault:
                self._skip(session, os_reason(fault))
                stamps.pop(session, None)
                continue
            old_stamp = stamps.pop(session, None)
            if old_stamp != stamp:
                yield Change(session, stamp, old_stamp is not None, record is not None)
        for session in stamps:
            yield Change(session, None)

    def _skip(self, session: str, fault: Text) -> None:
        """Note that a session cannot be read now; the next sync tries it again."""
        self.faults[session] = fault

    def _probe(self, changes: Sequence[Change], probe: Prober) -> ProbeBatch:
        """Start probing the new segments of some sessions."""
        stored = {}
        for change in changes:
            try:
                stored[change.session] = list(self._store.listed(change.session))
            except OSError as fault:
                self._skip(change.session, os_reason(fault))
        changes = [change for change in changes if change.session in stored]
        with self._file.connection() as db:
            known = {
                segment: entry
                for change in changes
                if change.known
                for segment, entry in search.entries_of(db, change.session)
            }
        for change in changes:
            if record := self._store.archived(change.session):
                for segment in record.listed(change.session):
                    if entry := record.entries.get(segment.path.rpartition("/")[2]):
                        known.setdefault(segment, bytes(entry))
        new = [
            segment for segments in stored.values() for segment in segments if segment not in known
        ]
        jobs = [ProbeJob(f"{self._root}/{segment.path}", key_of(segment.path)) for segment in new]
        return ProbeBatch(changes, stored, known, new, probe(jobs))

    def _replace_rows(self, batch: ProbeBatch) -> None:
        """Replace the rows of these sessions."""
        entries = {**batch.known, **dict(zip(batch.new, batch.entries, strict=True))}
        with self._file.connection() as db:
            for change in batch.changes:
                if change.known:
                    forget(db, change.session)
                if change.stamp is not None:
                    self._add(db, change, batch.stored[change.session], entries)

    def _add(
        self,
        db: sqlite3.Connection,
        change: Change,
        stored: Iterable[StoredSegment],
        entries: dict[StoredSegment, bytes],
    ) -> None:
        session = change.session
        decoded = {segment: search.entry_in(entries[segment]) for segment in stored}
        size = sum(entry.bytes for entry in decoded.values())
        db.execute(
            "INSERT INTO session VALUES (?, ?, ?, ?, ?)",
            (session, change.stamp, change.archived, len(decoded), size),
        )
        db.executemany(
            "INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?)",
            [
                (entry.name, segment.path, session, segment.sha256, entry.bytes, entries[segment])
                for segment, entry in decoded.items()
            ],
        )
        car = session.partition("/")[0]
        for drive in self._titles.named(drives_of(decoded.values())):
            add_drive(db, session, car, drive)

    # Queries of the page

    def paths(self, wanted: Iterable[str]) -> dict[str, Path]:
        """Return the files of these names. Raises OSError for one in an archive that is away."""
        with self._file.query() as db:
            paths = {
                segment: self._root / path
                for name in wanted
                for segment, path in db.execute(
                    "SELECT name, path FROM segment WHERE name = ?", (name,)
                )
            }
        for path in paths.values():
            session = str(path.parent.relative_to(self._root))
            if not path.exists() and (record := self._store.archived(session)):
                name = path.parent.name
                raise OSError(STATION_AWAY(place=record.place, name=name))
        return paths

    def writing(self, path: Path) -> bool:
        """Return False: every file in the store is complete."""
        return False

    def page(self, before: str, most: int) -> Page:
        with self._file.query() as db:
            entries = search.last_entries(db, before, most + 1)
        return Page(entries[:most][::-1], len(entries) > most)

    def find(self, wanted: DriveFilter, before_ms: float, most: int) -> DrivePage:
        with self._file.query() as db:
            if wanted.wheel == "driven" and not search.any_driven(db):
                wanted = wanted.unhidden()
            rows = search.find(db, wanted, before_ms, most + 1)
            drivers = search.drivers(db)
        shown = rows[:most]
        replicas = {session: self._replica_index.of(session) for _, session, _ in shown}
        return DrivePage(
            [drive for _, _, drive in shown],
            len(rows) > most,
            drivers,
            self.unread,
            {drive: replicas[session] for drive, session, _ in shown},
        )

    def drives_in(self, sessions: Iterable[str]) -> dict[str, list[Drive]]:
        """Return the drives of these sessions, the oldest first."""
        with self._file.query() as db:
            return {session: list(search.drives_in(db, session)) for session in sessions}

    def archived(self, drive: str) -> tuple[str, list[str], ArchivedSession]:
        """Return the session of an archived drive, the ids of its drives, and its record. Raises
        DriveMissing, and DriveBusy for a drive that is not archived."""
        with self._file.query() as db:
            session, drives = self._drives_of(db, drive)
        record = self._store.archived(session)
        if record is None:
            raise DriveBusy(PAGE_OLD)
        return session, [item.id for item in drives], record

    def usage(self) -> StoreUsage:
        """Return the size of the contents and the disk's usage. Raises OSError."""
        with self._file.query() as db:
            query = (
                "SELECT count(*), coalesce(sum(segments), 0), coalesce(sum(bytes), 0) "
                "FROM session WHERE archived = ?"
            )
            sessions, segments, size = db.execute(query, (0,)).fetchone()
            archived, _, archived_size = db.execute(query, (1,)).fetchone()
        disk = shutil.disk_usage(self._root)
        return StoreUsage(
            str(self._root),
            sessions,
            segments,
            size,
            disk.free,
            disk.total,
            archived,
            archived_size,
        )

    def name(self, drive: str, title: str) -> None:
        """Name a drive in the store, so that the name survives a rebuild of the catalogue."""
        with self._locked(), self._file.query() as db:
            session, drives = self._drives_of(db, drive)
            segments = [name for (name,) in db.execute("SELECT name FROM segment")]
            named = next(item for item in drives if item.id == drive)
            self._titles.name(named, title, segments)
            forget_drives(db, session)
            for item in self._titles.named(drives):
                add_drive(db, session, session.partition("/")[0], item)

    def delete(self, drive: str) -> tuple[list[str], list[str]]:
        """Move the session of a drive to the trash. Raises DriveBusy if the session has other
        drives."""
        with self._locked():
            with self._file.query() as db:
                session, _ = self._drives_of(db, drive)
                query = "SELECT count(*) FROM drive WHERE session = ? AND parked = 0 "
                (others,) = db.execute(f"{query} AND id != ?", (session, drive)).fetchone()
            if others:
                raise DriveBusy(SESSION_SHARED(name=session.rpartition("/")[2]))
            try:
                removed = self._store.remove(session, trash_of(time.time()))
            except SessionArchived as fault:
                raise DriveBusy(SESSION_KEPT(reason=fault_text(fault))) from None
            self._replace_rows(self._probe([Change(session, None)], lambda probe: []))
        return [segment.path.rpartition("/")[2] for segment in removed], []

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock on changes of the list. Raises DriveBusy."""
        if not self._changing.acquire(timeout=PATIENCE_S):
            raise DriveBusy(UNREAD)
        try:
            yield
        finally:
            self._changing.release()

    def _drives_of(self, db: sqlite3.Connection, drive: str) -> tuple[str, list[Drive]]:
        """Return the session of a drive, and all drives of that session. Raises DriveMissing."""
        query = "SELECT session FROM drive WHERE id = ?"
        row = db.execute(query, (drive,)).fetchone()
        if row is None:
            raise DriveMissing(GONE)
        (session,) = row
        entries = [search.entry_in(entry) for _, entry in search.entries_of(db, session)]
        return session, drives_of(entries)

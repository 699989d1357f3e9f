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

from fpvcar.recordings.library.drive_repository import DriveBusy, DriveMissing, Found
from fpvcar.recordings.library.drives import Drive, Wanted, drives_of
from fpvcar.recordings.library.recording_index import Page
from fpvcar.recordings.library.titles import Titles
from fpvstation.catalogue import search
from fpvstation.catalogue.catalogue_file import CatalogueFile
from fpvstation.catalogue.catalogue_rows import add_drive, forget, forget_drives
from fpvstation.catalogue.probe import ProbeJob, key_of, lookers
from fpvstation.store.replicas import CarInventory, ReplicaIndex
from fpvstation.store.store import Store, trash_of
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment

AT_ONCE = 256
"""Largest number of sessions in one transaction."""
PATIENCE_S = 2.0
FILE = "catalogue.sqlite"
Prober = Callable[[Iterable[ProbeJob]], Iterable[bytes]]
OnProgress = Callable[[int, int], None]
"""Callback for progress: sessions listed, and sessions in total."""


class Change(NamedTuple):
    """Session whose checksum list differs from the catalogued one; `stamp` is None if the
    session was removed."""

    session: str
    stamp: int | None
    known: bool = True
    """Whether the session is in the catalogue."""


class ProbeBatch(NamedTuple):
    """Batch of changes: segments already catalogued, new segments, and the results of probing
    the new ones in their order, as they arrive: one Entry each, JSON."""

    changes: Sequence[Change]
    stored: dict[str, list[StoredSegment]]
    known: dict[StoredSegment, bytes]
    new: list[StoredSegment]
    looked: Iterable[bytes]


class StoreUsage(msgspec.Struct):
    """Contents of a store: bytes of its segments, and of its disk."""

    path: str
    sessions: int
    segments: int
    bytes: int
    free: int
    total: int


class Catalogue:
    """Catalogue of one store; implements the Shelf of the page. Blocks."""

    editable = True

    def __init__(
        self, path: Path, root: Path, store: Store, store_id: str, cars: CarInventory | None = None
    ) -> None:
        self._root, self._store = root, store
        self._file = CatalogueFile(path, store_id)
        self._titles, self._where = Titles(root), ReplicaIndex(root, store, cars)
        self._changing = threading.RLock()
        self.unread = 0
        """Number of sessions still to be probed."""
        self.faults: dict[str, str] = {}
        """Reasons why the last sync could not read a session; its rows stay."""

    def open(self) -> None:
        self._file.open()

    def anew(self, why: str) -> None:
        self._file.anew(why)

    def close(self) -> None:
        self._file.close()

    @property
    def why_anew(self) -> str:
        return self._file.why_anew

    # Following the store

    def sync(self, tell: OnProgress = lambda done, total: None) -> int:
        """List all changes of the store; return the number of changed sessions. Rebuild a
        damaged or missing catalogue. Raises OSError."""
        with self._changing:
            self._file.mend()
            try:
                return self._sync(tell)
            except sqlite3.OperationalError:
                raise  # say, the disk is full
            except sqlite3.DatabaseError as fault:
                self.anew(str(fault))
                return self._sync(tell)

    def _sync(self, tell: OnProgress) -> int:
        self.faults = {}
        changes = list(self._changes())
        self.unread = total = len(changes)
        with lookers(total) as looks:
            asked: list[ProbeBatch] = []
            for at in range(0, total + AT_ONCE, AT_ONCE):
                tell(min(at, total), total)
                # Probe the next batch while this one is written.
                asked.append(self._ask(changes[at : at + AT_ONCE], looks))
                if len(asked) > 1:
                    self._list(asked.pop(0))
                    self.unread = max(0, total - at)
        return total

    def _changes(self) -> Iterator[Change]:
        with self._file.connection() as db:
            known = dict(db.execute("SELECT path, stamp FROM session"))
        for session in self._store.sessions():
            try:
                stamp = (self._root / session / SUMS_FILE).stat().st_mtime_ns
            except FileNotFoundError:
                continue
            except OSError as fault:
                self._skip(session, fault)
                known.pop(session, None)
                continue
            was = known.pop(session, None)
            if was != stamp:
                yield Change(session, stamp, was is not None)
        for session in known:
            yield Change(session, None)

    def _skip(self, session: str, fault: OSError) -> None:
        """Note that a session cannot be read now; the next sync tries it again."""
        self.faults[session] = fault.strerror or str(fault)

    def _ask(self, changes: Sequence[Change], looks: Prober) -> ProbeBatch:
        """Start probing the new segments of some sessions."""
        stored = {}
        for change in changes:
            try:
                stored[change.session] = list(self._store.listed(change.session))
            except OSError as fault:
                self._skip(change.session, fault)
        changes = [change for change in changes if change.session in stored]
        with self._file.connection() as db:
            known = {
                one: entry
                for session, _, known in changes
                if known
                for one, entry in search.entries_of(db, session)
            }
        new = [one for some in stored.values() for one in some if one not in known]
        asked = [ProbeJob(f"{self._root}/{one.path}", key_of(one.path)) for one in new]
        return ProbeBatch(changes, stored, known, new, looks(asked))

    def _list(self, asked: ProbeBatch) -> None:
        """Replace the rows of these sessions."""
        known = {**asked.known, **dict(zip(asked.new, asked.looked, strict=True))}
        with self._file.connection() as db:
            for session, stamp, was_known in asked.changes:
                if was_known:
                    forget(db, session)
                if stamp is not None:
                    self._add(db, session, stamp, asked.stored[session], known)

    def _add(
        self,
        db: sqlite3.Connection,
        session: str,
        stamp: int,
        stored: Iterable[StoredSegment],
        known: dict[StoredSegment, bytes],
    ) -> None:
        db.execute("INSERT INTO session VALUES (?, ?)", (session, stamp))
        entries = {one: search.entry_in(known[one]) for one in stored}
        db.executemany(
            "INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?)",
            [
                (entry.name, one.path, session, one.sha256, entry.bytes, known[one])
                for one, entry in entries.items()
            ],
        )
        car = session.partition("/")[0]
        for drive in self._titles.named(drives_of(entries.values())):
            add_drive(db, session, car, drive)

    # Queries of the page

    def paths(self, wanted: Iterable[str]) -> dict[str, Path]:
        with self._file.asked() as db:
            return {
                name: self._root / path
                for one in wanted
                for name, path in db.execute(
                    "SELECT name, path FROM segment WHERE name = ?", (one,)
                )
            }

    def writing(self, path: Path) -> bool:
        """Return False: every file in the store is complete."""
        return False

    def page(self, before: str, most: int) -> Page:
        with self._file.asked() as db:
            found = search.last_entries(db, before, most + 1)
        return Page(found[:most][::-1], len(found) > most)

    def find(self, wanted: Wanted, before_ms: float, most: int) -> Found:
        with self._file.asked() as db:
            if wanted.wheel == "driven" and not search.any_driven(db):
                wanted = wanted.unhidden()
            found = search.find(db, wanted, before_ms, most + 1)
            drivers = search.drivers(db)
        shown = found[:most]
        of = {session: self._where.of(session) for _, session, _ in shown}
        return Found(
            [drive for _, _, drive in shown],
            len(found) > most,
            drivers,
            self.unread,
            {one: of[session] for one, session, _ in shown},
        )

    def held(self) -> StoreUsage:
        """Return the size of the contents and the disk's usage. Raises OSError."""
        with self._file.asked() as db:
            (sessions,) = db.execute("SELECT count(*) FROM session").fetchone()
            all_of = "SELECT count(*), coalesce(sum(bytes), 0) FROM segment"
            segments, size = db.execute(all_of).fetchone()
        disk = shutil.disk_usage(self._root)
        return StoreUsage(str(self._root), sessions, segments, size, disk.free, disk.total)

    def name(self, drive: str, title: str) -> None:
        """Name a drive in the store, so that the name survives a rebuild of the catalogue."""
        with self._alone(), self._file.asked() as db:
            session, drives = self._found(db, drive)
            there = [name for (name,) in db.execute("SELECT name FROM segment")]
            named = next(one for one in drives if one.id == drive)
            self._titles.name(named, title, there)
            forget_drives(db, session)
            for one in self._titles.named(drives):
                add_drive(db, session, session.partition("/")[0], one)

    def delete(self, drive: str) -> tuple[list[str], list[str]]:
        """Move the session of a drive to the trash. Raises DriveBusy if the session has other
        drives."""
        with self._alone():
            with self._file.asked() as db:
                session, _ = self._found(db, drive)
                of = "SELECT count(*) FROM drive WHERE session = ? AND parked = 0 "
                (others,) = db.execute(f"{of} AND id != ?", (session, drive)).fetchone()
            if others:
                name = session.rpartition("/")[2]
                raise DriveBusy(
                    f"{others} more of its session would go with it. If they should: "
                    f"fpvstation rm {name}"
                )
            gone = self._store.remove(session, trash_of(time.time()))
            self._list(self._ask([Change(session, None)], lambda looks: []))
        return [one.path.rpartition("/")[2] for one in gone], []

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock on changes of the list. Raises DriveBusy."""
        if not self._changing.acquire(timeout=PATIENCE_S):
            raise DriveBusy("The list is being made: try again in a minute.")
        try:
            yield
        finally:
            self._changing.release()

    def _found(self, db: sqlite3.Connection, drive: str) -> tuple[str, list[Drive]]:
        """Return the session of a drive, and all drives of that session. Raises DriveMissing."""
        of = "SELECT session FROM drive WHERE id = ?"
        row = db.execute(of, (drive,)).fetchone()
        if row is None:
            raise DriveMissing("There is no such drive any more: look again.")
        (session,) = row
        entries = [search.entry_in(one) for _, one in search.entries_of(db, session)]
        return session, drives_of(entries)

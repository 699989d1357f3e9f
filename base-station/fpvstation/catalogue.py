"""What the station's page lists: each figure is reckoned once, when a session comes.

    store: CAR/DAY/SESSION/SHA256SUMS    changed? then each of its new segments is
                                         looked into, and its drives are made anew
    catalogue.sqlite                     segments, drives, and the words in them

It holds nothing that the store does not: lost, damaged, of another store or of a newer
fpvstation, it is made anew. It is no part of the store, which may be on a network disk,
where a write-ahead log does not work.
"""

import contextlib
import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from fpvcar.recordings.drives import Drive, Wanted, drives_of
from fpvcar.recordings.entries import Entry
from fpvcar.recordings.library import Page
from fpvcar.recordings.shelf import Copy, DriveBusy, DriveMissing, Found
from fpvcar.recordings.titles import Titles
from fpvstation import search
from fpvstation.catalogue_rows import add_drive, forget, forget_drives
from fpvstation.catalogue_schema import opened
from fpvstation.copies import HERE, Copies, Where
from fpvstation.disk import Folder
from fpvstation.look import Look, key_of, lookers
from fpvstation.store import Store, trash_of
from fpvstation.sums_file import SUMS_FILE, Stored

AT_ONCE = 256
"""Sessions in one transaction."""
PATIENCE_S = 2.0
FILE = "catalogue.sqlite"
log = logging.getLogger("fpvstation")
Looks = Callable[[Iterable[Look]], Iterable[Entry]]
Tell = Callable[[int, int], None]
"""Hears how many of how many sessions are listed."""


class Change(NamedTuple):
    """A session whose list is not the one that is known; `stamp` None: it is gone."""

    session: str
    stamp: int | None


class Held(msgspec.Struct):
    """How much a store holds: bytes of its segments, and of its disk."""

    path: str
    sessions: int
    segments: int
    bytes: int
    free: int
    total: int


class Catalogue:
    """The list of one store, and the shelf that the page asks. Blocks."""

    editable = True

    def __init__(self, path: Path, root: Path, store: Store, store_id: str) -> None:
        self._path, self._root, self._store = path, root, store
        self._id = store_id
        self._titles, self._copies = Titles(root), Copies(Folder(root))
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._opening, self._changing = threading.Lock(), threading.RLock()
        self._damaged = ""
        self.unread = 0
        """Sessions that are not looked into yet."""
        self.why_anew = ""
        """Why the catalogue was made anew, for people; "" where it was not."""

    # --- the file ---

    def open(self) -> None:
        """Opens it, or makes it anew and says why."""
        try:
            with self._connection() as db:
                found = db.execute("SELECT store FROM about").fetchone()
                # Reads all of it: what is damaged is known before somebody searches.
                (fault,) = db.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            self.anew(str(error))
            return
        if fault != "ok":
            self.anew(str(fault))
        elif found != (self._id,):
            self.anew("" if found is None else f"it is of the store {found[0]}")

    def anew(self, why: str) -> None:
        """Begins an empty one. `why` is for people; "": there was none."""
        if why:
            log.warning("%s: made anew from the store: %s", self._path, why)
            self.why_anew = why
        self._damaged = ""
        for end in ("-wal", "-shm", ""):
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)
        with self._connection() as db:
            db.execute("INSERT INTO about VALUES (?)", (self._id,))

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection, in a transaction of its own. One to a file that is
        not there any more is closed first."""
        with self._opening:
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None or self._local.inode != self._inode():
                if db is not None:
                    self._connections.remove(db)
                    self._local.db = None
                    db.close()
                db = self._local.db = opened(self._path)
                self._local.inode = self._inode()
                self._connections.append(db)
        with db:
            yield db

    def _inode(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat().st_ino
        return 0

    def close(self) -> None:
        """Closes what any thread has open; none uses it meanwhile."""
        with self._opening:
            self._local = threading.local()
            while self._connections:
                self._connections.pop().close()

    # --- how it follows the store ---

    def sync(self, tell: Tell = lambda done, total: None) -> int:
        """Looks for what changed in the store, and lists it; returns how many sessions.
        A catalogue that is damaged or gone is made anew. Raises OSError."""
        with self._changing:
            if self._damaged:
                self.anew(self._damaged)
            elif not self._path.exists():
                self.anew("it was removed")
            try:
                return self._sync(tell)
            except sqlite3.OperationalError:
                raise  # say, the disk is full
            except sqlite3.DatabaseError as fault:
                self.anew(str(fault))
                return self._sync(tell)

    def _sync(self, tell: Tell) -> int:
        changes = list(self._changes())
        self.unread = total = len(changes)
        with lookers(total) as looks:
            for at in range(0, total, AT_ONCE):
                tell(at, total)
                self._take(changes[at : at + AT_ONCE], looks)
                self.unread = max(0, total - at - AT_ONCE)
        tell(total, total)
        return total

    def _changes(self) -> Iterator[Change]:
        with self._connection() as db:
            known = dict(db.execute("SELECT path, stamp FROM session"))
        for session in self._store.sessions():
            with contextlib.suppress(FileNotFoundError):
                stamp = (self._root / session / SUMS_FILE).stat().st_mtime_ns
                if known.pop(session, None) != stamp:
                    yield Change(session, stamp)
        for session in known:
            yield Change(session, None)

    def _take(self, changes: Sequence[Change], looks: Looks) -> None:
        """Lists some sessions as they are now."""
        stored = {one.session: list(self._store.listed(one.session)) for one in changes}
        with self._connection() as db:
            known = {
                one: entry for session in stored
                for one, entry in search.entries_of(db, session)
            }  # fmt: skip
        new = [one for some in stored.values() for one in some if one not in known]
        asked = [Look(self._root / one.path, key_of(one.path)) for one in new]
        known.update(zip(new, looks(asked), strict=True))
        with self._connection() as db:
            for session, stamp in changes:
                forget(db, session)
                if stamp is not None:
                    self._add(db, session, stamp, stored[session], known)

    def _add(
        self, db: sqlite3.Connection, session: str, stamp: int,
        stored: Iterable[Stored], known: dict[Stored, Entry],
    ) -> None:  # fmt: skip
        db.execute("INSERT INTO session VALUES (?, ?)", (session, stamp))
        entries = [known[one] for one in stored]
        db.executemany(
            "INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?)",
            [(known[one].name, one.path, session, one.sha256, known[one].bytes,
              msgspec.json.encode(known[one])) for one in stored],
        )  # fmt: skip
        car = session.partition("/")[0]
        for drive in self._titles.named(drives_of(entries)):
            add_drive(db, session, car, drive)

    # --- what the page asks ---

    def paths(self, wanted: Iterable[str]) -> dict[str, Path]:
        """See Shelf."""
        with self._asked() as db:
            return {
                name: self._root / path for one in wanted for name, path in db.execute(
                    "SELECT name, path FROM segment WHERE name = ?", (one,)
                )
            }  # fmt: skip

    def writing(self, path: Path) -> bool:
        """What is in the store is whole."""
        return False

    def page(self, before: str, most: int) -> Page:
        """See Shelf."""
        with self._asked() as db:
            found = search.last_entries(db, before, most + 1)
        return Page(found[:most][::-1], len(found) > most)

    def find(self, wanted: Wanted, before_ms: float, most: int) -> Found:
        """See Shelf."""
        with self._asked() as db:
            if wanted.wheel == "driven" and not search.any_driven(db):
                wanted = wanted.unhidden()
            found = search.find(db, wanted, before_ms, most + 1)
            drivers = search.drivers(db)
        shown = found[:most]
        of = {session: self._copies_of(session) for _, session, _ in shown}
        return Found(
            [drive for _, _, drive in shown], len(found) > most, drivers, self.unread,
            {one: of[session] for one, session, _ in shown},
        )  # fmt: skip

    def _copies_of(self, session: str) -> list[Copy]:
        """Where a session is. What is here was judged when it came, or since then."""
        listed = self._store.listed(session)
        found = self._copies.where(session, listed)
        if all(one.place != HERE for one in found):
            with contextlib.suppress(FileNotFoundError):
                came_s = (self._root / session / SUMS_FILE).stat().st_mtime
                found.insert(0, Where(HERE, came_s, True))
        return [Copy(*one) for one in found]

    def held(self) -> Held:
        """How much is here, and how full the disk is. Raises OSError."""
        with self._asked() as db:
            (sessions,) = db.execute("SELECT count(*) FROM session").fetchone()
            all_of = "SELECT count(*), coalesce(sum(bytes), 0) FROM segment"
            segments, size = db.execute(all_of).fetchone()
        disk = shutil.disk_usage(self._root)
        return Held(str(self._root), sessions, segments, size, disk.free, disk.total)

    def name(self, drive: str, title: str) -> None:
        """Names a drive, in the store: the name outlives the catalogue."""
        with self._alone(), self._asked() as db:
            session, drives = self._found(db, drive)
            there = [name for (name,) in db.execute("SELECT name FROM segment")]
            named = next(one for one in drives if one.id == drive)
            self._titles.name(named, title, there)
            forget_drives(db, session)
            for one in self._titles.named(drives):
                add_drive(db, session, session.partition("/")[0], one)

    @contextlib.contextmanager
    def _asked(self) -> Iterator[sqlite3.Connection]:
        """A connection for who asks. Raises OSError if the file is damaged: it is made
        anew then."""
        try:
            with self._connection() as db:
                yield db
        except sqlite3.OperationalError as fault:
            raise OSError(f"the catalogue: {fault}") from None
        except sqlite3.DatabaseError as fault:
            self._damaged = str(fault)
            raise OSError("the catalogue is damaged, and made anew") from None

    def delete(self, drive: str) -> tuple[list[str], list[str]]:
        """Moves the session of a drive to the trash; one with other drives stays."""
        with self._alone():
            with self._asked() as db:
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
            self._take([Change(session, None)], lambda looks: [])
        return [one.path.rpartition("/")[2] for one in gone], []

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else changes the list. Raises DriveBusy."""
        if not self._changing.acquire(timeout=PATIENCE_S):
            raise DriveBusy("The list is being made: try again in a minute.")
        try:
            yield
        finally:
            self._changing.release()

    def _found(self, db: sqlite3.Connection, drive: str) -> tuple[str, list[Drive]]:
        """The session of a drive, and all drives of that. Raises DriveMissing."""
        of = "SELECT session FROM drive WHERE id = ?"
        row = db.execute(of, (drive,)).fetchone()
        if row is None:
            raise DriveMissing("There is no such drive any more: look again.")
        (session,) = row
        return session, drives_of(entry for _, entry in search.entries_of(db, session))

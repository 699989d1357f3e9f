"""Database file of the catalogue: opened, checked, and rebuilt if it is unusable."""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from fpvstation.catalogue.catalogue_schema import opened

log = logging.getLogger("fpvstation")


class CatalogueFile:
    """SQLite file with one connection per thread. Blocks."""

    def __init__(self, path: Path, store_id: str) -> None:
        """Set the path; `store_id`: id of the listed store."""
        self._path, self._id = path, store_id
        self._local, self._opening = threading.local(), threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._damaged = ""
        self.why_anew = ""
        """Reason of the last rebuild, for people; "" if it was not rebuilt."""

    def open(self) -> None:
        """Open the file. If it is unusable, start an empty one and log the reason."""
        try:
            with self.connection() as db:
                found = db.execute("SELECT store FROM about").fetchone()
                # quick_check reads the whole file: damage is found before the first search.
                (fault,) = db.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            self.anew(str(error))
            return
        if fault != "ok":
            self.anew(str(fault))
        elif found != (self._id,):
            self.anew("" if found is None else f"it is of the store {found[0]}")

    def anew(self, why: str) -> None:
        """Start an empty file. `why` is the reason for people; "" for a new catalogue."""
        if why:
            log.warning("%s: made anew from the store: %s", self._path, why)
            self.why_anew = why
        self._damaged = ""
        for end in ("-wal", "-shm", ""):
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)
        with self.connection() as db:
            db.execute("INSERT INTO about VALUES (?)", (self._id,))

    def mend(self) -> None:
        """Start an empty file if the old one is damaged or gone."""
        if self._damaged:
            self.anew(self._damaged)
        elif not self._path.exists():
            self.anew("it was removed")

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield this thread's connection, in its own transaction. A connection to a file that
        was removed is closed and opened again."""
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

    @contextlib.contextmanager
    def asked(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for a query. Raises OSError if the file is damaged, and marks it
        for a rebuild."""
        try:
            with self.connection() as db:
                yield db
        except sqlite3.OperationalError as fault:
            raise OSError(f"the catalogue: {fault}") from None
        except sqlite3.DatabaseError as fault:
            self._damaged = str(fault)
            raise OSError("the catalogue is damaged, and made anew") from None

    def close(self) -> None:
        """Close the connections of all threads; the caller makes sure that no thread uses one."""
        with self._opening:
            self._local = threading.local()
            while self._connections:
                self._connections.pop().close()

    def _inode(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat().st_ino
        return 0

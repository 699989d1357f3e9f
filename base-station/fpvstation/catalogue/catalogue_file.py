"""Database file of the catalogue: opened, checked, and rebuilt if it is unusable."""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from fpvcar.runtime.texts import SAYS, VERBATIM, Text
from fpvstation.catalogue.catalogue_schema import open_database
from fpvstation.errors import CHORE_LIST

log = logging.getLogger("fpvstation")


class CatalogueFile:
    """SQLite file with one connection per thread. Blocks."""

    def __init__(self, path: Path, store_id: str) -> None:
        """Set the path; `store_id`: id of the listed store."""
        self._path, self._id = path, store_id
        self._local, self._opening = threading.local(), threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._damaged: Text | None = None
        self.reset_reason: Text | None = None
        """Reason of the last rebuild; None if it was not rebuilt."""

    def open(self) -> None:
        """Open the file. If it is unusable, start an empty one and log the reason."""
        try:
            with self.connection() as db:
                row = db.execute("SELECT store FROM about").fetchone()
                # quick_check reads the whole file: damage is found before the first search.
                (fault,) = db.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            self.reset(VERBATIM(text=error))
            return
        if fault != "ok":
            self.reset(VERBATIM(text=fault))
        elif row != (self._id,):
            self.reset(
                None
                if row is None
                else Text("catalogue_other", "it belongs to the store {store}", store=row[0])
            )

    def reset(self, reason: Text | None) -> None:
        """Start an empty file. `reason` is None for a new catalogue."""
        if reason:
            log.warning("%s: rebuilt from the store: %s", self._path, reason)
            self.reset_reason = reason
        self._damaged = None
        for suffix in ("-wal", "-shm", ""):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        with self.connection() as db:
            db.execute("INSERT INTO about VALUES (?)", (self._id,))

    def mend(self) -> None:
        """Start an empty file if the old one is damaged or gone."""
        if self._damaged:
            self.reset(self._damaged)
        elif not self._path.exists():
            self.reset(Text("catalogue_removed", "it was removed"))

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield this thread's connection, in its own transaction. A connection to a file that
        was removed is closed and opened again."""
        with self._opening:
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None or self._local.inode != self._inode_number():
                if db is not None:
                    self._connections.remove(db)
                    self._local.db = None
                    db.close()
                db = self._local.db = open_database(self._path)
                self._local.inode = self._inode_number()
                self._connections.append(db)
        with db:
            yield db

    @contextlib.contextmanager
    def query(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for a query. Raises OSError if the file is damaged, and marks it
        for a rebuild."""
        try:
            with self.connection() as db:
                yield db
        except sqlite3.OperationalError as fault:
            raise OSError(SAYS(place=CHORE_LIST, reason=fault)) from None
        except sqlite3.DatabaseError as fault:
            self._damaged = VERBATIM(text=fault)
            raise OSError(
                Text("catalogue_damaged", "the catalogue is damaged; it is being rebuilt")
            ) from None

    def close(self) -> None:
        """Close the connections of all threads; the caller makes sure that no thread uses one."""
        with self._opening:
            self._local = threading.local()
            while self._connections:
                self._connections.pop().close()

    def _inode_number(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat().st_ino
        return 0

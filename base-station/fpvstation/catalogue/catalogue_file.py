"""The file of the catalogue: opened, judged, and made anew where it is no good."""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from fpvstation.catalogue.catalogue_schema import opened

log = logging.getLogger("fpvstation")


class CatalogueFile:
    """One file, and a connection of each thread. Blocks."""

    def __init__(self, path: Path, store_id: str) -> None:
        """`store_id`: the store that it lists."""
        self._path, self._id = path, store_id
        self._local, self._opening = threading.local(), threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._damaged = ""
        self.why_anew = ""
        """Why it was made anew, for people; "" where it was not."""

    def open(self) -> None:
        """Opens it, or makes it anew and says why."""
        try:
            with self.connection() as db:
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
        with self.connection() as db:
            db.execute("INSERT INTO about VALUES (?)", (self._id,))

    def mend(self) -> None:
        """Makes anew one that was found damaged, or that is gone."""
        if self._damaged:
            self.anew(self._damaged)
        elif not self._path.exists():
            self.anew("it was removed")

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
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

    @contextlib.contextmanager
    def asked(self) -> Iterator[sqlite3.Connection]:
        """A connection for who asks. Raises OSError if the file is damaged: it is made
        anew then."""
        try:
            with self.connection() as db:
                yield db
        except sqlite3.OperationalError as fault:
            raise OSError(f"the catalogue: {fault}") from None
        except sqlite3.DatabaseError as fault:
            self._damaged = str(fault)
            raise OSError("the catalogue is damaged, and made anew") from None

    def close(self) -> None:
        """Closes what any thread has open; none uses it meanwhile."""
        with self._opening:
            self._local = threading.local()
            while self._connections:
                self._connections.pop().close()

    def _inode(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat().st_ino
        return 0

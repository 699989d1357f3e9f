"""Insertion and removal of the catalogue's rows."""

import sqlite3

import msgspec

from fpvcar.library.drives import Drive, DriveFilter
from fpvstation.catalogue import search


def forget(db: sqlite3.Connection, session: str) -> None:
    """Delete a session, its segments and its drives."""
    db.execute("DELETE FROM session WHERE path = ?", (session,))
    db.execute("DELETE FROM segment WHERE session = ?", (session,))
    forget_drives(db, session)


def forget_drives(db: sqlite3.Connection, session: str) -> None:
    """Delete the drives of a session."""
    drives = "(SELECT at FROM drive WHERE session = ?)"
    for table in ("driver", "shown"):
        db.execute(f"DELETE FROM {table} WHERE at IN {drives}", (session,))
    db.execute("DELETE FROM drive WHERE session = ?", (session,))


def add_drive(db: sqlite3.Connection, session: str, car: str, drive: Drive) -> None:
    """Insert a drive with its search terms."""
    at, free = search.place_of(drive.start_ms), False
    while not free:  # cars with unset clocks may begin in the same ms
        query = "SELECT max(at) FROM drive WHERE at BETWEEN ? AND ?"
        (last,) = db.execute(query, (at, at + search.PLACES)).fetchone()
        at, free = at if last is None else last + 1, last is None
    db.execute(
        "INSERT INTO drive VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            at,
            drive.id,
            session,
            drive.parked,
            not DriveFilter(wheel="driven").takes(drive),
            search.words_of(car, drive),
            search.causes_of(drive.stops),
        ),
    )
    db.execute("INSERT INTO shown VALUES (?, ?)", (at, msgspec.json.encode(drive)))
    db.executemany("INSERT INTO driver VALUES (?, ?)", [(name, at) for name in drive.drivers])

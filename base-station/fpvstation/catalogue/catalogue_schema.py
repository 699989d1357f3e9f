"""Schema of the catalogue as numbered migrations; `PRAGMA user_version` is the number applied so
far. SQLite keeps that number in the file; a migration tool would add a table and a dependency
for the same purpose. A released migration never changes.

A drive's `at` is its start and a number: the table is in the order of the list, so that a page is
read without sorting.
"""

import sqlite3
from pathlib import Path

BUSY_S = 30.0
MIGRATIONS = (
    """
    CREATE TABLE about (store TEXT NOT NULL);
    CREATE TABLE session (path TEXT PRIMARY KEY, stamp INTEGER NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE segment (
        name TEXT NOT NULL, path TEXT NOT NULL, session TEXT NOT NULL,
        sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, entry BLOB NOT NULL);
    CREATE INDEX segment_name ON segment (name);
    CREATE INDEX segment_session ON segment (session);
    CREATE TABLE drive (
        at INTEGER PRIMARY KEY, id TEXT NOT NULL, session TEXT NOT NULL,
        parked INTEGER NOT NULL, hidden INTEGER NOT NULL,
        words TEXT NOT NULL, causes TEXT NOT NULL);
    CREATE INDEX drive_id ON drive (id);
    CREATE INDEX drive_session ON drive (session);
    CREATE INDEX drive_parked ON drive (parked, at);
    CREATE INDEX drive_hidden ON drive (hidden, at);
    CREATE TABLE shown (at INTEGER PRIMARY KEY, drive BLOB NOT NULL);
    CREATE TABLE driver (name TEXT NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (name, at)) WITHOUT ROWID;
    CREATE INDEX driver_at ON driver (at);
    CREATE VIRTUAL TABLE said USING fts5 (
        words, causes, content = 'drive', content_rowid = 'at', tokenize = 'trigram');
    CREATE TRIGGER drive_added AFTER INSERT ON drive BEGIN
        INSERT INTO said (rowid, words, causes)
        VALUES (new.at, new.words, new.causes);
    END;
    CREATE TRIGGER drive_gone AFTER DELETE ON drive BEGIN
        INSERT INTO said (said, rowid, words, causes)
        VALUES ('delete', old.at, old.words, old.causes);
    END;
    """,
    """
    ALTER TABLE session ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE session ADD COLUMN segments INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE session ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE session SET stamp = 0;  -- lists each session again
    """,
)


def open_database(path: Path) -> sqlite3.Connection:
    """Open a catalogue and migrate it to the newest schema. Raises DatabaseError."""
    db = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # lost rows are restored from the store
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise sqlite3.DatabaseError(f"schema {version}, expected at most {len(MIGRATIONS)}")
        for number in range(version, len(MIGRATIONS)):
            db.executescript(
                f"BEGIN; {MIGRATIONS[number]} PRAGMA user_version = {number + 1};COMMIT;"
            )
    except BaseException:
        db.close()
        raise
    return db

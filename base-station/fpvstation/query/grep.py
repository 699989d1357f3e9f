"""Text search over all recordings.

Marks, causes, drivers, faults and log lines are in the index of texts; names of sessions and titles
of drives in the catalogue. Each text is compared once, however often it was recorded.
"""

import contextlib
import heapq
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from fpvcar.recordings.export.tables import utc_text
from fpvstation.errors import StationError
from fpvstation.query import sidecar
from fpvstation.query.engine import catalogue
from fpvstation.query.keeper import folder_of

Search = Callable[[str], object]
PLAIN = re.compile(r"\w[\w ]{2,}")
"""Patterns that the catalogue's index of trigrams finds."""


class Match(NamedTuple):
    """Line with the pattern. `kind` is that of the event, or "session" or "title"."""

    utc: str
    session: str
    kind: str
    text: str


class _Titled(msgspec.Struct):
    """Figures of a drive in the catalogue."""

    start_ms: float
    title: str = ""


def grep(state: Path, store_id: str, pattern: str, most: int) -> list[Match]:
    """Return the newest `most` matches, oldest first. Raises StationError."""
    try:
        search = re.compile(pattern, re.IGNORECASE).search
    except re.error as fault:
        raise StationError(
            f'"{pattern}" refused: {fault}: expected a regular expression of Python; put a '
            "backslash before . * + ? ( ) [ ] { } ^ $ | that stand for themselves"
        ) from None
    folder = folder_of(state, store_id)
    if not (folder / sidecar.TEXTS).exists():
        raise StationError(f"no sidecar of this store in {folder}: fpvstation rebuild")
    try:
        found = _lines(folder, search, most)
    except sqlite3.DatabaseError as fault:
        raise StationError(
            f"{folder / sidecar.TEXTS} is damaged ({fault}): fpvstation rebuild, or a running "
            "station within a minute, writes it again"
        ) from None
    with catalogue(state, store_id) as db:
        found += _sessions(db, search, most) + _titles(db, search, pattern, most)
    return sorted(heapq.nlargest(most, found))


def _lines(folder: Path, search: Search, most: int) -> list[Match]:
    rows: list[tuple[int, int, str, str]] = []
    with contextlib.closing(sqlite3.connect(folder / sidecar.TEXTS)) as db:
        query = (
            "SELECT time_us, source, kind FROM line WHERE text = ? ORDER BY time_us DESC LIMIT ?"
        )
        for number, text in db.execute("SELECT id, text FROM text"):
            if search(text):
                rows += [(*row, text) for row in db.execute(query, (number, most))]
        stem = "SELECT stem FROM source WHERE id = ?"
        return [
            Match(
                utc_text(time_us * 1000),
                sidecar.session_of(db.execute(stem, (source,)).fetchone()[0]),
                kind,
                text,
            )
            for time_us, source, kind, text in heapq.nlargest(most, rows)
        ]


def _sessions(db: sqlite3.Connection, search: Search, most: int) -> list[Match]:
    paths = (path for (path,) in db.execute("SELECT path FROM session") if search(path))
    matches = (Match(_began(path), path, "session", path.rpartition("/")[2]) for path in paths)
    return heapq.nlargest(most, matches)


def _began(session: str) -> str:
    """Return the time in a session's name, as utc_text does."""
    text = session.rpartition("-")[2]
    return f"{text[:4]}-{text[4:6]}-{text[6:11]}:{text[11:13]}:{text[13:15]}.000000000Z"


def _titles(db: sqlite3.Connection, search: Search, pattern: str, most: int) -> list[Match]:
    query = "SELECT session, shown.drive FROM shown JOIN drive USING (at)"
    if PLAIN.fullmatch(pattern):
        query += " WHERE at IN (SELECT rowid FROM said WHERE said MATCH ?)"
    rows = db.execute(query, [f'"{pattern}"'] if "?" in query else [])
    decode = msgspec.json.Decoder(_Titled).decode
    drives = ((session, decode(drive)) for session, drive in rows)
    matches = (
        Match(utc_text(round(drive.start_ms * 1e6)), session, "title", drive.title)
        for session, drive in drives
        if drive.title and search(drive.title)
    )
    return heapq.nlargest(most, matches)

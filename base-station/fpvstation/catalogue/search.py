"""Search for drives in the catalogue by words, driver, time and cause.

Words match anywhere in a drive's text, as on the car's page: FTS5 keeps an index of all trigrams.
Words shorter than three letters are searched in the text itself.
"""

import sqlite3
from collections.abc import Iterable, Iterator

import msgspec

from fpvcar.library.drives import Drive, DriveFilter
from fpvcar.library.summaries import Entry
from fpvstation.store.sums_file import StoredSegment

PLACES = 1024
"""Largest number of drives that may begin in the same ms."""
PLACE_MOST = 2**62
INDEXED = 3
"""Length of the shortest word in the index, in letters."""
entry_in = msgspec.json.Decoder(Entry).decode
drive_in = msgspec.json.Decoder(Drive).decode


def place_of(ms: float) -> int:
    """Return the position in the list of a drive that begins at `ms`."""
    return int(min(max(ms, 0.0) * PLACES, PLACE_MOST))


def words_of(car: str, drive: Drive) -> str:
    """Return the searchable text of a drive in lower case, one item per line."""
    marks = (mark.text for part in drive.parts for mark in part.marks)
    texts = dict.fromkeys((drive.title, car, *drive.drivers, *marks))
    return "\n".join(text for text in texts if text).casefold()


def causes_of(causes: Iterable[str]) -> str:
    """Return the causes of stops, each between bars, to tell "estop" from "estop_grown_up"."""
    return "".join(f"|{cause}|" for cause in sorted(causes))


def find(
    db: sqlite3.Connection, wanted: DriveFilter, before_ms: float, most: int
) -> list[tuple[str, str, msgspec.Raw]]:
    """Return the newest drives that match: id, session, and JSON."""
    end, start = place_of(min(wanted.until_ms, before_ms)), place_of(wanted.since_ms)
    words = wanted.text.casefold().split()
    indexed = bool(words) and min(map(len, words)) >= INDEXED
    # The most selective table leads the join; SQLite would guess.
    source, at = (
        ("driver CROSS JOIN drive USING (at)", "driver.at")
        if wanted.driver
        else ("said CROSS JOIN drive ON drive.at = said.rowid", "said.rowid")
        if indexed
        else ("drive", "drive.at")
    )
    clauses, values = [f"{at} >= ?", f"{at} < ?"], list[str | int]([start, end])
    if wanted.driver:
        clauses.append("driver.name = ?")
        values.append(wanted.driver)
    if wanted.id:
        clauses.append("drive.id = ?")
        values.append(wanted.id)
    if wanted.wheel:
        parked = wanted.wheel == "parked"
        clauses.append("drive.parked = 1" if parked else "drive.hidden = 0")
    if indexed:
        match = "drive.at IN (SELECT rowid FROM said WHERE said MATCH ?)"
        clauses.append(match if wanted.driver else "said MATCH ?")
        values.append(_match(words, wanted.causes))
    elif words:
        in_words = " AND ".join("instr(words, ?)" for _ in words)
        in_causes = "".join(" OR instr(causes, ?)" for _ in wanted.causes)
        clauses.append(f"(({in_words}){in_causes})")
        values += [*words, *map(_barred, sorted(wanted.causes))]
    rows = db.execute(
        "SELECT id, session, shown.drive FROM shown JOIN drive USING (at) WHERE at IN "
        f"(SELECT drive.at FROM {source} WHERE {' AND '.join(clauses)} "
        f"ORDER BY {at} DESC LIMIT {most}) ORDER BY at DESC",
        values,
    )
    return [(drive_id, session, msgspec.Raw(drive)) for drive_id, session, drive in rows]


def _match(words: Iterable[str], causes: Iterable[str]) -> str:
    """Return the query in FTS5 syntax; user input appears only quoted."""
    terms = " AND ".join(f"words : {_quoted(word)}" for word in words)
    return " OR ".join(
        [f"({terms})", *(f"causes : {_quoted(_barred(cause))}" for cause in sorted(causes))]
    )


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""').replace("\0", "")
    return f'"{doubled}"'


def _barred(cause: str) -> str:
    return f"|{cause}|"


def any_driven(db: sqlite3.Connection) -> bool:
    """Return whether any drive is visible (not hidden)."""
    rows = db.execute("SELECT 1 FROM drive WHERE hidden = 0 LIMIT 1")
    return rows.fetchone() is not None


def drivers(db: sqlite3.Connection) -> list[str]:
    """Return the names of all drivers. The query steps from name to name, independent of the
    number of drives."""
    rows = db.execute(
        "WITH RECURSIVE one (name) AS (SELECT min(name) FROM driver UNION ALL "
        "SELECT (SELECT min(name) FROM driver WHERE name > one.name) FROM one "
        "WHERE one.name IS NOT NULL) SELECT name FROM one WHERE name IS NOT NULL"
    )
    return [name for (name,) in rows]


def entries_of(db: sqlite3.Connection, session: str) -> Iterator[tuple[StoredSegment, bytes]]:
    """Return the catalogued segments of a session, with an Entry each as JSON."""
    for path, sha256, entry in db.execute(
        "SELECT path, sha256, entry FROM segment WHERE session = ?", (session,)
    ):
        yield StoredSegment(path, sha256), entry


def drives_in(db: sqlite3.Connection, session: str) -> Iterator[Drive]:
    """Yield the drives of a session, the oldest first."""
    query = "SELECT shown.drive FROM drive JOIN shown USING (at) WHERE session = ? ORDER BY at"
    for (drive,) in db.execute(query, (session,)):
        yield drive_in(drive)


def last_entries(db: sqlite3.Connection, before: str, most: int) -> list[Entry]:
    """Return the last segments in descending order of their names."""
    rows = db.execute(
        "SELECT entry FROM segment WHERE ? = '' OR name < ? ORDER BY name DESC LIMIT ?",
        (before, before, min(most, PLACE_MOST)),
    )
    return [entry_in(entry) for (entry,) in rows]

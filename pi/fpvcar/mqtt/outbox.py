"""Events that the broker has not acknowledged, and each car's memory, in a file.

They survive a restart of the station, and any silence of the broker: up to MOST events, then the
oldest ones are dropped. A power cut may cost the last ones.
"""

import logging
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from fpvcar.mqtt.events import Event, Memory

FILE = "mqtt.sqlite"
MOST = 10_000
"""Limit of events of all cars; some 2 MB."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY AUTOINCREMENT, car TEXT, event BLOB);
CREATE TABLE IF NOT EXISTS memories (car TEXT PRIMARY KEY, memory BLOB);
"""
log = logging.getLogger("fpvcar.mqtt")


class Outbox:
    """Queue of events, by car."""

    def __init__(self, path: Path, most: int = MOST) -> None:
        """Open the file; a damaged one is replaced. Raises sqlite3.Error."""
        self._most = most
        try:
            self._file = _opened(path)
        except sqlite3.OperationalError:  # say, the disk is full: the file is whole
            raise
        except sqlite3.DatabaseError as fault:
            log.error("%s: %s: replaced by an empty one; its events are lost", path, fault)
            for part in path.parent.glob(f"{path.name}*"):
                part.unlink()
            self._file = _opened(path)

    def close(self) -> None:
        """Close the file; the outbox is then unusable."""
        self._file.close()

    def memory(self, car: str) -> Memory | None:
        """Return the saved memory of a car. Raises sqlite3.Error."""
        row = self._file.execute("SELECT memory FROM memories WHERE car = ?", (car,)).fetchone()
        return msgspec.json.decode(row[0], type=Memory) if row else None

    def add(self, car: str, memory: Memory, events: Iterable[Event]) -> None:
        """Save events together with the car's new memory. Raises sqlite3.Error."""
        rows = [(car, msgspec.json.encode(event)) for event in events]
        saved = msgspec.json.encode(memory)
        with self._file as file:
            file.execute("INSERT OR REPLACE INTO memories VALUES (?, ?)", (car, saved))
            file.executemany("INSERT INTO events (car, event) VALUES (?, ?)", rows)
            dropped = file.execute(
                "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (self._most,)
            ).rowcount
        if dropped:
            log.warning("MQTT: %d events wait for the broker: the oldest is dropped", self._most)

    def events(self, car: str, most: int) -> list[Event]:
        """Return the oldest `most` waiting events of a car. Raises sqlite3.Error."""
        rows = self._file.execute(
            "SELECT id, event FROM events WHERE car = ? ORDER BY id LIMIT ?", (car, most)
        )
        return [replace(msgspec.json.decode(blob, type=Event), id=number) for number, blob in rows]

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove events by their numbers. Raises sqlite3.Error."""
        with self._file as file:
            file.executemany("DELETE FROM events WHERE id = ?", [(number,) for number in numbers])

    def forget(self, car: str) -> None:
        """Remove a car's events and memory. Raises sqlite3.Error."""
        with self._file as file:
            file.execute("DELETE FROM events WHERE car = ?", (car,))
            file.execute("DELETE FROM memories WHERE car = ?", (car,))


def _opened(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path)
    try:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        file.executescript(SCHEMA)
    except sqlite3.Error:
        file.close()
        raise
    return file

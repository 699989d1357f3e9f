"""Outbox: events survive the station, and are bounded."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from fpvcar.mqtt.events import Event, Memory
from fpvcar.mqtt.outbox import FILE, Outbox

MEMORY = Memory(run="1", driver="Ann", stops={"estop": 2})


def events(*numbers: int) -> list[Event]:
    return [Event("stop", str(number), cause="estop") for number in numbers]


def test_events_and_memory_survive_a_station_that_is_killed(tmp_path: Path) -> None:
    first = Outbox(tmp_path / FILE)
    first.add("a", MEMORY, events(1, 2))
    first.add("b", Memory(), events(3))
    again = Outbox(tmp_path / FILE)  # the first one never closed its file
    assert [(one.id, one.time) for one in again.events("a", 9)] == [(1, "1"), (2, "2")]
    assert again.memory("a") == MEMORY and again.memory("c") is None
    again.remove([1])
    assert [one.id for one in again.events("a", 9)] == [2]
    first.close()
    again.close()


def test_number_of_a_removed_event_is_not_used_again(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / FILE)
    outbox.add("a", MEMORY, events(1))
    outbox.remove([1])
    outbox.add("a", MEMORY, events(2))
    assert [one.id for one in outbox.events("a", 9)] == [2]
    outbox.close()


def test_full_outbox_drops_the_oldest_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = Outbox(tmp_path / FILE, most=3)
    outbox.add("a", MEMORY, events(1, 2, 3))
    assert caplog.text == ""
    outbox.add("b", MEMORY, events(4))
    assert [one.id for one in outbox.events("a", 9)] == [2, 3]
    assert "3 events wait for the broker: the oldest is dropped" in caplog.text
    outbox.close()


def test_failed_save_keeps_memory_and_events_as_they_were(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / FILE)
    outbox.add("a", MEMORY, events(1))
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("DROP TABLE events")
    other.commit()
    other.close()
    with pytest.raises(sqlite3.Error):
        outbox.add("a", Memory(), events(2))
    assert outbox.memory("a") == MEMORY
    outbox.close()


def test_damaged_file_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 100)
    outbox = Outbox(tmp_path / FILE)
    assert outbox.memory("a") is None and "replaced by an empty one" in caplog.text
    outbox.close()


def test_locked_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = Outbox(tmp_path / FILE)
    outbox.add("a", MEMORY, events(1))
    outbox.close()
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0.0))
    with closing(sqlite3.connect(tmp_path / FILE)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            Outbox(tmp_path / FILE)
    outbox = Outbox(tmp_path / FILE)
    assert len(outbox.events("a", 9)) == 1
    outbox.close()


def test_forgotten_car_leaves_nothing(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / FILE)
    outbox.add("a", MEMORY, events(1))
    outbox.add("b", MEMORY, events(2))
    outbox.forget("a")
    assert outbox.events("a", 9) == [] and outbox.memory("a") is None
    assert len(outbox.events("b", 9)) == 1
    outbox.close()

"""Records of the copies of a session, which become stale when the session changes."""

from pathlib import Path

import pytest
from testkit.base_station.stored import SESSION

from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import COPIES, HERE, ReplicaLog, ReplicaState
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

ONE, TWO = (StoredSegment(f"{SESSION}/{number}.mcap", number * 32) for number in ("01", "02"))
OFFICE, OTHER = "office:/store", "attic:/store"


@pytest.fixture
def copies(tmp_path: Path) -> ReplicaLog:
    return ReplicaLog(Folder(tmp_path))


def test_copy_counts_as_whole_until_the_session_grows(copies: ReplicaLog) -> None:
    assert copies.states(SESSION, [ONE]) == []
    copies.record(SESSION, OFFICE, {"01.mcap": ONE.sha256}, 5.0)
    copies.record(SESSION, HERE, {"01.mcap": ONE.sha256}, 7.0)
    assert copies.states(SESSION, [ONE]) == [
        ReplicaState(HERE, 7.0, True),
        ReplicaState(OFFICE, 5.0, True),
    ]
    assert [one.whole for one in copies.states(SESSION, [ONE, TWO])] == [False, False]


def test_segment_counts_where_its_own_bytes_were_verified(copies: ReplicaLog) -> None:
    copies.record(SESSION, OFFICE, {"01.mcap": ONE.sha256, "02.mcap": "x"}, 5.0)
    copies.record(SESSION, OTHER, {"01.mcap": ONE.sha256}, 5.0)
    assert copies.count(ONE, [OFFICE, OTHER, "third:/store"], 5.0) == 2
    assert copies.count(ONE, [OTHER], 5.0) == 1
    assert copies.count(TWO, [OFFICE, OTHER], 5.0) == 0, "another one of that name"


@pytest.mark.parametrize("text", [b"", b'{"x":', b'{"x":{}}', b'{"x":' * 5000])
def test_damaged_record_counts_as_none(copies: ReplicaLog, tmp_path: Path, text: bytes) -> None:
    copies.record(SESSION, OFFICE, {}, 5.0)
    (tmp_path / COPIES / f"{SESSION}.json").write_bytes(text)
    assert copies.of(SESSION) == {} and copies.count(ONE, [OFFICE], 5.0) == 0
    copies.record(SESSION, OFFICE, {"01.mcap": ONE.sha256}, 6.0)
    assert copies.count(ONE, [OFFICE], 5.0) == 1


def test_store_does_not_take_the_records_for_a_car(tmp_path: Path) -> None:
    ReplicaLog(Folder(tmp_path)).record(SESSION, OFFICE, {}, 5.0)
    assert list(Store(Folder(tmp_path)).sessions()) == []

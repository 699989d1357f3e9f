"""Incoming segment: validated as a whole, or MiB by MiB."""

import os
from pathlib import Path

import pytest
from testkit.base_station.stored import CAR, NAME, SESSION, opened, sums_of

from fpvcar.runtime.units import MIB
from fpvcar.wire.station import Sums
from fpvstation.errors import StationError
from fpvstation.fetch.incoming import IncomingSegment
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store

DATA = bytes(range(256)) * (5 * MIB // 512)
PIECES = [DATA[at : at + MIB] for at in range(0, len(DATA), MIB)]
SUMS = sums_of(DATA)


class Reading(Folder):
    """Folder that counts whole reads of files."""

    reads = 0

    def sums(self, path: str) -> Sums:
        self.reads += 1
        return super().sums(path)


@pytest.fixture
def disk(tmp_path: Path) -> Reading:
    return Reading(tmp_path)


@pytest.fixture
def store(disk: Reading) -> Store:
    return opened(disk)


def arrival_of(store: Store, sums: Sums = SUMS) -> IncomingSegment:
    return IncomingSegment(store, CAR, NAME, sums)


def test_segment_received_in_one_go_is_not_read_again(store: Store, disk: Reading) -> None:
    coming = arrival_of(store)
    assert coming.missing() == [0, 1, 2]
    disk.reads = 0
    assert all(coming.write_piece(number, data) for number, data in enumerate(PIECES))
    assert coming.missing() == []
    coming.publish()
    assert disk.reads == 0 and disk.read(f"{SESSION}/{NAME}") == DATA


def test_damaged_piece_is_requested_again(store: Store, disk: Reading) -> None:
    coming = arrival_of(store)
    coming.missing()
    for number, data in enumerate([PIECES[0], bytes(MIB), PIECES[2]]):
        coming.write_piece(number, data)
    assert coming.missing() == [1]
    assert not coming.write_piece(1, bytes(MIB)) and coming.missing() == [1]
    assert coming.write_piece(1, PIECES[1]) and coming.missing() == []
    coming.publish()
    assert disk.read(f"{SESSION}/{NAME}") == DATA


def test_arrival_resumes_where_another_try_ended(store: Store, disk: Reading) -> None:
    before = arrival_of(store)
    before.missing()
    before.write_piece(0, PIECES[0])
    coming = arrival_of(store)
    assert coming.missing() == [1, 2]
    assert coming.write_piece(1, PIECES[1]) and coming.write_piece(2, PIECES[2])
    disk.reads = 0
    coming.publish()
    assert disk.reads == 1, "nobody hashed all of it on its way"


def test_contradictory_checksums_publish_nothing(store: Store, tmp_path: Path) -> None:
    coming = arrival_of(store, Sums(SUMS.size, "0" * 64, SUMS.pieces))
    coming.missing()
    for number, data in enumerate(PIECES):
        coming.write_piece(number, data)
    assert coming.missing() == []
    with pytest.raises(StationError, match="does not return the written bytes"):
        coming.publish()
    assert not (tmp_path / SESSION).exists()


def test_unverified_bytes_never_reach_a_published_file(store: Store, tmp_path: Path) -> None:
    """A kill between link and unlink leaves the temporary name in place, too."""
    coming = arrival_of(store)
    coming.missing()  # requested while its disk was unmounted, for example
    other = arrival_of(store)
    other.missing()
    for number, data in enumerate(PIECES):
        other.write_piece(number, data)
    assert other.missing() == []
    published = tmp_path / other.publish().path
    part = tmp_path / ".incoming" / CAR / f"{NAME}.{SUMS.sha256}"
    os.link(published, part)
    coming.write_piece(0, bytes(MIB))
    assert published.read_bytes() == DATA


def test_copy_at_an_office_keeps_its_name(store: Store, tmp_path: Path) -> None:
    """Set-up: a clock that gave a name twice, and a disk that lost the first file."""
    first, other = store_of(store, DATA), store_of(store, b"another minute")
    assert first == f"{SESSION}/{NAME}" and other != first
    ReplicaLog(Folder(tmp_path)).record(SESSION, "office:/", {NAME: SUMS.sha256}, 5.0)
    (tmp_path / first).unlink()
    store.verify_segment(next(one for one in store.segments() if one.path == first))
    assert store_of(store, b"a third one").startswith(f"{SESSION}.")
    assert store_of(store, b"another minute") == other, "none is there twice"
    assert store_of(store, DATA) == first


def test_file_damaged_by_a_power_cut_is_replaced(store: Store, tmp_path: Path) -> None:
    first = store_of(store, DATA)
    ReplicaLog(Folder(tmp_path)).record(SESSION, "office:/", {NAME: SUMS.sha256}, 5.0)
    (tmp_path / first).write_bytes(bytes(len(DATA)))
    (tmp_path / SESSION / "SHA256SUMS").unlink()
    assert store_of(store, DATA) == first, "the office's comes back to that place, too"


def store_of(store: Store, data: bytes) -> str:
    """Store a segment; return its path."""
    coming = arrival_of(store, sums_of(data))
    for number in coming.missing():
        coming.write_piece(number, data[number * MIB : (number + 1) * MIB])
    assert coming.missing() == []
    return coming.publish().path

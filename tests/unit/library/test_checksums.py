"""Checksums of sealed files: computed while writing, kept, and made if missing."""

import hashlib
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from testkit.recorder.recording import FakeFolder, go_on, name, recorded

from fpvcar.library import checksums
from fpvcar.recordings import names
from fpvcar.runtime.units import MIB

NAME = "Plague-20261121T193100Z-0001.mcap"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / NAME).write_bytes(b"a recording")
    return tmp_path / NAME


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB + 7])
def test_checksums_of_pieces_and_file_match_hashlib(size: int) -> None:
    data, summing = os.urandom(size), checksums.Checksummer()
    for at in range(0, size, 300_000):
        summing.add(data[at : at + 300_000])
    made = summing.sums()
    pieces = [data[at : at + MIB] for at in range(0, size, MIB)]
    assert made.size == size and checksums.plausible(made)
    assert made.sha256 == hashlib.sha256(data).hexdigest()
    assert made.pieces == [hashlib.sha256(one).hexdigest() for one in pieces]
    assert summing.sums() == made, "asking changes nothing"


def test_checksums_are_computed_once_and_kept(path: Path) -> None:
    rests: list[int] = []
    made = checksums.sums_of(path, lambda: rests.append(1))
    assert rests and made.sha256 == hashlib.sha256(b"a recording").hexdigest()
    rests.clear()
    assert checksums.sums_of(path, lambda: rests.append(1)) == made and not rests


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"{",
        b"[]",
        b'{"sha256":"\xff"',
        b'{"x":' * 5000,
        b'{"size":11,"sha256":"","pieces":[]}',
        b'{"size":11,"sha256":"%s","pieces":[]}' % (b"0" * 64),
        b'{"size":3,"sha256":"%s","pieces":["%s"]}' % (b"0" * 64, b"0" * 64),
    ],
)
def test_invalid_kept_checksums_are_computed_again(path: Path, kept: bytes) -> None:
    path.with_name(NAME + names.SUMS).write_bytes(kept)
    assert checksums.sums_of(path) == checksums.read(path)


def test_checksums_are_returned_even_if_not_writable(path: Path) -> None:
    path.with_name(NAME + names.SUMS).mkdir()  # a directory cannot be replaced
    assert checksums.sums_of(path) == checksums.read(path)


def of(data: bytes) -> bytes:
    summing = checksums.Checksummer()
    summing.add(data)
    return checksums.encoded(summing.sums())


def test_recorder_writes_checksums_of_sealed_files() -> None:
    disk = FakeFolder()
    recorded(disk, 7).close()
    assert disk.names == [name(1), name(2)]
    for one in disk.names:
        assert bytes(disk.files[one + names.SUMS]) == of(bytes(disk.files[one]))


def test_bit_flip_after_sealing_contradicts_checksums() -> None:
    disk = FakeFolder()
    recorded(disk, 7).close()
    disk.files[name(1)][1000] ^= 1
    assert bytes(disk.files[name(1) + names.SUMS]) != of(bytes(disk.files[name(1)]))


def test_unwritable_checksums_do_not_stop_the_recording() -> None:
    disk = FakeFolder()
    rotation, write = recorded(disk, 4), disk.write
    full = OSError(28, "No space left on device")

    disk.write = Mock(side_effect=full)  # type: ignore[method-assign]
    go_on(rotation, range(4, 8))
    disk.write = write  # type: ignore[method-assign]
    rotation.close()
    assert disk.names == [name(1), name(2)]
    assert name(1) + names.SUMS not in disk.files
    assert name(2) + names.SUMS in disk.files


def test_new_file_drops_markers_of_an_old_namesake() -> None:
    """A receipt for a removed file would cost the next file of its name."""
    disk = FakeFolder()
    for mark in names.BESIDE:
        disk.files[name(1) + mark] = bytearray(b"old")
    recorded(disk, 3).close()
    assert sorted(disk.files) == [name(1), name(1) + names.SUMS]
    assert bytes(disk.files[name(1) + names.SUMS]) == of(bytes(disk.files[name(1)]))

"""Store on a real disk: its identity, list, trash, and scrub."""

import errno
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from testkit.base_station.stored import (
    CAR,
    DATA,
    NAME,
    SECOND,
    SESSION,
    THIRD,
    opened,
    put,
    sums_of,
)

from fpvcar.runtime.units import MIB
from fpvstation.errors import StationError
from fpvstation.store import disk
from fpvstation.store.disk import Folder
from fpvstation.store.identity import MARKER, StoreGone
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.verify import verify


def test_sha256sum_verifies_a_session(store: Store, tmp_path: Path) -> None:
    put(store)
    put(store, SECOND, b"second")
    put(store, THIRD, b"")
    done = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / SESSION, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.count(": OK") == 3
    assert [one.path for one in store.segments()] == [
        f"{SESSION}/{name}" for name in (NAME, SECOND, THIRD)
    ]
    assert not list((tmp_path / ".incoming" / CAR).iterdir())


def test_removed_damaged_line_is_reported_and_the_others_hold(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = hashlib.sha256(b"").hexdigest()
    bent = b"\xff" + good[1:].encode()
    (tmp_path / ".removed").write_bytes(b"%s\n%s\n" % (bent, good.encode()))
    assert store.removed() == store.removed() == {good}
    assert caplog.text.count("damaged lines: 1 of 2") == 1


def test_received_pieces_are_not_requested_again(store: Store, tmp_path: Path) -> None:
    made = sums_of(DATA)
    assert store.missing(CAR, NAME, made) == [0, 1]
    store.write(CAR, NAME, made, 1, DATA[MIB:])
    assert store.missing(CAR, NAME, made) == [0]
    store.write(CAR, NAME, made, 0, b"x" + DATA[1:MIB])
    assert store.missing(CAR, NAME, made) == [0], "a piece that bent is not good"
    with pytest.raises(StationError, match="does not return the written bytes"):
        store.publish(CAR, NAME, made)
    assert not (tmp_path / SESSION / NAME).exists()
    put(store)
    assert store.find(CAR, NAME, len(DATA)) and not store.find(CAR, NAME, 7)
    assert store.missing(CAR, NAME, made) == []


def test_list_line_lost_by_a_kill_is_written_later(store: Store, tmp_path: Path) -> None:
    put(store)
    (tmp_path / SESSION / "SHA256SUMS").unlink()
    assert not store.find(CAR, NAME, len(DATA)) and not list(store.segments())
    made = sums_of(DATA)
    assert store.missing(CAR, NAME, made) == []
    store.publish(CAR, NAME, made)
    assert store.find(CAR, NAME, len(DATA))


def test_name_used_twice_keeps_both_segments(store: Store, tmp_path: Path) -> None:
    one, other = put(store), put(store, data=b"another minute of that name")
    found = {stored.sha256: stored.path for stored in store.segments()}
    assert found.keys() == {one.sha256, other.sha256}
    assert found[other.sha256] == f"{SESSION}.{other.sha256[:8]}/{NAME}"
    assert store.find(CAR, NAME, one.size) and store.find(CAR, NAME, other.size)


def test_name_at_an_office_is_given_to_no_other_segment(store: Store, tmp_path: Path) -> None:
    """The office's file is gone from here, and must not be replaced."""
    theirs = {NAME: sums_of(b"gone from here").sha256}
    ReplicaLog(Folder(tmp_path)).record(SESSION, "office", theirs, 1.0)
    made = put(store)
    (stored,) = store.segments()
    assert stored.path == f"{SESSION}.{made.sha256[:8]}/{NAME}"


def test_unmounted_or_other_disk_is_not_taken_for_the_store(tmp_path: Path) -> None:
    known = Store(Folder(tmp_path)).open("")
    assert Store(Folder(tmp_path)).open(known) == known
    (tmp_path / "mount").mkdir()
    with pytest.raises(StationError, match="mount its disk"):
        Store(Folder(tmp_path / "mount")).open(known)
    Store(Folder(tmp_path / "mount")).open("")
    with pytest.raises(StationError, match="mount the right"):
        Store(Folder(tmp_path / "mount")).open(known)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is this folder a store"),
        (b'{"id":"\xff"', "is this folder a store"),
        (b'{"x":' * 5000, "is this folder a store"),
        (b'{"format":2,"id":"x"}', "update fpvstation"),
    ],
)
def test_foreign_marker_is_refused(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / MARKER).write_bytes(text)
    with pytest.raises(StationError, match=words):
        Store(Folder(tmp_path)).open("")


def test_folder_with_other_files_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "holidays").mkdir()
    with pytest.raises(StationError, match="holidays is here"):
        Store(Folder(tmp_path)).open("")


@pytest.mark.parametrize(
    ("car", "name"), [("..", NAME), ("a/b", NAME), (CAR, "../x.mcap"), (CAR, "x.mcap")]
)
def test_name_that_leads_out_of_the_store_is_refused(store: Store, car: str, name: str) -> None:
    with pytest.raises(StationError, match="not a segment's name"):
        store.missing(car, name, sums_of(DATA))


def test_removed_session_is_in_trash_and_unwanted_until_it_is_wanted_again(
    store: Store, tmp_path: Path
) -> None:
    made = put(store)
    assert len(store.remove(SESSION, ".trash/2026-11-22")) == 1
    assert (tmp_path / ".trash/2026-11-22" / SESSION / NAME).read_bytes() == DATA
    assert store.removed() == {made.sha256} and not list(store.segments())
    store.want_again({made.sha256})
    assert store.removed() == set()


def faults(store: Store, root: Path) -> Iterator[str]:
    for one in verify(store, Folder(root), sorted(store.known()), 1e6):
        yield one.fault


def test_scrub_finds_damaged_and_missing_files(store: Store, tmp_path: Path) -> None:
    put(store)
    put(store, SECOND, b"second")
    assert list(faults(store, tmp_path)) == ["", ""]
    path = tmp_path / SESSION / NAME
    bent = bytearray(DATA)
    bent[99] ^= 4
    path.chmod(0o644)
    path.write_bytes(bent)
    (tmp_path / SESSION / SECOND).unlink()
    said = list(faults(store, tmp_path))
    assert hashlib.sha256(bent).hexdigest()[:16] in said[0] and said[1] == "it is missing"
    assert (tmp_path / ".bad" / SESSION / NAME).read_bytes() == bent
    assert not store.find(CAR, NAME, len(DATA)), "it is fetched again"
    put(store)
    assert list(faults(store, tmp_path)) == ["file and line are missing", ""]
    put(store, SECOND, b"second")
    assert list(faults(store, tmp_path)) == ["", ""]


def test_two_processes_never_lose_a_line_of_each_other(store: Store, tmp_path: Path) -> None:
    """The scrub runs beside a station that stores."""
    with ThreadPoolExecutor(1) as other:
        with Folder(tmp_path).changing():
            waits = other.submit(put, store)
            with pytest.raises(TimeoutError):
                waits.result(0.3)
            assert not list(store.segments())
        waits.result(10.0)
    assert len(list(store.segments())) == 1


def test_unreadable_segment_does_not_end_the_scrub(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (NAME, SECOND, THIRD):
        put(store, name)
    real = disk.sha256_of

    def read(path: Path) -> str:
        if path.name in (NAME, SECOND):
            raise OSError(errno.EIO if path.name == NAME else errno.EACCES, "no")
        return real(path)

    monkeypatch.setattr(disk, "sha256_of", read)
    assert list(faults(store, tmp_path)) == ["it cannot be read: no", "no", ""]
    left = [one.path.rpartition("/")[2] for one in store.segments()]
    assert left == [SECOND, THIRD], "what this user may not read is not bad"


def test_disk_unmounted_before_the_line_is_written_gives_no_receipt(tmp_path: Path) -> None:
    class Unmounted(Folder):
        """Disk that is gone after a file got its name."""

        def publish(self, old: str, new: str) -> None:
            super().publish(old, new)
            if new == f"{SESSION}/{NAME}":
                (self.root / MARKER).rename(self.root / "away")

    store = opened(Unmounted(tmp_path))
    with pytest.raises(StoreGone, match="mount its disk"):
        put(store)
    (tmp_path / "away").rename(tmp_path / MARKER)
    put(store)
    assert [segment.path for segment in store.segments()] == [f"{SESSION}/{NAME}"]


def test_scrub_of_an_unmounted_disk_drops_no_line(store: Store, tmp_path: Path) -> None:
    put(store)
    (tmp_path / MARKER).rename(tmp_path / "away")
    (tmp_path / SESSION / NAME).unlink()
    with pytest.raises(StoreGone):
        list(faults(store, tmp_path))
    assert len(list(store.segments())) == 1


def test_file_repaired_meanwhile_is_not_set_aside(store: Store, tmp_path: Path) -> None:
    """The scrub has read a damaged file; the station fetched it again; now the scrub acts."""
    put(store)
    (stored,) = store.segments()
    path = tmp_path / SESSION / NAME
    path.write_bytes(bytes(len(DATA)))
    put(store)
    store.set_aside(stored)
    assert path.read_bytes() == DATA and list(store.segments()) == [stored]


def test_session_without_segments_leaves_no_list(store: Store, tmp_path: Path) -> None:
    """`sha256sum -c` exits with 1 for an empty list."""
    put(store)
    store.remove(SESSION, ".trash/2026-11-22")
    assert not list(tmp_path.glob("[!.]*"))
    put(store, data=b"bent")
    (tmp_path / SESSION / NAME).write_bytes(b"not")
    assert list(faults(store, tmp_path))[0] and not list(tmp_path.glob("[!.]*"))


def test_returned_file_is_adopted_into_its_session(store: Store, tmp_path: Path) -> None:
    made = sums_of(DATA)
    for was in (None, DATA, b"bent"):
        (tmp_path / "came").write_bytes(DATA)
        if was is not None:
            (tmp_path / SESSION / NAME).write_bytes(was)
        stored = store.adopt(SESSION, NAME, "came", made)
        assert list(store.segments()) == [stored]
        assert (tmp_path / SESSION / NAME).read_bytes() == DATA
        assert not (tmp_path / "came").exists()
    (tmp_path / "came").write_bytes(b"another")
    with pytest.raises(StationError, match="another segment has this name"):
        store.adopt(SESSION, NAME, "came", sums_of(b"another"))


def test_scrub_reads_at_the_given_rate(store: Store, tmp_path: Path) -> None:
    put(store)
    slept: list[float] = []
    disk, every = Folder(tmp_path), store.sessions()
    list(verify(store, disk, every, 1.0, lambda: 5.0, slept.append))
    assert slept == [pytest.approx(len(DATA) / 1e6)]


def test_damaged_file_is_set_aside_when_requested(store: Store, tmp_path: Path) -> None:
    made = put(store)
    path = tmp_path / SESSION / NAME
    path.write_bytes(bytes(len(DATA)))
    assert store.missing(CAR, NAME, made) == [0, 1]
    put(store)
    assert path.read_bytes() == DATA


def test_full_copy_of_a_store_is_a_store(store: Store, tmp_path: Path) -> None:
    put(store)
    copy = tmp_path.parent / f"{tmp_path.name}-copy"
    shutil.copytree(tmp_path, copy)
    assert [one.path for one in Store(Folder(copy)).segments()] == [f"{SESSION}/{NAME}"]

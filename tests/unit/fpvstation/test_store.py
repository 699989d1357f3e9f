"""The store on a real disk: which one it is, its list, its trash, and the scrub."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fpvcar.recordings import sums
from fpvcar.units import MIB
from fpvcar.wire.station import Sums
from fpvstation.disk import Folder
from fpvstation.store import MARKER, Store, StoreError
from fpvstation.verify import verify

CAR, SESSION = "Plague", "Plague/2026-11-21/Plague-20261121T193100Z"
NAME = "Plague-20261121T193100Z-0001.mcap"
DATA = bytes(range(256)) * 5000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(Folder(tmp_path))
    made.open("")
    return made


def sums_of(data: bytes) -> Sums:
    summing = sums.Summing()
    summing.add(data)
    return summing.sums()


def put(store: Store, name: str = NAME, data: bytes = DATA, car: str = CAR) -> Sums:
    """Stores a segment as a pull does."""
    made = sums_of(data)
    for number in store.missing(car, name, made):
        piece = data[number * MIB : (number + 1) * MIB]
        store.write(car, name, made, number, piece)
    store.publish(car, name, made)
    return made


def test_sha256sum_judges_it_without_us(store: Store, tmp_path: Path) -> None:
    put(store)
    put(store, NAME.replace("0001", "0002"), b"second")
    put(store, NAME.replace("0001", "0003"), b"")
    done = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / SESSION,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.count(": OK") == 3
    assert [one.path for one in store.segments()] == [
        f"{SESSION}/{NAME.replace('0001', number)}"
        for number in ("0001", "0002", "0003")
    ]
    assert not list((tmp_path / ".incoming" / CAR).iterdir())


def test_what_came_is_not_asked_for_again(store: Store, tmp_path: Path) -> None:
    made = sums_of(DATA)
    assert store.missing(CAR, NAME, made) == [0, 1]
    store.write(CAR, NAME, made, 1, DATA[MIB:])
    assert store.missing(CAR, NAME, made) == [0]
    store.write(CAR, NAME, made, 0, b"x" + DATA[1:MIB])
    assert store.missing(CAR, NAME, made) == [0], "a piece that bent is not good"
    with pytest.raises(StoreError, match="does not give back"):
        store.publish(CAR, NAME, made)
    assert not (tmp_path / SESSION / NAME).exists()
    put(store)
    assert store.has(CAR, NAME, len(DATA)) and not store.has(CAR, NAME, 7)
    assert store.missing(CAR, NAME, made) == []


def test_a_line_that_a_kill_left_out_is_written_later(
    store: Store, tmp_path: Path
) -> None:
    put(store)
    (tmp_path / SESSION / "SHA256SUMS").unlink()
    assert not store.has(CAR, NAME, len(DATA)) and not list(store.segments())
    made = sums_of(DATA)
    assert store.missing(CAR, NAME, made) == []
    store.publish(CAR, NAME, made)
    assert store.has(CAR, NAME, len(DATA))


def test_a_clock_that_gives_a_name_twice_costs_neither(
    store: Store, tmp_path: Path
) -> None:
    one, other = put(store), put(store, data=b"another minute of that name")
    found = {stored.sha256: stored.path for stored in store.segments()}
    assert found.keys() == {one.sha256, other.sha256}
    assert found[other.sha256] == f"{SESSION}.{other.sha256[:8]}/{NAME}"
    assert store.has(CAR, NAME, one.size) and store.has(CAR, NAME, other.size)


def test_a_disk_that_is_not_mounted_is_no_empty_store(tmp_path: Path) -> None:
    known = Store(Folder(tmp_path)).open("")
    assert Store(Folder(tmp_path)).open(known) == known
    (tmp_path / "mount").mkdir()
    with pytest.raises(StoreError, match="mount its disk"):
        Store(Folder(tmp_path / "mount")).open(known)
    Store(Folder(tmp_path / "mount")).open("")
    with pytest.raises(StoreError, match="mount the right"):
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
def test_a_marker_of_another_kind_is_refused(
    tmp_path: Path, text: bytes, words: str
) -> None:
    (tmp_path / MARKER).write_bytes(text)
    with pytest.raises(StoreError, match=words):
        Store(Folder(tmp_path)).open("")


def test_a_folder_with_other_things_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "holidays").mkdir()
    with pytest.raises(StoreError, match="holidays is here"):
        Store(Folder(tmp_path)).open("")


@pytest.mark.parametrize(
    ("car", "name"), [("..", NAME), ("a/b", NAME), (CAR, "../x.mcap"), (CAR, "x.mcap")]
)
def test_no_name_leads_out_of_the_store(store: Store, car: str, name: str) -> None:
    with pytest.raises(StoreError, match="no segment's name"):
        store.missing(car, name, sums_of(DATA))


def test_what_is_removed_is_in_the_trash_and_not_fetched_again(
    store: Store, tmp_path: Path
) -> None:
    made = put(store)
    assert len(store.remove(SESSION, ".trash/2026-11-22")) == 1
    assert (tmp_path / ".trash/2026-11-22" / SESSION / NAME).read_bytes() == DATA
    assert store.removed() == {made.sha256} and not list(store.segments())


def faults(store: Store, root: Path) -> Iterator[str]:
    for one in verify(store, Folder(root), 1e6):
        yield one.fault


def test_the_scrub_finds_what_bent_and_what_is_gone(
    store: Store, tmp_path: Path
) -> None:
    put(store)
    second = NAME.replace("0001", "0002")
    put(store, second, b"second")
    assert list(faults(store, tmp_path)) == ["", ""]
    path = tmp_path / SESSION / NAME
    bent = bytearray(DATA)
    bent[99] ^= 4
    path.chmod(0o644)
    path.write_bytes(bent)
    (tmp_path / SESSION / second).unlink()
    said = list(faults(store, tmp_path))
    assert hashlib.sha256(bent).hexdigest()[:16] in said[0] and said[1] == "it is gone"
    assert (tmp_path / ".bad" / SESSION / NAME).read_bytes() == bent
    assert not store.has(CAR, NAME, len(DATA)), "it is fetched again"
    put(store)
    assert list(faults(store, tmp_path)) == [""]


def test_two_processes_never_lose_a_line_of_each_other(
    store: Store, tmp_path: Path
) -> None:
    """The scrub beside a station that stores."""
    with ThreadPoolExecutor(1) as other:
        with Folder(tmp_path).changing():
            waits = other.submit(put, store)
            with pytest.raises(TimeoutError):
                waits.result(0.3)
            assert not list(store.segments())
        waits.result(10.0)
    assert len(list(store.segments())) == 1


def test_the_scrub_is_slow_on_purpose(store: Store, tmp_path: Path) -> None:
    put(store)
    slept: list[float] = []
    list(verify(store, Folder(tmp_path), 1.0, lambda: 5.0, slept.append))
    assert slept == [pytest.approx(len(DATA) / 1e6)]


def test_a_file_that_bent_is_set_aside_when_it_is_asked_for(
    store: Store, tmp_path: Path
) -> None:
    made = put(store)
    path = tmp_path / SESSION / NAME
    path.write_bytes(bytes(len(DATA)))
    assert store.missing(CAR, NAME, made) == [0, 1]
    put(store)
    assert path.read_bytes() == DATA


def test_a_full_copy_of_a_store_is_that_store(store: Store, tmp_path: Path) -> None:
    put(store)
    copy = tmp_path.parent / f"{tmp_path.name}-copy"
    shutil.copytree(tmp_path, copy)
    assert [one.path for one in Store(Folder(copy)).segments()] == [f"{SESSION}/{NAME}"]

"""Store on file systems that refuse some calls: the fault is reported, and all data is kept."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pytest
from testkit.base_station.disk import FakeDisk, Killed, sums_of
from testkit.base_station.stored import opened
from testkit.recorder.odd_disk import Mounted, NoFuse

from fpvcar.library import checksums
from fpvstation.store.disk import Folder
from fpvstation.store.identity import MARKER, TRIALS
from fpvstation.store.store import Store
from tests.unit.fpvstation.conftest import Run
from tests.unit.fpvstation.fetch.test_pull import NAMES, PlayedCar, pull_of

NO_RENAME = ("RENAME ENOSYS", "RENAME2 ENOSYS")
NO_LINK = ("LINK EPERM",)


@contextmanager
def mounted(home: Path) -> Iterator[Mounted]:
    made = Mounted(home)
    with ExitStack() as stack:
        try:
            stack.enter_context(made.served())
        except NoFuse:
            pytest.skip("to mount a file system needs root, and FUSE")
        yield made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    with mounted(tmp_path_factory.mktemp("odd")) as made:
        yield made


@pytest.fixture
def odd(served: Mounted) -> Mounted:
    served.anew()
    return served


def stored(root: Path) -> set[str]:
    return {one.path.rpartition("/")[2] for one in Store(Folder(root)).segments()}


@pytest.mark.parametrize(
    ("refused", "word"),
    [
        ((*NO_RENAME, *NO_LINK), "does not rename a file (Function not"),
        (NO_RENAME, "does not replace a file (Function not implemented)"),
        (("FSYNC EINVAL",), "does not sync a file (Invalid argument)"),
        (("FSYNCDIR EINVAL",), "does not sync a file (Invalid argument)"),
        (("WRITE EIO",), "does not write a file (Input/output error)"),
    ],
)
def test_unsuitable_file_system_is_reported_at_the_start(
    odd: Mounted, refused: tuple[str, ...], word: str, state: Path, run: Run
) -> None:
    """Both a new store, and one that was good until then."""
    for was in ("new", "good"):
        odd.refuse(*refused)
        status, _, said = run("run", f"--store={odd.root}", "--port=1")
        assert status == 1 and word in said and "--store DIR" in said, (was, said)
        odd.refuse()
        left = set(os.listdir(odd.root)) - {".lock", ".fpvstation.json"}
        assert not left, (was, left)
        opened(Folder(odd.root))


@pytest.mark.parametrize("fault", ["ENOSPC", "EDQUOT"])
def test_full_disk_is_accepted_as_a_store(odd: Mounted, fault: str) -> None:
    """The oldest sessions may be removed to make room."""
    store = opened(Folder(odd.root))
    odd.refuse(f"WRITE {fault}")
    store.try_out()
    assert not set(os.listdir(odd.root)) & set(TRIALS)


def test_trial_files_left_by_a_kill_are_removed(tmp_path: Path) -> None:
    for name in TRIALS:
        (tmp_path / name).touch()
    opened(Folder(tmp_path))
    assert os.listdir(tmp_path) == [MARKER]


async def test_file_system_without_links_is_a_store(odd: Mounted) -> None:
    """FAT has no links, and refuses modes, too."""
    odd.refuse(*NO_LINK, "SETATTR EPERM")
    done = await pull_of(PlayedCar({}), opened(Folder(odd.root))).once(False)
    assert done.receipts == len(NAMES) and stored(odd.root) == set(NAMES)


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ((*NO_RENAME, *NO_LINK), "Function not implemented: '"),
        (NO_RENAME, "Function not implemented: '"),
        (("FSYNC EIO",), "Input/output error: '"),
        (("FSYNCDIR EIO",), "Input/output error: '"),
        (("WRITE EIO",), "Input/output error"),
        (("CREATE EROFS",), "Read-only file system: '"),
        (("MKDIR EIO",), "Input/output error: '"),
        (("UNLINK EIO",), "Input/output error: '"),
        (("READ EIO",), "Input/output error"),
    ],
)
async def test_later_refusal_is_reported_and_made_good(
    odd: Mounted, refused: tuple[str, ...], words: str
) -> None:
    car, store = PlayedCar({}), opened(Folder(odd.root))
    odd.refuse(*refused)
    with pytest.raises(OSError, match=words):
        await pull_of(car, store).once(False)
    early = set(car.receipts)
    odd.refuse()
    assert early <= stored(odd.root), "a receipt without its bytes"
    assert not (await pull_of(car, store).once(False)).bad
    assert set(car.receipts) == stored(odd.root) == set(NAMES)


async def test_disk_with_a_dead_server_gives_no_receipt(tmp_path: Path) -> None:
    """Behaviour of a network file system."""
    car = PlayedCar({})
    with mounted(tmp_path) as odd:
        store = opened(Folder(odd.root))
        odd.process.kill()
        odd.process.wait()
        with pytest.raises(OSError, match=r"not connected: '.*\.fpvstation\.json'"):
            await pull_of(car, store).once(False)
    assert not car.receipts
    store = opened(Folder(odd.below))
    assert not (await pull_of(car, store).once(False)).bad, "it is there again"


async def test_bytes_lost_by_a_failed_sync_are_fetched_again(tmp_path: Path) -> None:
    """After a failed sync Linux forgets which bytes it lost: fsync(2)."""
    disk, car = FakeDisk(Random(1)), PlayedCar({})
    store = opened(disk)
    disk.lost_by_sync = 1
    pull = pull_of(car, store)
    assert "Input/output error" in str((await pull.once(False)).bad[NAMES[0]])
    assert not (await pull.once(False)).bad and set(car.receipts) == set(NAMES)
    for name in NAMES:
        assert disk.durable(sums_of(name.encode()).sha256)


async def test_kill_after_a_failed_sync_keeps_no_lost_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kill comes before the file with the lost bytes is removed."""
    disk, car = FakeDisk(Random(1)), PlayedCar({})
    store = opened(disk)
    disk.lost_by_sync = 1
    with monkeypatch.context() as killed:
        killed.setattr(disk, "remove", Mock(side_effect=[None, Killed]))
        with pytest.raises(Killed):
            await pull_of(car, store).once(False)
    assert not disk.lost_by_sync and not car.receipts
    restarted = opened(disk, store.id)
    assert not (await pull_of(car, restarted).once(False)).bad
    disk.cut_power()
    for name in NAMES:
        assert disk.durable(sums_of(name.encode()).sha256), name


def test_rewrite_keeps_bytes_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "PIECE", 4)
    disk = Folder(tmp_path)
    for size in (0, 3, 4, 11):
        data = bytes(range(size))
        disk.write_at("part", 0, data)
        disk.rewrite("part")
        assert disk.read("part") == data
    with pytest.raises(FileNotFoundError):
        disk.rewrite("absent")


def test_disk_without_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    opened(Folder(tmp_path))
    monkeypatch.setattr("fpvstation.service.fcntl.flock", flock)
    status, _, said = run("rebuild", f"--store={tmp_path}")
    assert status == 1
    assert f"{tmp_path}: its file system does not lock a file (No locks" in said

"""Faults between rdcp's two sides: no wrong byte gets a name, no process hangs, and the next
copy leaves no litter."""

import os
import random
import resource
import shutil
import signal
import threading
from pathlib import Path

import pytest

from tests.rdma.copy.test_rdcp import facts
from tests.rdma.faults import Fault, Line, Outcome, chosen_fault

pytestmark = pytest.mark.e2e
LIMIT = 600_000


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of each file except parts and notes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".rdcp-" not in path.name
    }


def litter(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if ".rdcp-" in path.name]


def plant(folder: Path, chance: random.Random) -> None:
    """Make small files, a big one, one with a hole; each has a time of its own."""
    sizes = [chance.choice([0, 1, 300, 4096, 70_000]) for _ in range(12)]
    sizes += [chance.randrange(1 << 20, 3 << 20)]
    for i, size in enumerate(sizes):
        path = folder / chance.choice(["", "a", "a/b", "c"]) / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(chance.randbytes(size))
            if i == 3:
                file.truncate(size + 500_000)
        when = chance.randrange(1, 10**18)
        os.utime(path, ns=(when, when))


def limited() -> None:
    """Limit the size of files, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def line(tools: Path, place: Path, source: str, *, full: bool = False) -> Line:
    row = ["-r", "./copy", f"./{source}/."]
    return Line(tools, place, ["-r", f"./{source}/."], row, before=limited if full else None)


def judge(place: Path, *others: str) -> None:
    """Assert that each file below copy is complete and equal to that of one of the sources."""
    sources = [contents(place / name) for name in others]
    for name, data in contents(place / "copy").items():
        assert any(data == known.get(name) for known in sources), name


def whole(place: Path, outcome: Outcome) -> None:
    assert (outcome.source, outcome.sink) == (0, 0), outcome
    assert contents(place / "copy") == contents(place / "tree")
    assert litter(place / "copy") == []


def two_at_once(tools: Path, place: Path, fault: Fault) -> None:
    rows = [line(tools, place, "tree"), line(tools, place, "old")]
    failed: list[BaseException] = []

    def run(one: Line, what: Fault) -> None:
        try:
            one.run(what)
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=run, args=row)
        for row in zip(rows, [fault, Fault("none")], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed, failed


def attack(tools: Path, place: Path, seed: int) -> None:
    chance = random.Random(seed)
    for name in ("tree", "old"):
        plant(place / name, chance)
    if chance.random() < 0.5:
        shutil.copytree(place / "old", place / "copy")
    else:
        (place / "copy").mkdir()
    for _ in range(chance.randrange(1, 4)):
        fault = chosen_fault(chance, 4 << 20)
        if chance.random() < 0.2:
            two_at_once(tools, place, fault)
        else:
            line(tools, place, "tree", full=chance.random() < 0.2).run(fault)
        judge(place, "tree", "old")
    last = line(tools, place, "tree").run(Fault("none"))
    extra = contents(place / "old").keys() - contents(place / "tree").keys()
    for name in extra:  # from another copy, which no process replaces
        (place / "copy" / name).unlink(missing_ok=True)
    whole(place, last)


@pytest.mark.soak
def test_copy_survives_random_faults(rdma_tools: Path, tmp_path: Path, soaking: bool) -> None:
    for seed in range(1000 if soaking else 25):
        place = tmp_path / str(seed)
        place.mkdir()
        try:
            attack(rdma_tools, place, seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(place)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    chance = random.Random(1)
    plant(tmp_path / "tree", chance)
    plant(tmp_path / "old", chance)
    shutil.copytree(tmp_path / "old", tmp_path / "copy")
    return tmp_path


def test_file_with_flipped_bit_is_sent_again(rdma_tools: Path, place: Path) -> None:
    outcome = line(rdma_tools, place, "tree").run(Fault("flip", 1 << 20))
    assert (outcome.source, outcome.sink) == (0, 0)
    assert outcome.said.count("arrived damaged: asked for again") == 1
    tree = contents(place / "tree")
    assert tree.items() <= contents(place / "copy").items()


def test_file_damaged_in_each_try_stays_unchanged(rdma_tools: Path, tmp_path: Path) -> None:
    for folder in ("tree", "copy"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bad").write_bytes(folder.encode() * 100_000)
    (tmp_path / "tree" / "good").write_bytes(b"good")

    faults = [Fault("flip", 200_000 + times * 400_000) for times in range(4)]
    outcome = line(rdma_tools, tmp_path, "tree").run(*faults)
    assert outcome.sink == 4
    assert outcome.said.count("asked for again") == 3
    assert "bad: arrived damaged each time: what was there before stays" in outcome.said
    assert (tmp_path / "copy" / "bad").read_bytes() == b"copy" * 100_000
    assert (tmp_path / "copy" / "good").read_bytes() == b"good"
    assert litter(tmp_path / "copy") == []


def test_present_files_are_not_sent_again(rdma_tools: Path, place: Path) -> None:
    first = line(rdma_tools, place, "tree").run(Fault("none"))
    shutil.rmtree(place / "old")
    again = line(rdma_tools, place, "tree").run(Fault("none"))
    assert (again.source, again.sink) == (0, 0)
    assert again.moved < first.moved / 100
    changed = place / "tree" / "a" / "new"
    changed.parent.mkdir(exist_ok=True)
    changed.write_bytes(b"new")
    assert line(rdma_tools, place, "tree").run(Fault("none")).moved < first.moved / 100
    assert facts(place / "tree").items() <= facts(place / "copy").items()


def test_file_cut_halfway_sends_only_the_rest(rdma_tools: Path, tmp_path: Path) -> None:
    size = 64 << 20
    for folder in ("tree", "copy"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tree" / "big").write_bytes(os.urandom(size))
    line(rdma_tools, tmp_path, "tree").run(Fault("cut", size // 2))
    again = line(rdma_tools, tmp_path, "tree").run(Fault("none"))
    assert again.moved <= 0.51 * size
    whole(tmp_path, again)


def test_part_of_other_source_is_not_resumed(rdma_tools: Path, tmp_path: Path) -> None:
    """Size, inode and time are in the part's note, and are compared under its lock."""
    size = 4 << 20
    for folder in ("tree", "old", "copy"):
        (tmp_path / folder).mkdir()
    for folder in ("tree", "old"):
        (tmp_path / folder / "big").write_bytes(os.urandom(size))
        os.utime(tmp_path / folder / "big", ns=(1, 1))
    line(rdma_tools, tmp_path, "old").run(Fault("cut", size // 2))
    assert sorted(litter(tmp_path / "copy")) == [".big.rdcp-from", ".big.rdcp-part"]
    whole(tmp_path, line(rdma_tools, tmp_path, "tree").run(Fault("none")))


def test_concurrent_copies_into_one_folder(rdma_tools: Path, place: Path) -> None:
    two_at_once(rdma_tools, place, Fault("none"))
    judge(place, "tree", "old")


def test_file_that_does_not_fit_leaves_old_file(rdma_tools: Path, tmp_path: Path) -> None:
    for folder in ("tree", "copy"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tree" / "big").write_bytes(os.urandom(3 * LIMIT))
    (tmp_path / "tree" / "small").write_bytes(b"small")
    (tmp_path / "copy" / "big").write_bytes(b"old")
    outcome = line(rdma_tools, tmp_path, "tree", full=True).run(Fault("none"))
    assert outcome.sink == 4
    assert "big: File too large" in outcome.said
    assert contents(tmp_path / "copy") == {"big": b"old", "small": b"small"}
    assert litter(tmp_path / "copy") == []


def test_next_copy_removes_litter_of_cut_copy(rdma_tools: Path, tmp_path: Path) -> None:
    """The litter goes although its file is no longer in the source."""
    for folder in ("tree", "copy"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tree" / "f").write_bytes(b"f")
    (tmp_path / "copy" / ".gone.rdcp-part").write_bytes(b"x")
    (tmp_path / "copy" / ".gone.rdcp-from").write_bytes(b"1 1 1\ngone")
    whole(tmp_path, line(rdma_tools, tmp_path, "tree").run(Fault("none")))

"""Seeded schedules of cuts, stalls, flips, kills, power cuts, full disks, bounds, wrong clocks,
damaged lists and offices that rot. No recording is absent from all places, twice in a store
or wrong; all recordings reach the office, and `verify` names every fault."""

import subprocess
from pathlib import Path
from random import Random

import pytest
from mcap.reader import make_reader
from testkit.base_station.links import PIECE
from testkit.base_station.world import World
from testkit.mcaps import BEGAN_NS, Logged, McapFile

from fpvcar.library import checksums
from fpvcar.recordings import codec, messages
from fpvstation.store.sums_file import SUMS_FILE, stored_in
from tests.soak.seeds import chosen

SEEDS, SEEDS_SOAK, BATCHES = 24, 1000, 8
REAL_SEEDS, REAL_SEEDS_SOAK, REAL_PIECE = 1, 50, 8192


@pytest.fixture(scope="module")
def seeds(soaking: bool) -> range:
    return chosen(SEEDS_SOAK) if soaking else range(SEEDS)


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_failures_lose_no_recording(
    batch: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "PIECE", PIECE)
    print(f"seeds {seeds[0]} to {seeds[-1]}, of which each {BATCHES}th")
    for seed in seeds[batch::BATCHES]:
        try:
            World(seed).run()
        except Exception as fault:
            again = f"SOAK_SEED={seed} SOAK_SEEDS=1"
            raise AssertionError(f"seed {seed} ({again}): {fault!r}") from fault


def recorded(dice: Random) -> bytes:
    """Return a segment with a unique mark."""
    mark = messages.Event(BEGAN_NS, messages.INFO, f"{dice.random()}", "Ada")
    said = [Logged(BEGAN_NS, messages.MARK, codec.encode(mark))]
    return b"".join(McapFile(said).chunks())


@pytest.mark.slow
@pytest.mark.soak
def test_foreign_tools_verify_and_read_stored_segments(
    tmp_path: Path, soaking: bool, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks use `sha256sum -c`, and the MCAP library of Foxglove."""
    monkeypatch.setattr(checksums, "PIECE", REAL_PIECE)
    monkeypatch.setattr("testkit.base_station.links.PIECE", REAL_PIECE)
    read = 0
    for seed in seeds[: REAL_SEEDS_SOAK if soaking else REAL_SEEDS]:
        world = World(seed)
        for car in world.cars:
            car.make = recorded
        world.run()
        for number, station in enumerate(world.stations):
            root = tmp_path / f"{seed}-{number}"
            for path, inode in station.disk.names_now.items():
                if not path.startswith("."):
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_bytes(inode.data)
            for listed in root.rglob(SUMS_FILE):
                argv = ["sha256sum", "--quiet", "-c", SUMS_FILE]
                subprocess.run(argv, cwd=listed.parent, check=True)
                for one in stored_in(str(listed.parent), listed.read_bytes()):
                    with Path(one.path).open("rb") as file:
                        found = make_reader(file, validate_crcs=True).iter_messages()
                        topics = [channel.topic for _, channel, _ in found]
                    assert topics.count(messages.MARK) == 1, one
                    read += 1
    print(f"{read} segments of the schedules {seeds[0]} to {seed} were read")
    assert read

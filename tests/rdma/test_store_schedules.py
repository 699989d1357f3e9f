"""Seeded schedules of a store with an archive, a bucket, an office and snapshots, on real disks."""

import functools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import boto3
import botocore.session
import pytest
from mcap.reader import make_reader
from testkit.base_station.loop_disks import MEMORY, loop_disks
from testkit.base_station.tiered_station import Site
from testkit.base_station.tiered_world import STEPS, TieredWorld
from testkit.network.versitygw import VERSITYGW, Gateway

from fpvcar.recordings import messages
from fpvstation.replicas import s3_bucket
from fpvstation.replicas.tiers import Tiers
from fpvstation.store.sums_file import SUMS_FILE
from tests.soak.seeds import chosen

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.needs(VERSITYGW),
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root"),
    pytest.mark.skipif(not MEMORY.is_dir(), reason=f"no {MEMORY}"),
]
SEEDS, SEEDS_SOAK = 6, 1000


@pytest.fixture
def site(rdma_tools: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("PATH", f"{rdma_tools}:{os.environ['PATH']}")
    monkeypatch.setattr(s3_bucket, "ATTEMPTS", 1)
    # Each child makes a client: read the description of S3 once, before the fork.
    loader = functools.cache(botocore.session.create_loader)
    monkeypatch.setattr(botocore.session, "create_loader", loader)
    with loop_disks(store=(256, "btrfs"), archive=(32, "ext4"), office=(64, "ext4")) as disks:
        disks["office"].insert()
        with Gateway(disks["office"].path / "s3") as gateway:
            for name, text in gateway.environment(gateway.port).items():
                monkeypatch.setenv(name, text)
            boto3.client("s3")
            yield Site(disks["store"], disks["archive"], disks["office"], gateway)


@pytest.mark.soak
def test_store_schedules_lose_and_double_nothing(site: Site, soaking: bool) -> None:
    seeds = chosen(SEEDS_SOAK) if soaking else range(SEEDS)
    for seed in seeds:
        world = TieredWorld(seed, site)
        try:
            for _ in range(STEPS):
                world.step()
                world.check()
            world.bring_home()
            check_by_other_programs(world)
        except Exception as fault:
            again = f"SOAK_SEED={seed} SOAK_SEEDS=1"
            steps = ", ".join(world.log)
            raise AssertionError(f"seed {seed} ({again}): {fault!r}, after {steps}") from fault
        finally:
            world.mend()
        world.clear()
    print(f"seeds {seeds[0]} to {seeds[-1]}")


def check_by_other_programs(world: TieredWorld) -> None:
    """Check the sessions by sha256sum and by the MCAP library of Foxglove, in the store and at each
    office. A third of the worlds archives them first, and reads them through their links."""
    sessions = sorted({segment.session for segment in world.data})
    folders = [world.root, world.bucket / "replicas", world.office]
    if not world.archived.is_relative_to(world.bucket) and world.random.random() < 0.3:
        for session in sessions:
            world.move(Tiers.archive, session)
            assert (world.root / session).is_symlink()
    for folder in [folder / session for folder in folders for session in sessions]:
        if folder.exists():
            argv = ["sha256sum", "--quiet", "--strict", "-c", SUMS_FILE]
            subprocess.run(argv, cwd=folder, check=True)
    for segment in world.data:
        with (world.root / segment.session / segment.name).open("rb") as file:
            found = make_reader(file, validate_crcs=True).iter_messages()
            topics = [channel.topic for _, channel, _ in found]
        assert topics.count(messages.MARK) == 1, segment

"""Each combination of lost places: store, folder archive, office in a bucket, sent snapshot."""

import asyncio
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.base_station.builder import OTHER, OTHER_NAME, Station
from testkit.base_station.stored import NAME, SESSION, put
from testkit.network.versitygw import BUCKET, Gateway

from fpvstation.replicas.s3 import S3
from fpvstation.snapshots import restore as snapshots
from fpvstation.snapshots.tools import Snapshot
from fpvstation.store.identity import MARKER
from fpvstation.store.verify import verify

PLACES = ("store", "archive", "office", "snapshot")
LOSSES = [lost for count in range(5) for lost in itertools.combinations(PLACES, count)]
HOLDERS = {SESSION: {"archive", "office", "snapshot"}, OTHER: {"store", "office", "snapshot"}}
"""Places that have the bytes of the archived session, and of the one in the store."""
DATA = {SESSION: os.urandom(300_000), OTHER: os.urandom(100_000)}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Gateway(tmp_path_factory.mktemp("s3")) as made, pytest.MonkeyPatch.context() as patch:
        for name, text in made.environment(made.port).items():
            patch.setenv(name, text)
        yield made


class Places(Station):
    """Station with an archived session and another one; office and snapshot have both."""

    def __init__(self, home: Path, gateway: Gateway) -> None:
        super().__init__(home)
        self.folders = {
            "store": self.root,
            "archive": self.there,
            "office": gateway.files / home.name,
            "snapshot": home / "snapshot",
        }

    async def replicate(self, name: str) -> None:
        """Let a station send its sessions, and fetch those that are lost here."""
        await self.replicator_of(S3(f"s3://{BUCKET}/{name}", self.root)).once(True)


@pytest.fixture
async def places(request: pytest.FixtureRequest, tmp_path: Path, gateway: Gateway) -> Places:
    made = Places(tmp_path / re.sub(r"\W+", "-", request.node.name.lower()), gateway)
    put(made.store, NAME, DATA[SESSION])
    put(made.store, OTHER_NAME, DATA[OTHER])
    await made.replicate(made.root.parent.name)
    shutil.copytree(made.root, made.folders["snapshot"])  # as `btrfs receive` leaves it
    await made.tiers().archive(SESSION)
    return made


async def recovered(places: Places, gateway: Gateway) -> Station:
    """Take the steps of docs/station.md with the places that are left."""
    home, here = (
        places.root.parent,
        {name for name, path in places.folders.items() if path.exists()},
    )
    if "store" not in here:
        for name in ("snapshot", "archive"):
            if name in here:
                shutil.copytree(places.folders[name], places.root, dirs_exist_ok=True)
        places = Places(home, gateway)
        for session in DATA if "office" in here else ():
            await places.restore(S3(f"s3://{BUCKET}/{home.name}", places.root), session=session)
    elif "archive" not in here:
        places.there.mkdir()
        shutil.copy(places.root / MARKER, places.there)
        await places.tiers().recall(SESSION, gone=True)
        if "office" in here:
            await places.replicate(home.name)
        elif "snapshot" in here:
            snapshot = Snapshot(places.folders["snapshot"], 0.0)
            await asyncio.to_thread(
                snapshots.restore, places.store, places.root, SESSION, "", snapshot
            )
    return places


@pytest.mark.parametrize("lost", LOSSES, ids=lambda lost: "+".join(lost) or "nothing")
async def test_sessions_come_back_from_any_place_that_is_left(
    places: Places, gateway: Gateway, lost: tuple[str, ...]
) -> None:
    for place in lost:
        shutil.rmtree(places.folders[place])
    rig = await recovered(places, gateway)
    expected = {session for session, holders in HOLDERS.items() if holders - set(lost)}
    listed = {session: rig.store.listed(session) for session in DATA}
    assert {session for session, segments in listed.items() if segments} == expected
    found = list(verify(rig.store, rig.disk, sorted(expected), 1e5))
    assert [verdict for verdict in found if verdict.fault] == [] and len(found) == len(expected)
    for session in expected:
        (segment,) = listed[session]
        assert (rig.root / segment.path).read_bytes() == DATA[session]


async def test_successor_of_a_lost_office_gets_all_sessions(
    places: Places, gateway: Gateway
) -> None:
    shutil.rmtree(places.folders["office"])
    await places.replicate("successor")
    for session, data in DATA.items():
        (file,) = (gateway.files / "successor" / session).glob("*.mcap")
        assert file.read_bytes() == data

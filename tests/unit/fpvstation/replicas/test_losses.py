"""Each combination of lost places: store, folder archive, office in a bucket, sent snapshot."""

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.base_station.bucket import act
from testkit.base_station.stored import NAME, SESSION, put
from testkit.network.versitygw import BUCKET, Gateway

from fpvstation.replicas.replicate import Replicator
from fpvstation.replicas.restore import Restore
from fpvstation.replicas.s3 import S3
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.snapshots import restore as snapshots
from fpvstation.snapshots.tools import Snapshot
from fpvstation.store.disk import Folder
from fpvstation.store.identity import MARKER
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.verify import verify
from tests.unit.fpvstation.replicas.test_tiers import OTHER, OTHER_NAME

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


class Places:
    """Store with an archived session and another one; office and snapshot have both."""

    def __init__(self, folder: Path, gateway: Gateway) -> None:
        self.store, self.archive = folder / "store", folder / "archive"
        self.snapshot, self.target = folder / "snapshot", f"s3://{BUCKET}/{folder.name}"
        self.office = gateway.files / folder.name
        self.store.mkdir()
        self.archive.mkdir()

    async def fill(self) -> None:
        store = self.opened()
        put(store, NAME, DATA[SESSION])
        put(store, OTHER_NAME, DATA[OTHER])
        await self.replicate(store)
        shutil.copytree(self.store, self.snapshot)  # as `btrfs receive` leaves it
        await self.tiers(store).archive(SESSION)

    def opened(self) -> Store:
        store = Store(Folder(self.store))
        store.open("")
        return store

    def tiers(self, store: Store) -> Tiers:
        place = archive_of(str(self.archive), self.store)
        return Tiers(store, Folder(self.store), place, (), act)

    async def replicate(self, store: Store) -> None:
        """Let a station send its sessions, and fetch those that are lost here."""
        replicas = ReplicaLog(Folder(self.store))
        await Replicator(S3(self.target, self.store), store, replicas, act).once(True)

    def lose(self, place: str) -> None:
        shutil.rmtree(getattr(self, place))

    async def recover(self) -> Store:
        """Take the steps of docs/station.md with the places that are left."""
        if not self.store.exists():
            for source in (self.snapshot, self.archive):
                if source.exists():
                    shutil.copytree(source, self.store, dirs_exist_ok=True)
            self.store.mkdir(exist_ok=True)
            store = self.opened()
            disk = Folder(self.store)
            for session in DATA if self.office.exists() else ():
                work = Restore(session, store, disk, ReplicaLog(disk), act, lambda *told: None)
                await work.run([S3(self.target, self.store)])
            return store
        store = self.opened()
        if not self.archive.exists():
            self.archive.mkdir()
            shutil.copy(self.store / MARKER, self.archive)
            await self.tiers(store).recall(SESSION, gone=True)
            if self.office.exists():
                await self.replicate(store)
            elif self.snapshot.exists():
                snapshot = Snapshot(self.snapshot, 0.0)
                await act(snapshots.restore, store, self.store, SESSION, "", snapshot)
        return store


@pytest.mark.parametrize("lost", LOSSES, ids=lambda lost: "+".join(lost) or "nothing")
async def test_sessions_come_back_from_any_place_that_is_left(
    tmp_path: Path, gateway: Gateway, lost: tuple[str, ...]
) -> None:
    folder = tmp_path / ("-".join(lost) or "nothing")
    folder.mkdir()
    places = Places(folder, gateway)
    await places.fill()
    for place in lost:
        places.lose(place)
    store = await places.recover()
    expected = {session for session, holders in HOLDERS.items() if holders - set(lost)}
    listed = {session: store.listed(session) for session in DATA}
    assert {session for session, segments in listed.items() if segments} == expected
    found = list(verify(store, Folder(places.store), sorted(expected), 1e5))
    assert [verdict for verdict in found if verdict.fault] == [] and len(found) == len(expected)
    for session in expected:
        (segment,) = listed[session]
        assert (places.store / segment.path).read_bytes() == DATA[session]


async def test_successor_of_a_lost_office_gets_all_sessions(
    tmp_path: Path, gateway: Gateway
) -> None:
    folder = tmp_path / "successor"
    folder.mkdir()
    places = Places(folder, gateway)
    await places.fill()
    places.lose("office")
    places.target += "-new"
    await places.replicate(places.opened())
    for session, data in DATA.items():
        (file,) = (gateway.files / "successor-new" / session).glob("*.mcap")
        assert file.read_bytes() == data

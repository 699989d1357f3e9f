"""Snapshots sent to another btrfs: whole, by changes, cut, torn and damaged."""

import contextlib
import os
from pathlib import Path

import pytest
from testkit.base_station.snapshots import SECOND, Replica
from testkit.base_station.stored import NAME, put
from testkit.recorder.card import run

from fpvcar.runtime.units import MIB
from fpvstation.errors import StationError
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import CopyProgress, PlaceFault
from fpvstation.snapshots import send
from fpvstation.snapshots.send import Sender, Target

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and btrbk need root"),
]


def test_snapshots_are_sent_whole_then_by_their_changes(replica: Replica) -> None:
    put(replica.rig.store, SECOND, os.urandom(8 * MIB))
    replica.rig.hour()
    (full,) = replica.send()
    assert full.size > 8 * MIB and full.moved == full.size
    assert replica.send() == []
    put(replica.rig.store, NAME.replace("0001", "0003"), os.urandom(MIB))
    replica.rig.hour()
    (changes,) = replica.send()
    assert MIB < changes.size < 2 * MIB
    assert replica.names() == [full.name, changes.name] and replica.is_clean()
    run("btrfs", "subvolume", "delete", replica.folder / full.name)
    assert replica.send() == [], "older ones that were deleted there stay so"


def test_send_cut_at_half_continues_where_it_was(replica: Replica) -> None:
    put(replica.rig.store, SECOND, os.urandom(40 * MIB))
    replica.rig.hour()
    size = 0

    class Cut(Exception):
        pass

    def cut(progress: CopyProgress) -> None:
        nonlocal size
        size = progress.total or 0
        if size and progress.done * 2 >= size:
            raise Cut

    root = replica.rig.root
    rdcp = Rdcp(replica.remote.place, root, [*replica.options, "--rate", "12M"])
    with pytest.raises(Cut):
        list(Sender(root, replica.rig.store.id, replica.remote, rdcp).run(cut))
    assert replica.names() == []
    (sent,) = replica.send()
    assert size == sent.size and sent.moved <= 0.51 * size, sent
    assert replica.names() == [sent.name] and replica.is_clean()


def test_flipped_byte_of_a_stream_is_found(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(replica.rig.store, SECOND, os.urandom(4 * MIB))
    replica.rig.hour()
    copy = Rdcp.copy
    places = [replica.folder / ".incoming", replica.rig.root / ".snapshots/.outgoing"]

    for place in places:

        async def damage(
            self: Rdcp, source: Path, path: str, *more: object, place: Path = place
        ) -> None:
            if place == places[1]:
                flip(source)
            await copy(self, source, path, *more)  # type: ignore[arg-type]
            if place == places[0]:
                flip(replica.folder / path)

        with monkeypatch.context() as patch:
            patch.setattr(Rdcp, "copy", damage)
            with pytest.raises(send.DamagedStream):
                replica.send()
        assert replica.names() == []
    (sent,) = replica.send()
    assert replica.names() == [sent.name] and replica.is_clean()


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2 * MIB)
        byte = file.read(1)
        file.seek(2 * MIB)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("end", ["killed", "unsynced"])
def test_torn_snapshot_is_deleted_and_received_again(replica: Replica, end: str) -> None:
    put(replica.rig.store, SECOND, os.urandom(4 * MIB))
    (snapshot,) = replica.rig.hour()
    torn = replica.folder / snapshot.name
    replica.claim()
    if end == "killed":  # btrfs receive makes it writable, and sets its received_uuid at the end
        run("btrfs", "subvolume", "create", torn)
    else:  # a power cut between the receive and the sync: the stream is still there
        stream = replica.rig.home / "stream"
        run("btrfs", "send", "-q", "-f", stream, snapshot)
        run("btrfs", "receive", "-q", "-f", stream, replica.folder)
        (replica.folder / f".incoming/{snapshot.name}.stream").touch()
    assert [sent.name for sent in replica.send()] == [snapshot.name]
    assert replica.names() == [snapshot.name] and replica.is_clean()


def test_foreign_or_unmounted_target_gets_nothing(replica: Replica) -> None:
    replica.rig.hour()
    with contextlib.ExitStack() as stack:
        aside = replica.folder.with_name("aside")
        replica.folder.rename(aside)
        stack.callback(aside.rename, replica.folder)
        with pytest.raises(StationError, match="host1:/.*can't cd to"):
            replica.send()
    own = replica.folder / "store.20260101T000000+0000"
    run("btrfs", "subvolume", "create", own)
    with pytest.raises(StationError, match="has snapshots already: name an empty folder"):
        replica.send()
    assert own.is_dir()
    run("btrfs", "subvolume", "delete", own)
    marker = replica.folder / ".fpvstation-snapshots"
    marker.write_text("another\n")
    with pytest.raises(StationError, match="has the snapshots of another store"):
        replica.send()
    marker.unlink()
    replica.send()
    marker.unlink()
    with pytest.raises(StationError, match="mount its disk"):
        replica.send()
    replica.remote = Target(f"host1:{replica.rig.home}", replica.options[1])
    with pytest.raises(StationError, match="is not on btrfs"):
        replica.send()
    assert not (replica.rig.home / ".incoming").exists()


def test_full_target_keeps_the_stream_and_continues(replica: Replica) -> None:
    put(replica.rig.store, SECOND, os.urandom(40 * MIB))
    replica.rig.hour()
    replica.claim()
    filler = replica.folder.parent / "filler"
    with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(os.urandom(MIB))
    with pytest.raises((PlaceFault, StationError), match="No space left"):
        replica.send()
    filler.unlink()
    (sent,) = replica.send()
    assert replica.names() == [sent.name] and replica.is_clean()


def test_send_verb_uses_a_folder_of_this_host(
    replica: Replica, capsys: pytest.CaptureFixture[str]
) -> None:
    replica.rig.hour()
    capsys.readouterr()
    assert replica.rig.verb("send", str(replica.folder)) == 0
    said = capsys.readouterr().out
    assert "received, 1." in said and "1 snapshot received; up to date" in said
    assert replica.rig.verb("send", str(replica.folder)) == 0
    assert "0 snapshots received" in capsys.readouterr().out
    assert len(replica.names()) == 1 and replica.is_clean()

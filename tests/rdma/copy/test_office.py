"""A store's sessions go to an office and come back: a folder, rdcp and a real sshd, or a bucket.

One contract suite runs for all three. Faults of rdcp follow; faults of a bucket are in
tests/unit/fpvstation/replicas/bucket/.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.base_station.stored import NAME, SESSION, new_store, put
from testkit.network.pipes import Tools
from testkit.network.sshd import Sshd
from testkit.network.versitygw import BUCKET, VERSITYGW, Gateway

from fpvcar.runtime.units import MIB
from fpvstation.replicas import s3_bucket
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import CopyProgress, PlaceFault, Remote, quiet
from fpvstation.replicas.remotes import remotes_of
from fpvstation.replicas.replicate import Replicator, verify_replica
from fpvstation.replicas.restore import Restore, session_of
from fpvstation.settings import ReplicaSettings
from fpvstation.store.disk import Folder
from fpvstation.store.identity import MARKER
from fpvstation.store.replica_log import ReplicaLog, ReplicaState
from fpvstation.store.sums_file import SUMS_FILE

pytestmark = [pytest.mark.e2e, pytest.mark.needs(VERSITYGW)]
SECOND = NAME.replace("0001", "0002")


class Rig:
    """A store, and an office whose files are below `there`. `options`: of rdcp."""

    def __init__(self, place: Path, target: str, there: Path, options: list[str]) -> None:
        self.root, self.there = place / "store", there
        self.there.mkdir(exist_ok=True)
        self.target, self.options = target, options
        self.store, self.copies = new_store(self.root), ReplicaLog(Folder(self.root))

    def office(self, *more: str) -> Remote:
        settings = ReplicaSettings(target=self.target, options=(*self.options, *more))
        (office,) = remotes_of(settings, self.root)
        return office

    async def replicated(self, *more: str) -> dict[str, str]:
        """Replicate once; return the sessions that failed, with the reason."""
        replicator = Replicator(self.office(*more), self.store, self.copies, act)
        await replicator.once(True)
        return {session: str(fault) for session, fault in replicator.state.bad.items()}

    def where(self) -> list[ReplicaState]:
        return self.copies.states(SESSION, self.store.listed(SESSION))[1:]


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(function, *arguments)


def ran(*argv: str, cwd: Path | None = None) -> None:
    subprocess.run(argv, cwd=cwd, check=True, timeout=30)


async def seen(look: Callable[[], bool]) -> None:
    for _ in range(1500):
        if look():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it was never seen")


@pytest.fixture(params=["folder", "rdcp", "bucket"])
def rig(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rig]:
    kind: str = request.param
    with contextlib.ExitStack() as stack:
        options, there = list[str](), tmp_path / "office"
        target = str(there)
        if kind == "bucket":
            gateway = stack.enter_context(Gateway(tmp_path / "s3"))
            for name, text in gateway.environment(gateway.port).items():
                monkeypatch.setenv(name, text)
            monkeypatch.setattr(s3_bucket, "ATTEMPTS", 2)
            there, target = gateway.files, f"s3://{BUCKET}"
        else:
            tools: Tools = request.getfixturevalue("tools")
            monkeypatch.setenv("PATH", f"{tools.folder}:{os.environ['PATH']}")
        if kind == "rdcp":
            target = f"host1:{there}"
            options = ["--ssh", tools.ssh, "--remote-path", str(tools.folder)]
        made = Rig(tmp_path, target, there, options)
        put(made.store)
        yield made
        assert not list(made.root.glob(".outgoing/*")), "litter"


of_rdcp = pytest.mark.parametrize("rig", ["rdcp"], indirect=True)


async def test_session_reaches_office_whole_and_comes_back(rig: Rig) -> None:
    put(rig.store, SECOND, b"second")
    assert await rig.replicated() == {}
    (where,) = rig.where()
    assert where.whole and where.verified_s > time.time() - 60.0
    argv = ["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"]
    ran(*argv, cwd=rig.there / SESSION)
    for name in (NAME, SECOND):
        mine, theirs = (one / SESSION / name for one in (rig.root, rig.there))
        assert mine.read_bytes() == theirs.read_bytes()
        mine.write_bytes(b"bent")
    for one in list(rig.store.segments()):
        assert rig.store.verify_segment(one)
    assert await rig.replicated() == {}
    assert len(list(rig.store.segments())) == 2
    ran(*argv, cwd=rig.root / SESSION)
    assert not list(rig.root.glob(".incoming/office")), "not even empty folders"


async def test_rotten_office_copy_is_found_and_sent_again(rig: Rig) -> None:
    put(rig.store, SECOND, b"second")
    assert await rig.replicated() == {}

    async def judged() -> list[str]:
        office = rig.office()
        await office.claim(rig.store.id, True)
        copy = await verify_replica(office, SESSION, rig.store, rig.copies, act, lambda: 5.0)
        return copy.bad

    assert await judged() == []
    (where,) = rig.where()
    assert where.verified_s == 5.0 and where.whole
    (rig.there / SESSION / SECOND).write_bytes(b"sEcond")
    assert await judged() == [SECOND]
    assert not rig.where()[0].whole and await judged() == []
    assert await rig.replicated() == {}
    assert rig.where()[0].whole
    assert (rig.there / SESSION / SECOND).read_bytes() == b"second"
    shutil.rmtree(rig.there / SESSION)
    assert await judged() == [NAME, SECOND], "the folder is gone, the office is not"
    assert await rig.replicated() == {}
    assert await judged() == []
    (rig.there / MARKER).unlink()
    with pytest.raises(PlaceFault, match="is missing there"):
        await judged()


async def test_office_copy_reports_progress(rig: Rig) -> None:
    put(rig.store, SECOND, os.urandom(6 * MIB))
    told = list[CopyProgress]()
    listed = rig.store.listed(SESSION)
    size, _ = rig.store.extent(SESSION)
    rated = [] if rig.target.startswith("s3:") else ["--rate", "2M"]
    await rig.office(*rated).send(SESSION, listed, False, told.append)
    whole = size + (rig.there / SESSION / SUMS_FILE).stat().st_size
    assert len(told) >= 2 and told[-1] == CopyProgress(whole, whole, whole)
    assert [one.moved for one in told] == sorted(one.moved for one in told)


async def test_session_of_lost_store_is_restored_by_name(rig: Rig) -> None:
    put(rig.store, SECOND, b"second")
    assert await rig.replicated() == {}
    shutil.rmtree(rig.root)
    store, disk = new_store(rig.root), Folder(rig.root)
    name = SESSION.rpartition("/")[2]
    session = session_of(name, store, disk, ReplicaLog(disk))
    assert session == SESSION
    office = rig.office()
    work = Restore(session, store, disk, ReplicaLog(disk), act, lambda what, now: None)
    done = await work.run([office])
    assert (done.present, done.restored, done.missing) == (0, {office.place: 2}, [])
    ran("sha256sum", "--quiet", "-c", SUMS_FILE, cwd=rig.root / SESSION)
    assert not list(rig.root.glob(".incoming/*"))


async def test_damaged_office_copy_is_found_and_repaired(rig: Rig) -> None:
    assert await rig.replicated() == {}
    office, listed = rig.office(), rig.store.listed(SESSION)
    theirs = rig.there / SESSION / NAME
    whole, was = theirs.read_bytes(), theirs.stat()
    (rig.there / SESSION / "stranger").touch()
    assert await office.check(SESSION, listed) == []
    theirs.write_bytes(b"?" + whole[1:])
    os.utime(theirs, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert await office.check(SESSION, listed) == [NAME]
    await office.send(SESSION, listed, False, quiet)
    assert await office.check(SESSION, listed) == [NAME], "its time says it is the same"
    await office.send(SESSION, listed, True, quiet)
    assert await office.check(SESSION, listed) == []
    theirs.write_bytes(b"?" + whole[1:])
    assert await office.check(SESSION, listed) == [NAME], "verified once is not verified for ever"
    theirs.unlink()
    assert await office.check(SESSION, listed) == [NAME]


@of_rdcp
async def test_unreachable_office_is_named(rig: Rig, sshd: Sshd) -> None:
    closed = sshd.command + " -p 1"
    with pytest.raises(PlaceFault) as away:
        await rig.replicated("--ssh", closed)
    bad = str(away.value)
    assert f"host1:{rig.there}: rdcp ended with status" in bad
    assert rig.where() == [] and list(rig.there.iterdir()) == []
    rig.there.rmdir()
    office = Rdcp(f"host1:{rig.there}/deep", rig.root, rig.options)
    with pytest.raises(PlaceFault, match="No such file"):
        await office.send(SESSION, rig.store.listed(SESSION), anew=False)


async def test_unmounted_or_foreign_office_gets_no_data(rig: Rig) -> None:
    office, store = rig.office(), rig.store.id
    await office.claim(store, known=False)
    marker = rig.there / MARKER
    mine = marker.read_bytes()
    assert mine == (rig.root / MARKER).read_bytes()
    marker.unlink()
    with pytest.raises(PlaceFault, match="is missing there"):
        await office.claim(store, known=True)
    marker.write_bytes(mine.replace(b'"id":"', b'"id":"0'))
    with pytest.raises(PlaceFault, match="of another store"):
        await office.claim(store, known=True)


@of_rdcp
async def test_killed_replicator_resumes(rig: Rig, tools: Tools) -> None:
    put(rig.store, SECOND, os.urandom(6 * MIB))
    replicating = asyncio.create_task(rig.replicated("--rate", "2M"))
    part = rig.there / SESSION / f".{SECOND}.rdcp-part"
    await seen(lambda: part.exists() and part.stat().st_size > MIB)
    for pid in tools.ours():  # processes of the office
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert SESSION in await replicating
    assert rig.where() == []
    assert await rig.replicated() == {}
    assert rig.where()[0].whole


@of_rdcp
async def test_cancelled_replicator_leaves_no_process(rig: Rig, tools: Tools) -> None:
    put(rig.store, SECOND, os.urandom(6 * MIB))
    replicating = asyncio.create_task(rig.replicated("--rate", "1M"))
    await seen(lambda: bool(list(rig.there.glob(f"{SESSION}/.*"))))
    replicating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await replicating
    await asyncio.to_thread(tools.none_left)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
async def test_full_office_records_no_copy(rig: Rig) -> None:
    ran("mount", "-t", "tmpfs", "-o", "size=4m", "none", str(rig.there))
    try:
        put(rig.store, SECOND, os.urandom(6 * MIB))
        bad = await rig.replicated()
        assert "make room" in bad[SESSION]
        assert rig.where() == []
        ran("mount", "-o", "remount,size=20m", str(rig.there))
        assert await rig.replicated() == {}
        assert rig.where()[0].whole
    finally:
        ran("umount", "-l", str(rig.there))


@pytest.mark.parametrize("shown_s", [0.0, 4e9])
async def test_office_with_a_wrong_clock_gets_each_session_once(rig: Rig, shown_s: float) -> None:
    """The files have times of 1970, or of 2096; the station's own clock dates the verification."""
    assert await rig.replicated() == {}
    for path in rig.there.rglob("*"):
        os.utime(path, (shown_s, shown_s))
    put(rig.store, SECOND, b"second")
    assert await rig.replicated() == {}
    (where,) = rig.where()
    assert where.whole and abs(where.verified_s - time.time()) < 60.0
    ran("sha256sum", "--quiet", "--strict", "-c", SUMS_FILE, cwd=rig.there / SESSION)
    assert sorted(path.name for path in (rig.there / SESSION).iterdir()) == sorted(
        path.name for path in (rig.root / SESSION).iterdir()
    )

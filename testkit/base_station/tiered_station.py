"""Operations of one station with its archive, remotes and snapshots, each in a child process."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fpvcar.recordings import codec, messages
from fpvstation.errors import StationError
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import PlaceFault, Remote
from fpvstation.replicas.replicate import Replicator
from fpvstation.replicas.restore import Restore
from fpvstation.replicas.s3 import S3
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.snapshots import restore as restoring
from fpvstation.snapshots.tools import SNAPSHOTS, Snapshot, snapshots_of
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.verify import verify
from testkit.base_station.loop_disks import LoopDisk
from testkit.base_station.stored import CAR, put
from testkit.mcaps import BEGAN_NS, Logged, McapFile
from testkit.network.versitygw import BUCKET, Gateway

SESSIONS, SEGMENTS, SNAPSHOTS_MOST = 3, 3, 3
NOW_S = 1.8e9
CHILD_S = 60
"""Limit of one operation: every schedule ends."""
EXPECTED = (PlaceFault, StationError, OSError, subprocess.CalledProcessError)
DONE, REFUSED, FAILED = 0, 3, 4
"""Exit statuses of a child."""
CHANGES = {"os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "open"}
"""Audit events that are counted as moments of an operation."""
Move = Callable[[Tiers, str], Any]


class Segment(NamedTuple):
    """Segment that a car has recorded, with its checksum."""

    session: str
    name: str
    sha256: str


class Site(NamedTuple):
    """Disks and server of all schedules. The office and the server are on `office`."""

    store: LoopDisk
    archive: LoopDisk
    office: LoopDisk
    gateway: Gateway


def _btrfs(words: list[str | Path]) -> None:
    subprocess.run(["btrfs", *words], check=True, capture_output=True)


def _is_alive(group: int) -> bool:
    """Return whether a process of the group has not ended."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, own_group, *_ = path.read_text().rpartition(")")[2].split()
            if own_group == str(group) and state != "Z":
                return True
    return False


def nothing() -> None:
    """Replace the fault of a step that has none."""


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


class TieredStation:
    """Station of one schedule. `fault` is called before the audit event number `moment`."""

    def __init__(self, seed: int, site: Site) -> None:
        self.random, self.site, self.log = Random(seed), site, list[str]()
        for disk in (site.store, site.archive):
            disk.insert()
        self.root = site.store.path / "store"
        self.office = site.office.path / f"office-{seed}"
        self.office.mkdir()
        self.bucket = site.gateway.files / f"{seed}"
        in_bucket = self.random.random() < 0.4
        self._archive = f"s3://{BUCKET}/{seed}/archive" if in_bucket else str(site.archive.path)
        self.archived = self.bucket / "archive" if in_bucket else site.archive.path
        kinds = self.random.choice([(), ("bucket",), ("office",), ("bucket", "office")])
        targets = {"bucket": f"s3://{BUCKET}/{seed}/replicas", "office": str(self.office)}
        self.targets = [targets[kind] for kind in kinds]
        self.utc_s = NOW_S
        self.moment = -1
        self.fault: Callable[[], object] = nothing
        self.lie: Callable[[], object] = nothing
        self.id = Store(Folder(self.root)).open("")
        _btrfs(["subvolume", "create", self.root / SNAPSHOTS])
        _btrfs(["filesystem", "sync", self.root])
        asyncio.run(self.tiers().claim())
        self.data = dict[Segment, bytes]()
        """Bytes of each segment that the car has recorded."""
        self.stored = set[Segment]()
        """Segments for which the station sent a receipt: the car has deleted its own."""
        self.flipped = dict[str, set[str]]()
        """Checksums of damaged bytes by place."""

    # --- Parts of the station, new in each child

    def store(self) -> Store:
        store = Store(Folder(self.root), utc_s=lambda: self.utc_s)
        store.open(self.id)
        return store

    def remotes(self) -> list[Remote]:
        return [
            S3(target, self.root) if "://" in target else Rdcp(target, self.root)
            for target in self.targets
        ]

    def tiers(self) -> Tiers:
        archive = archive_of(self._archive, self.root)
        return Tiers(
            self.store(), Folder(self.root), archive, self.targets, act, lambda: self.utc_s
        )

    # --- Operations

    def record(self) -> None:
        """Let the car send a segment; a segment without a receipt is sent again."""
        waiting = sorted(self.data.keys() - self.stored)
        if waiting and self.random.random() < 0.6:
            segment = self.random.choice(waiting)
        else:
            number = self.random.randrange(SESSIONS)
            recording = f"{CAR}-20261121T193{number}00Z"
            name = f"{recording}-{self.random.randrange(1, SEGMENTS + 1):04d}.mcap"
            known = [segment for segment in self.data if segment.name == name]
            data = self.data[known[0]] if known else self._recorded(name)
            sha256 = hashlib.sha256(data).hexdigest()
            segment = Segment(f"{CAR}/2026-11-21/{recording}", name, sha256)
            self.data[segment] = data
        self._send(segment)

    def _send(self, segment: Segment) -> None:
        if self._in_child(self._put, segment) == DONE:
            self.stored.add(segment)

    def _put(self, segment: Segment) -> None:
        put(self.store(), segment.name, self.data[segment])

    def _recorded(self, name: str) -> bytes:
        text = f"{name} {self.random.random()} " + "x" * self.random.choice([0, 3000, 200_000])
        mark = messages.Event(BEGAN_NS, messages.INFO, text, "Ada")
        return b"".join(McapFile([Logged(BEGAN_NS, messages.MARK, codec.encode(mark))]).chunks())

    def copy(self) -> None:
        """Copy to a remote, and let it verify an old copy again."""
        if remotes := self.remotes():
            remote = self.random.choice(remotes)
            self._in_child(self._replicate, remote)

    def _replicate(self, remote: Remote) -> None:
        replicator = Replicator(
            remote, self.store(), ReplicaLog(Folder(self.root)), act, utc_s=lambda: self.utc_s
        )
        asyncio.run(replicator.once(True))

    def _session(self) -> str:
        return self.random.choice(sorted({segment.session for segment in self.data} or {"none"}))

    def archive(self) -> None:
        self._in_child(self.move, Tiers.archive, self._session())

    def recall(self) -> None:
        self._in_child(self.move, Tiers.recall, self._session())

    def resume(self) -> None:
        self._in_child(self.move, None, "")

    def move(self, move: Move | None, session: str) -> None:
        tiers = self.tiers()

        async def work() -> None:
            await tiers.resume()
            if move:
                await move(tiers, session)

        with tiers.alone():
            asyncio.run(work())

    def verify(self) -> None:
        self._in_child(self._verify)

    def _verify(self) -> None:
        store = self.store()
        sessions = sorted(store.known())
        list(verify(store, Folder(self.root), sessions, 1e6, utc_s=lambda: self.utc_s))

    def snapshot(self) -> None:
        """Make a snapshot as btrbk does."""
        count = len(snapshots_of(self.root))
        if count >= SNAPSHOTS_MOST:
            return
        made = self.root / SNAPSHOTS / f"store.20261127T{10 + count}0000+0000"
        self._in_child(_btrfs, ["subvolume", "snapshot", "-r", self.root, made])
        self._in_child(_btrfs, ["filesystem", "sync", self.root])

    def restore_snapshot(self) -> None:
        if snapshots := snapshots_of(self.root):
            self._in_child(self._restore, self._session(), "", self.random.choice(snapshots))

    def _restore(self, session: str, name: str, snapshot: Snapshot) -> None:
        restoring.restore(self.store(), self.root, session, name, snapshot)

    def restore_remote(self) -> None:
        self._in_child(self._restore_from_remotes, self._session())

    def _restore_from_remotes(self, session: str) -> None:
        disk = Folder(self.root)
        restore = Restore(session, self.store(), disk, ReplicaLog(disk), act, lambda *_: None)
        asyncio.run(restore.run(self.remotes()))

    def _in_child(self, work: Callable[..., object], *arguments: Any) -> int:
        """Run work in a child process; return its exit status, negative for a signal."""
        report = self.site.store.path.with_name("traceback")
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            signal.alarm(CHILD_S)
            os._exit(self._guarded(partial(work, *arguments), report))
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # rdcp of a killed station
            while _is_alive(child):
                time.sleep(0.005)
        code = os.waitstatus_to_exitcode(status)
        assert code != -signal.SIGALRM, "the operation does not end"
        assert code != FAILED, report.read_text()
        return code

    def _guarded(self, work: Callable[[], object], report: Path) -> int:
        count, acting = 0, False

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count, acting
            if event in CHANGES and not acting:
                acting = count == self.moment
                count += 1
                if acting:
                    self.fault()
                    acting = False

        sys.addaudithook(watch)
        self.lie()
        try:
            work()
        except EXPECTED:
            return REFUSED
        except BaseException:
            report.write_text(traceback.format_exc())
            return FAILED
        return DONE

"""Store with its archive, its remotes and its snapshots, on real disks, under faults by a seed.

Each step runs one operation of the station in a child process, under one fault:

    operations   record, copy to a remote, archive, recall, resume, verify, snapshot, restore
    faults       kill -9, power cut, full disk, unmounted disk, bit flip, network cut, clock jump,
                 an archive or a bucket that lies, a missing folder

After each step `check` compares all copies. `bring_home` ends the faults, and lets the station
repair itself until the store has each session.
"""

import hashlib
import os
import select
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from fpvstation.replicas.tiers import Tiers
from fpvstation.snapshots.restore import listed_in
from fpvstation.snapshots.tools import snapshots_of
from fpvstation.store.archived import ARCHIVED
from fpvstation.store.replica_log import DAY_S
from testkit.base_station.lies import LIES
from testkit.base_station.stored import CAR
from testkit.base_station.tiered_station import NOW_S, SESSIONS, Segment, TieredStation, nothing

STEPS, ROUNDS_MOST = 16, 12
AWAY = ".away"
MOMENTS = (0, 1, 2, 3, 5, 8, 12, 17, 23, 30, 40, 60)
OPERATIONS = (
    "record copy archive recall resume verify snapshot restore_snapshot restore_remote".split(),
    (9, 5, 5, 3, 1, 2, 2, 1, 1),
)
FAULTS = (
    "none kill power full unmounted flip network clock lying hidden".split(),
    (4, 5, 4, 3, 3, 3, 3, 2, 4, 2),
)
"""Names, and the weight of each."""


class TieredWorld(TieredStation):
    """Schedule of faults, and of the operations that they meet."""

    def step(self) -> None:
        """Run one operation under one fault; then end the fault."""
        operation, fault = (self.random.choices(*kind)[0] for kind in (OPERATIONS, FAULTS))
        operation = operation if self.data else "record"
        self.log.append(f"{operation} under {fault}")
        self.moment = -1
        getattr(self, f"_{fault}")()
        getattr(self, operation)()
        if fault == "power":
            self._cut_power()
        self.mend()

    def _none(self) -> None:
        """Run the operation without a fault."""

    def _kill(self) -> None:
        self.moment = self.random.choice(MOMENTS)
        self.fault = lambda: os.kill(os.getpid(), signal.SIGKILL)

    _power = _kill

    def _cut_power(self) -> None:
        for disk in (self.site.store, self.site.archive):
            disk.cut_power()

    def _full(self) -> None:
        disk = self.random.choice(self.site[:3])
        left = self.random.choice([0, 10_000, 250_000])
        self.moment, self.fault = self.random.choice(MOMENTS), lambda: disk.fill(left)

    def _unmounted(self) -> None:
        self.moment = self.random.choice(MOMENTS)
        kind = self.random.choice(["store", "archive", "office"])
        if kind == "office":
            self.fault = lambda: self.office.rename(f"{self.office}.away")
        else:
            self.fault = getattr(self.site, kind).unmount

    def _network(self) -> None:
        """Cut the connection to the server, and end each rdcp."""
        server = self.site.gateway.process
        assert server

        def cut() -> None:
            ended = os.pidfd_open(server.pid)
            os.kill(server.pid, signal.SIGKILL)
            select.select([ended], [], [])  # otherwise `mend` may find it alive
            for path in Path("/proc/self/task").glob("*/children"):
                for pid in path.read_text().split():
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)

        self.moment, self.fault = self.random.choice(MOMENTS), cut

    def _lying(self) -> None:
        """Let the archive and the bucket of this step give wrong answers."""
        lie, random = self.random.choice(LIES), Random(self.random.random())
        self.lie = lambda: lie(random)

    def _hidden(self) -> None:
        """Rename the folder of a session in the archive."""
        if folders := sorted(self.archived.glob(f"{CAR}/*/*")):
            folder = self.random.choice(folders)
            folder.rename(f"{folder}{AWAY}")

    def _clock(self) -> None:
        days = self.random.choice([-400.0, -1.0, 0.1, 8.0, 40.0, 400.0])
        self.utc_s = max(0.0, self.utc_s + days * DAY_S)

    def _flip(self) -> None:
        """Flip a bit of a copy whose segment has another right copy."""
        store = self.store()
        found = {
            segment: [
                (place, path)
                for place, path in self._right_copies(segment)
                # Not the copy of a move that was cut before its record: no program knows it. Nor
                # that of a move after its record: it is about to be deleted.
                if place != "archive" or store.archived(segment.session)
                if path.parent.suffix != ".old"
            ]
            for segment in sorted(self.stored)
        }
        choices = [
            (segment, place, path)
            for segment, copies in found.items()
            if len({place for place, _ in copies}) > 1
            for place, path in copies
            if place != "snapshot"
        ]
        if choices:
            segment, place, path = self.random.choice(choices)
            data, before = bytearray(self.data[segment]), path.stat()
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
            with path.open("r+b") as file:
                file.write(data)
                os.fsync(file.fileno())
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            self.flipped.setdefault(place, set()).add(hashlib.sha256(data).hexdigest())

    def mend(self) -> None:
        """End all faults but the clock's."""
        gateway, away = self.site.gateway, Path(f"{self.office}.away")
        self.lie = nothing
        if gateway.process is None or gateway.process.poll() is not None:
            gateway.kill()
            gateway.start()
        for disk in self.site[:3]:
            disk.mount()
            disk.make_room()
        for folder in self.archived.glob(f"{CAR}/*/*{AWAY}"):
            usual = folder.with_name(folder.name.removesuffix(AWAY))
            shutil.rmtree(folder) if usual.exists() else folder.rename(usual)
        if away.exists():
            shutil.rmtree(self.office, ignore_errors=True)  # taken for a new office
            away.rename(self.office)

    def clear(self) -> None:
        """Remove all copies at the remotes."""
        for folder in (self.office, self.bucket):
            shutil.rmtree(folder, ignore_errors=True)

    # --- Invariants

    def _places(self) -> dict[str, Path]:
        places = {"store": self.root, "archive": self.archived}
        places |= {"bucket": self.bucket / "replicas", "office": self.office}
        return places

    def _right_copies(self, segment: Segment) -> Iterator[tuple[str, Path]]:
        """Yield place and path of each right copy that the station can find again."""
        paths = [(place, path / segment.session) for place, path in self._places().items()]
        beside = self.root / ARCHIVED / segment.session
        paths += [("store", beside.with_name(beside.name + end)) for end in (".old", ".new")]
        paths += [
            ("snapshot", made.path / segment.session)
            for made in snapshots_of(self.root)
            if listed_in(made, segment.session).get(segment.name) == segment.sha256
        ]
        for place, folder in paths:
            path = folder / segment.name
            if place == "store" and folder.is_symlink():
                continue  # its files are in the archive
            if path.is_file() and path.read_bytes() == self.data[segment]:
                yield place, path

    def check(self) -> None:
        """Check that no segment is absent from all places, and none is wrong or doubled."""
        for segment in self.stored:
            assert any(self._right_copies(segment)), f"{segment} is absent from all places"
        right = {segment.name: segment.sha256 for segment in self.data}
        for place, folder in self._places().items():
            for path in folder.glob(f"{CAR}/*/*/*.mcap"):
                if place == "store" and path.parent.is_symlink():
                    continue
                sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
                allowed = {right[path.name], *self.flipped.get(place, ())}
                assert sha256 in allowed, f"{path} is wrong"
        sessions = list(self.store().sessions())
        assert len(sessions) == len(set(sessions)), "a session is listed twice"
        assert set(sessions) <= {segment.session for segment in self.data}
        for session in sessions:
            names = [segment.path for segment in self.store().listed(session)]
            assert len(names) == len(set(names)), "a segment is listed twice"

    def bring_home(self) -> None:
        """Repair everything without faults; then check each copy."""
        self.moment = -1
        self.utc_s = max(self.utc_s, NOW_S) + 8 * DAY_S
        for _ in range(ROUNDS_MOST):
            self._repair()
            self.check()
            if not self._not_home():
                return
            self.utc_s += 8 * DAY_S
        raise AssertionError(f"it does not end: {self._not_home()}")

    def _repair(self) -> None:
        for session in sorted({segment.session for segment in self.data}):
            if self._left():  # a move without a record left a copy, which the next move uses
                self._in_child(self.move, Tiers.archive, session)
            if self._in_child(self.move, Tiers.recall, session) and self.store().archived(session):
                self._in_child(self.move, partial(Tiers.recall, gone=True), session)
        self.verify()
        for segment in sorted(self.data.keys() - self.stored):
            self._send(segment)
        for remote in self.remotes() * SESSIONS:
            self._in_child(self._replicate, remote)
        for session in sorted({segment.session for segment in self._missing()}):
            self._in_child(self._restore_from_remotes, session)
        for snapshot in snapshots_of(self.root):
            for segment in self._missing():
                self._in_child(self._restore, segment.session, segment.name, snapshot)

    def _missing(self) -> list[Segment]:
        listed = {(line.path, line.sha256) for line in self.store().segments()}
        return [
            segment
            for segment in sorted(self.stored)
            if (f"{segment.session}/{segment.name}", segment.sha256) not in listed
        ]

    def _not_home(self) -> list[object]:
        """Return the segments that the store or a remote lacks, and files left in the archive."""
        expected = {"store", *("bucket" if "://" in one else "office" for one in self.targets)}
        incomplete = [
            (segment, places)
            for segment in self.data
            if not expected <= (places := {place for place, _ in self._right_copies(segment)})
        ]
        return [*incomplete, *self._missing(), *self._left()]

    def _left(self) -> list[Path]:
        """Return the files of a move that has not ended."""
        files = self.archived.glob(f"{CAR}/*/*/*.mcap")
        return [*files, *self.root.glob(f"{ARCHIVED}/*/*/[!.]*")]

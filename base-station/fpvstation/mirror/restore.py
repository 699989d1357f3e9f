"""Restore of a session from the nearest good replica: the trash here, then the offices.

    segments here, verified again -> missing segments -> the trash -> each office in turn
            -> verified, published, listed, and read once more

Segments that are here and right stay unchanged. The expected checksums come from the records of
replica_log.py, the offices' own lists, and for the trash from the list of removed segments.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fpvcar.recordings import names
from fpvstation.fetch.pull import Act
from fpvstation.mirror.replicate import CopyProgress, OfficeFault, RemoteOffice, take
from fpvstation.store.disk import Disk
from fpvstation.store.identity import StoreError
from fpvstation.store.manifest import FOLDER
from fpvstation.store.replica_log import ReplicaLog, segments_of
from fpvstation.store.store import TRASH, Store
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, stored_in

SESSION = re.compile(r"([^/]+)/(\d{4}-\d\d-\d\d)/([^/]+?)(\.[0-9a-f]{8})?")
OnProgress = Callable[[str, CopyProgress], None]
"""Callback for progress: the source, and the bytes moved."""


@dataclass
class RestoreResult:
    """Result of a restore, by segment."""

    here: int = 0
    """Segments that were here, and right."""
    came: dict[str, int] = field(default_factory=dict)
    """Number of segments from each source."""
    missing: list[str] = field(default_factory=list)
    """Segments that are recorded, but have no good copy anywhere."""
    faults: list[str] = field(default_factory=list)
    """Faults of the sources, as text."""


def session_of(word: str, store: Store, disk: Disk, copies: ReplicaLog) -> str:
    """Return the session of that name or folder; for an unknown session, the folder derived from
    the name. Raises StoreError."""
    trashed = set(_trashed(disk))
    known = {*store.sessions(), *copies.sessions(), *trashed}
    found = sorted(one for one in known if word in (one, one.rpartition("/")[2]))
    if not found:
        name = names.parse(f"{word}-0001{names.SEALED}")
        path = word
        if name is not None:
            day = f"{name.began[:4]}-{name.began[4:6]}-{name.began[6:8]}"
            path = f"{name.car}/{day}/{word}"
        parts = SESSION.fullmatch(path)
        if parts and FOLDER.fullmatch(parts[1]) and _named(parts[3]):
            return path
    if len(found) != 1:
        which = ", ".join(found[:5]) or "none here; say CAR/DAY/SESSION"
        raise StoreError(f'"{word[:80]}" names {len(found)} sessions: {which}')
    return found[0]


def _named(session: str) -> bool:
    return names.parse(f"{session}-0001{names.SEALED}") is not None


def _trashed(disk: Disk) -> Iterator[str]:
    """Yield the sessions with files in the trash."""
    for day in disk.names(TRASH):
        for car in disk.names(f"{TRASH}/{day}"):
            for began in disk.names(f"{TRASH}/{day}/{car}"):
                for one in disk.names(f"{TRASH}/{day}/{car}/{began}"):
                    yield f"{car}/{began}/{one}"


class Restore:
    """Restore of one session of one store."""

    def __init__(
        self, session: str, store: Store, disk: Disk, copies: ReplicaLog, act: Act, tell: OnProgress
    ) -> None:
        self.done = RestoreResult()
        self._session, self._store, self._disk = session, store, disk
        self._copies, self._act, self._tell = copies, act, tell
        self._wanted: dict[str, str] = {}

    async def run(self, offices: Sequence[RemoteOffice]) -> RestoreResult:
        """Run the restore. Raises StoreError, OSError; segments that arrived before stay."""
        await self._act(self._store.check)
        for copy in (await self._act(self._copies.of, self._session)).values():
            self._wanted.update(copy.segments)
        for fault in await self._act(self._store.audit, self._session):
            self.done.faults.append(f"{fault.path}: {fault.fault}; {fault.done}")
        self.done.here = len(await self._judged("what is here"))
        await self._from_trash()
        for office in offices:
            if self._missing() or not self._wanted:
                await self._from_office(office)
        self.done.missing = sorted(self._missing())
        if self.done.came:
            await self._judged("what came")
            self.done.missing = sorted(self._missing())
        return self.done

    async def _judged(self, what: str) -> list[StoredSegment]:
        """Return the right segments here; set bad ones aside."""
        listed: list[StoredSegment] = await self._act(self._store.listed, self._session)
        sizes = [await self._act(self._disk.size, one.path) or 0 for one in listed]
        done, right = 0, []
        for one, size in zip(listed, sizes, strict=True):
            self._wanted[one.path.rpartition("/")[2]] = one.sha256
            if not await self._act(self._store.judge, one):
                right.append(one)
            done += size
            self._tell(what, CopyProgress(done, done, sum(sizes)))
        return right

    def _missing(self) -> dict[str, str]:
        here = segments_of(self._store.listed(self._session))
        return {k: v for k, v in self._wanted.items() if here.get(k) != v}

    async def _from_trash(self) -> None:
        removed = await self._act(self._store.removed)
        days = reversed(self._disk.names(TRASH))
        folders = [f"{TRASH}/{day}/{self._session}" for day in days]
        for folder in folders:
            paths = {one: f"{folder}/{one}" for one in self._disk.names(folder)}
            found = {}
            for name, path in paths.items():
                sha256 = (await self._act(self._store.sums, path)).sha256
                if sha256 in removed:
                    self._wanted.setdefault(name, sha256)
                if self._wanted.get(name) == sha256:
                    found[name] = sha256
            await self._take("the trash", paths, found)
            if paths:
                await self._act(self._disk.prune, folder)

    async def _from_office(self, office: RemoteOffice) -> None:
        try:
            paths = dict(
                await office.fetch(self._session, lambda moved: self._tell(office.place, moved))
            )
        except OfficeFault as fault:
            self.done.faults.append(str(fault))
            return
        if SUMS_FILE in paths:
            text = await self._act(self._disk.read, paths[SUMS_FILE])
            for name, sha256 in segments_of(stored_in(self._session, text)).items():
                if names.parse(name):
                    self._wanted.setdefault(name, sha256)
        await self._take(office.place, paths, self._missing())
        await self._act(self._store.clear, paths.values())

    async def _take(self, place: str, paths: dict[str, str], wanted: dict[str, str]) -> None:
        await self._act(self._store.want_again, set(wanted.values()))
        missing = self._missing()
        wanted = {k: v for k, v in wanted.items() if missing.get(k) == v}
        came = await take(self._store, self._session, paths, wanted, self._act)
        if came:
            self.done.came[place] = self.done.came.get(place, 0) + len(came)

"""Restore of a session from the nearest good replica: the trash here, then the remotes.

    segments here, verified again -> missing segments -> the trash -> each remote in turn
            -> verified, published, listed, and read once more

Segments that are here and right stay unchanged. The expected checksums come from the records of
replica_log.py, the remotes' own lists, and for the trash from the list of removed segments.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fpvcar.recordings import names
from fpvstation.errors import StationError
from fpvstation.fetch.pull import Act
from fpvstation.replicas.remote import CopyProgress, PlaceFault, Remote
from fpvstation.replicas.replicate import adopt_files
from fpvstation.store.disk import Disk
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

    present: int = 0
    """Segments that were here, and right."""
    restored: dict[str, int] = field(default_factory=dict)
    """Number of segments from each source."""
    missing: list[str] = field(default_factory=list)
    """Segments that are recorded, but have no good copy anywhere."""
    faults: list[str] = field(default_factory=list)
    """Faults of the sources, as text."""


def session_of(name: str, store: Store, disk: Disk, replicas: ReplicaLog) -> str:
    """Return the session of that name or folder; for an unknown session, the folder derived from
    the name. Raises StationError."""
    trashed = set(_sessions_in_trash(disk))
    known = {*store.sessions(), *replicas.sessions(), *trashed}
    matches = sorted(session for session in known if name in (session, session.rpartition("/")[2]))
    if not matches:
        parsed = names.parse(f"{name}-0001{names.SEALED}")
        path = name
        if parsed is not None:
            day = f"{parsed.began[:4]}-{parsed.began[4:6]}-{parsed.began[6:8]}"
            path = f"{parsed.car}/{day}/{name}"
        parts = SESSION.fullmatch(path)
        if parts and FOLDER.fullmatch(parts[1]) and _is_session_name(parts[3]):
            return path
    if len(matches) != 1:
        which = ", ".join(matches[:5]) or "none here; name it as CAR/DAY/SESSION"
        raise StationError(f'"{name[:80]}" names {len(matches)} sessions: {which}')
    return matches[0]


def _is_session_name(session: str) -> bool:
    return names.parse(f"{session}-0001{names.SEALED}") is not None


def _sessions_in_trash(disk: Disk) -> Iterator[str]:
    """Yield the sessions with files in the trash."""
    for day in disk.names(TRASH):
        for car in disk.names(f"{TRASH}/{day}"):
            for date in disk.names(f"{TRASH}/{day}/{car}"):
                for session in disk.names(f"{TRASH}/{day}/{car}/{date}"):
                    yield f"{car}/{date}/{session}"


class Restore:
    """Restore of one session of one store."""

    def __init__(
        self,
        session: str,
        store: Store,
        disk: Disk,
        replicas: ReplicaLog,
        act: Act,
        on_progress: OnProgress,
    ) -> None:
        self.result = RestoreResult()
        self._session, self._store, self._disk = session, store, disk
        self._replicas, self._act, self._on_progress = replicas, act, on_progress
        self._expected: dict[str, str] = {}

    async def run(self, remotes: Sequence[Remote]) -> RestoreResult:
        """Run the restore. Raises StationError, OSError; segments that arrived before stay."""
        await self._act(self._store.check)
        for replica in (await self._act(self._replicas.of, self._session)).values():
            self._expected.update(replica.segments)
        for finding in await self._act(self._store.audit, self._session):
            self.result.faults.append(f"{finding.path}: {finding.fault}; {finding.done}")
        self.result.present = len(await self._verify_local("segments here"))
        await self._from_trash()
        for remote in remotes:
            if self._missing() or not self._expected:
                await self._fetch_from(remote)
        self.result.missing = sorted(self._missing())
        if self.result.restored:
            await self._verify_local("restored segments")
            self.result.missing = sorted(self._missing())
        return self.result

    async def _verify_local(self, phase: str) -> list[StoredSegment]:
        """Return the right segments here; set bad ones aside."""
        listed: list[StoredSegment] = await self._act(self._store.listed, self._session)
        sizes = [await self._act(self._disk.size, segment.path) or 0 for segment in listed]
        done, right = 0, []
        for segment, size in zip(listed, sizes, strict=True):
            self._expected[segment.path.rpartition("/")[2]] = segment.sha256
            if not await self._act(self._store.verify_segment, segment):
                right.append(segment)
            done += size
            self._on_progress(phase, CopyProgress(done, done, sum(sizes)))
        return right

    def _missing(self) -> dict[str, str]:
        local = segments_of(self._store.listed(self._session))
        return {
            name: sha256 for name, sha256 in self._expected.items() if local.get(name) != sha256
        }

    async def _from_trash(self) -> None:
        removed = await self._act(self._store.removed)
        days = reversed(self._disk.names(TRASH))
        folders = [f"{TRASH}/{day}/{self._session}" for day in days]
        for folder in folders:
            paths = {name: f"{folder}/{name}" for name in self._disk.names(folder)}
            matching = {}
            for name, path in paths.items():
                sha256 = (await self._act(self._store.sums, path)).sha256
                if sha256 in removed:
                    self._expected.setdefault(name, sha256)
                if self._expected.get(name) == sha256:
                    matching[name] = sha256
            await self._adopt("the trash", paths, matching)
            if paths:
                await self._act(self._disk.prune, folder)

    async def _fetch_from(self, remote: Remote) -> None:
        try:
            paths = dict(
                await remote.fetch(
                    self._session, lambda progress: self._on_progress(remote.place, progress)
                )
            )
        except PlaceFault as fault:
            self.result.faults.append(str(fault))
            return
        if SUMS_FILE in paths:
            text = await self._act(self._disk.read, paths[SUMS_FILE])
            for name, sha256 in segments_of(stored_in(self._session, text)).items():
                if names.parse(name):
                    self._expected.setdefault(name, sha256)
        await self._adopt(remote.place, paths, self._missing())
        await self._act(self._store.clear, paths.values())

    async def _adopt(self, place: str, paths: dict[str, str], wanted: dict[str, str]) -> None:
        await self._act(self._store.want_again, set(wanted.values()))
        missing = self._missing()
        wanted = {name: sha256 for name, sha256 in wanted.items() if missing.get(name) == sha256}
        adopted = await adopt_files(self._store, self._session, paths, wanted, self._act)
        if adopted:
            self.result.restored[place] = self.result.restored.get(place, 0) + len(adopted)

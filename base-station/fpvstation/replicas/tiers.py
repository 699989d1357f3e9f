"""Tiers of a store: whole sessions move to an archive, a folder or a bucket, and back.

    out:  copied and verified there -> record written
          -> folder moved aside -> link in its place -> folder deleted
    back: recall.py

The record is the journal. Before it is written the store has the session; after that the archive
has it, until the record says `returned`. `resume` completes the steps after a kill.
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from fpvcar.runtime import files
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import FILE_MISSING, Phrase, Text, fault_text
from fpvstation.catalogue.probe import ProbeJob, key_of, probe
from fpvstation.errors import StationError
from fpvstation.fetch.pull import Act
from fpvstation.replicas.folder_archive import FolderArchive
from fpvstation.replicas.recall import Recall
from fpvstation.replicas.remote import DAMAGED, Archive, OnProgress, PlaceFault, Remote, quiet
from fpvstation.replicas.s3 import S3
from fpvstation.settings import BUCKET_SCHEME, TierSettings
from fpvstation.store.archived import ARCHIVED, ArchivedSession, ArchiveLog
from fpvstation.store.audit import files_of
from fpvstation.store.bound import age_key
from fpvstation.store.disk import Folder, is_open, locked
from fpvstation.store.replica_log import ReplicaLog, segments_of
from fpvstation.store.store import Store
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment

ARCHIVE_LEFT = Phrase(
    "archive_left", "{count} files of {session} are still in {place}: fpvstation recall {name}"
)
ARCHIVE_WAITS = Phrase(
    "archive_waits", "{place} does not have {session} yet: wait until it is copied there"
)
ARCHIVE_FOREIGN = Phrase("archive_foreign", "{path} is not archived: move it elsewhere")

ARCHIVE_LINK = Phrase(
    "archive_link", "{path} links to {target}, which is not its archive: remove that link"
)
ARCHIVE_BUSY = Phrase("archive_busy", "{session} has changed or is in use: archive it later")

SETTLED_S = 3600.0
"""Time without a new segment after which a session may be archived."""
LOCK = f"{ARCHIVED}/.lock"


class TiersBusy(StationError):
    """Raised while another archive or recall runs."""


class DueSession(NamedTuple):
    """Session to archive, with its bytes and the reason."""

    session: str
    bytes: int
    reason: str


def archive_of(target: str, root: Path) -> Archive:
    """Return the archive of the settings. Raises StationError."""
    is_bucket = target.startswith(BUCKET_SCHEME)
    return S3(target, root, "archive") if is_bucket else FolderArchive(target, root)


class Tiers:
    """Moves of one store's sessions to its archive, and back."""

    def __init__(
        self,
        store: Store,
        disk: Folder,
        archive: Archive,
        places: Sequence[str],
        act: Act,
        utc_s: Clock = time.time,
        remotes: Sequence[Remote] = (),
    ) -> None:
        """Set the parts. `places`: places that must have a session before it is archived.
        `remotes`: remotes that supply files which are bad in the archive."""
        self._store, self._disk, self._archive = store, disk, archive
        self._places, self._act, self._utc_s = places, act, utc_s
        self._log, self._replicas = ArchiveLog(disk), ReplicaLog(disk)
        self._recall = Recall(store, disk, archive, remotes, act, utc_s)

    # Selection

    def due(self, settings: TierSettings) -> Iterator[DueSession]:
        """Yield the sessions that are due by age, then the oldest ones while the disk is too
        full. Blocks."""
        usage = shutil.disk_usage(self._disk.root)
        over = usage.used - usage.total * settings.above_share
        ages = {
            session: age_key(self._disk, session, listed)
            for session, listed in self._store.readable()
            if listed and not self._log.exists(session)
        }
        for session in sorted(ages, key=lambda session: ages[session]):
            size, changed_s = self._store.extent(session)
            # A recalled session stays as long as one that has just arrived.
            since_s = max(ages[session][0], changed_s)
            old = self._utc_s() - since_s > settings.after_s
            if (not old and over <= 0) or self._refusal(session):
                continue
            if self._utc_s() - changed_s < SETTLED_S:
                continue
            over -= size
            yield DueSession(session, size, "age" if old else "the disk is too full")

    def _refusal(self, session: str) -> Text | None:
        """Return the reason why a session cannot be archived, if there is one."""
        listed = self._store.listed(session)
        folder = self._disk.root / session
        if folder.is_symlink():
            return ARCHIVE_LINK(path=session, target=os.readlink(folder))
        if not listed:
            return FILE_MISSING(name=session)
        if left := self._log.left(session):
            values = {"count": len(left.segments), "place": left.place, "session": session}
            return ARCHIVE_LEFT(**values, name=session.rpartition("/")[2])
        replicas = self._replicas.of(session)
        expected = segments_of(listed).items()
        for place in self._places:
            if place not in replicas or not expected <= replicas[place].segments.items():
                return ARCHIVE_WAITS(session=session, place=place)
        return None

    # Out

    async def archive(self, session: str, on_progress: OnProgress = quiet) -> int:
        """Move a session to the archive; return its bytes. Raises StationError, PlaceFault,
        OSError; the session then stays."""
        self._store.check()
        self._log.refuse_change(session)
        if refusal := await self._act(self._refusal, session):
            raise StationError(refusal)
        for finding in await self._act(self._store.audit, session):
            raise StationError(DAMAGED(path=finding.path, session=session))
        listed = await self._act(self._store.listed, session)
        await self.claim()
        await self._archive.put(session, listed, on_progress)
        record = await self._act(self._record_of, session, listed)
        await self._act(self._hand_over, session, listed, record)
        await self._act(self._complete_out, session, record)
        return sum(record.sizes.values())

    async def claim(self) -> None:
        """Check that the archive is there, and of this store; claim it the first time. Raises
        PlaceFault, OSError."""
        key = hashlib.sha256(self._archive.place.encode()).hexdigest()[:8]
        claimed = f"{ARCHIVED}/.{key}.claimed"
        known = self._disk.size(claimed) is not None
        await self._archive.claim(self._store.id, known)
        if not known:
            await self._act(self._disk.replace, claimed, b"")

    def _record_of(self, session: str, listed: list[StoredSegment]) -> ArchivedSession:
        segments = segments_of(listed)
        sizes = {name: self._disk.size(f"{session}/{name}") or 0 for name in segments}
        entries = {}
        for segment in listed:
            job = ProbeJob(str(self._disk.root / segment.path), key_of(segment.path))
            entries[segment.path.rpartition("/")[2]] = msgspec.Raw(probe(job))
        return ArchivedSession(self._archive.place, self._utc_s(), segments, sizes, entries)

    def _hand_over(
        self, session: str, listed: list[StoredSegment], record: ArchivedSession
    ) -> None:
        """Write the record, if the session has not changed and no program reads it."""
        self._store.check()
        with self._disk.changing():
            names = {segment.path.rpartition("/")[2] for segment in listed}
            present = set(files_of(self._disk, session))
            if self._store.listed(session) != listed or present != names:
                raise StationError(ARCHIVE_BUSY(session=session))
            for name in names:
                if is_open(self._disk.root / session / name):
                    raise StationError(ARCHIVE_BUSY(session=f"{session}/{name}"))
            _refuse_foreign(self._disk.root / session, record)
            self._log.write(session, record)

    def _complete_out(self, session: str, record: ArchivedSession) -> None:
        """Replace the folder of a session by its link. May follow a kill at any step."""
        folder, old = self._disk.root / session, self._beside(session, ".old")
        link = self._archive.link(session)
        with self._disk.changing():
            if folder.is_symlink() and os.readlink(folder) != link:
                target = os.readlink(folder)
                raise StationError(ARCHIVE_LINK(path=session, target=target))
            if folder.is_dir() and not folder.is_symlink():
                os.rename(folder, old)
                files.sync(folder.parent)
                files.sync(old.parent)
            if link and not folder.is_symlink():
                _make_link(folder, link, self._beside(session, ".link"))
        if old.exists():
            _refuse_foreign(old, record)
            shutil.rmtree(old)
        if not link:
            self._disk.prune(session.rpartition("/")[0])

    def _is_whole(self, session: str, record: ArchivedSession) -> bool:
        """Return True if no file here has been deleted yet."""
        old = self._beside(session, ".old")
        folder = old if old.exists() else self._disk.root / session
        return not folder.is_symlink() and all((folder / name).exists() for name in record.segments)

    def _keep(self, session: str) -> None:
        """Keep a session here whose copy in the archive is damaged."""
        folder, old = self._disk.root / session, self._beside(session, ".old")
        with self._disk.changing():
            if old.exists():
                folder.unlink(missing_ok=True)
                folder.parent.mkdir(parents=True, exist_ok=True)
                os.rename(old, folder)
                files.sync(folder.parent)
                files.sync(old.parent)
            self._log.forget(session)

    def _beside(self, session: str, suffix: str) -> Path:
        return self._disk.root / ARCHIVED / (session + suffix)

    # Back

    async def recall(
        self, session: str, on_progress: OnProgress = quiet, gone: bool = False
    ) -> list[str]:
        """Bring a session back: see Recall.run."""
        return await self._recall.run(session, on_progress, gone)

    async def resume(self) -> list[Text]:
        """Complete all steps that a kill has interrupted; return the faults."""
        faults = []
        for session in list(await self._act(lambda: list(self._log.sessions()))):
            record = await self._act(self._log.of, session)
            if record is None or record.place != self._archive.place:
                continue
            try:
                if not record.returned:
                    # The kill may be long ago: the copy there may have been damaged since.
                    listed = record.listed(session)
                    if self._is_whole(session, record) and await self._archive.check(
                        session, listed
                    ):
                        await self._act(self._keep, session)
                    else:
                        await self._act(self._complete_out, session, record)
                else:
                    await self._archive.claim(self._store.id, known=True)
                    await self._recall.complete(session, record)
            except (PlaceFault, StationError, OSError) as fault:
                faults.append(fault_text(fault))
        faults += [fault_text(fault) for _, fault in await self._recall.settle_due()]
        return faults

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock against another archive or recall. Raises TiersBusy."""
        path = self._disk.root / LOCK
        path.parent.mkdir(exist_ok=True)
        with locked(
            path, TiersBusy("another archive or recall runs in this store: try again later")
        ):
            yield


def _refuse_foreign(folder: Path, record: ArchivedSession) -> None:
    """Raise StationError if other files are in the folder of a session. Delete those that a killed
    write has left."""
    for name in os.listdir(folder):
        if files.TEMPORARY.fullmatch(name):
            (folder / name).unlink()
        elif name not in {*record.segments, SUMS_FILE}:
            raise StationError(ARCHIVE_FOREIGN(path=folder / name))


def _make_link(path: Path, target: str, temporary: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(target)
    os.rename(temporary, path)
    files.sync(path.parent)

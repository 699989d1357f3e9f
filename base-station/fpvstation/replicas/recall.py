"""Recall: a session comes back from its archive, as far as it can be read.

    each file copied here -> verified -> bad and missing ones from the remotes
            -> moved beside the record -> record says `returned`
            -> link removed, folder in its place -> record becomes the list of files left there
            -> files that are right here deleted there -> the list, too, once it is empty

A file that is not right here stays in the archive: the list names it, and it is tried again.
"""

import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fpvcar.runtime import files
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import FILE_MISSING, SAYS, Phrase
from fpvstation.errors import StationError
from fpvstation.fetch.pull import Act
from fpvstation.replicas.remote import (
    Archive,
    CopyProgress,
    OnProgress,
    PlaceFault,
    Remote,
    no_room,
    quiet,
)
from fpvstation.replicas.replicate import adopt_files
from fpvstation.store.archived import ARCHIVED, LEFT, ArchivedSession, ArchiveLog, voted
from fpvstation.store.audit import BAD, Sums
from fpvstation.store.disk import Folder, read_back
from fpvstation.store.replica_log import DAY_S, HERE, ReplicaLog, is_recent, segments_of
from fpvstation.store.store import Store
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, stored_in, text_of

NO_ARCHIVE = Phrase(
    "recall_no_archive",
    '{session} is in {place}: set archive = "{place}" in [tiers] of '
    "station.toml, then restart the station",
)

RECALL_NOTHING = Phrase(
    "recall_nothing",
    "{place} has no right file of this session, and no remote has one: put its folder back "
    "there, or count it as lost: fpvstation recall --lost {name}",
)
RECALL_DAMAGED = Phrase(
    "recall_damaged",
    "{path}: right in {place}, and damaged on its way to the store's disk: check that disk, "
    "then recall it again",
)
log = logging.getLogger("fpvstation")


class Recall:
    """Recalls of one store's sessions from its archive."""

    def __init__(
        self,
        store: Store,
        disk: Folder,
        archive: Archive,
        remotes: Sequence[Remote],
        act: Act,
        utc_s: Clock = time.time,
    ) -> None:
        """Set the parts. `remotes` supply files that are bad in the archive."""
        self._store, self._disk, self._archive = store, disk, archive
        self._remotes, self._act, self._utc_s = remotes, act, utc_s
        self._log, self._replicas = ArchiveLog(disk), ReplicaLog(disk)

    async def run(self, session: str, on_progress: OnProgress, gone: bool) -> list[str]:
        """Bring a session back; return the names of segments that no place has right. `gone`: do
        not read the archive. Raises StationError, PlaceFault, OSError; the session then stays
        there."""
        self._store.check()
        record = self._log.of(session)
        place = self._known(session, record or self._log.left(session)).place
        if place != self._archive.place:
            raise StationError(NO_ARCHIVE(session=session, place=place))
        if gone and not self._beside(session).exists():
            lost: list[str] = await self._act(self._give_up, session)
            return lost
        await self._archive.claim(self._store.id, known=True)
        if record is None:
            return await self.settle(session)
        right = None
        if not record.returned:
            right = await self._fetch(session, record, on_progress)
        return await self.complete(session, record, right)

    def _known(self, session: str, record: ArchivedSession | None) -> ArchivedSession:
        if record is None:
            missing = FILE_MISSING(name=session)
            raise StationError(SAYS(place=self._archive.place, reason=missing))
        return record

    def _give_up(self, session: str) -> list[str]:
        """Count an archived session as lost there: the remotes, the car or a snapshot supply it.
        The list of its files stays, in case the archive comes back."""
        record, folder = self._log.of(session), self._disk.root / session
        with self._disk.changing():
            if record is None:
                self._log.forget(session, LEFT)
                return []
            for segment in record.listed(session):
                self._replicas.add(segment, self._utc_s())
            record.verified_s = 0.0
            self._log.write(session, record, LEFT)
            if folder.is_symlink():
                folder.unlink()
                files.sync(folder.parent)
            self._log.forget(session)
        return sorted(record.segments)

    # Copy

    async def _fetch(
        self, session: str, record: ArchivedSession, on_progress: OnProgress
    ) -> set[str]:
        """Copy a session here, and verify the copy; return the names of right segments."""
        claims = await claims_of(self._archive, session, record, self._replicas)
        size, right = sum(record.sizes.values()), set[str]()

        def verify(path: str) -> None:
            name = path.rpartition("/")[2]
            sha256 = read_back(self._disk.root / path)
            if sha256 in claims.get(name, ()):
                record.segments[name] = sha256
                right.add(name)

        await self._act(self._check_room, session, size)
        kept = await self._act(self._kept, session)
        for path in kept.values():  # of a recall that was killed
            await self._act(verify, path)
        listed = [one for one in record.listed(session) if one.path.rpartition("/")[2] not in right]
        paths = dict(await self._archive.fetch_segments(session, listed, on_progress, verify))
        on_progress(CopyProgress(0, size, size))
        lost = [one for one in listed if one.path.rpartition("/")[2] not in right]
        if lost:
            bad = await self._archive.check(session, lost)
            if unlike := sorted(segments_of(lost).keys() - set(bad)):
                await self._act(self._store.clear, paths.values())
                path = f"{session}/{unlike[0]}"
                raise PlaceFault(RECALL_DAMAGED(path=path, place=record.place))
        for remote in self._remotes:
            if right != record.segments.keys():
                await self._fetch_from(remote, session, paths, right, verify)
        if not right:
            await self._act(self._store.clear, [*paths.values(), *kept.values()])
            values = {"place": record.place, "name": session.rpartition("/")[2]}
            raise PlaceFault(RECALL_NOTHING(**values))
        await self._act(self._take, session, record, paths, right)
        return right

    async def _fetch_from(
        self,
        remote: Remote,
        session: str,
        paths: dict[str, str],
        right: set[str],
        verify: Callable[[str], None],
    ) -> None:
        """Fetch the segments that are not right from a remote."""
        try:
            found = await remote.fetch(session, quiet)
        except PlaceFault as fault:
            log.warning("%s", fault)
            return
        for name, path in found.items():
            unused = path
            if name not in right:
                await self._act(verify, path)
                if name in right:
                    unused, paths[name] = paths.get(name, ""), path
            await self._act(self._store.clear, [unused] if unused else [])

    def _kept(self, session: str) -> dict[str, str]:
        """Return the files that a killed recall has moved beside the record."""
        into = f"{ARCHIVED}/{session}.new"
        return {name: f"{into}/{name}" for name in self._disk.names(into)}

    def _check_room(self, session: str, size: int) -> None:
        free = shutil.disk_usage(self._disk.root).free
        if size > free:
            raise StationError(no_room(str(self._disk.root), session, size, free))

    # Journal

    def _take(
        self, session: str, record: ArchivedSession, paths: Mapping[str, str], right: set[str]
    ) -> None:
        """Make verified files the session's own."""
        self._store.check()
        new = self._beside(session)
        new.mkdir(parents=True, exist_ok=True)
        for name, path in self._kept(session).items():
            if name not in right:
                (self._disk.root / path).unlink()
        for name in right & paths.keys():
            os.rename(self._disk.root / paths[name], new / name)
        self._store.clear(paths.values())
        listed = (StoredSegment(name, record.segments[name]) for name in right)
        files.write_whole(new / SUMS_FILE, [text_of(listed)])
        (new / SUMS_FILE).chmod(0o644)
        files.sync(new)
        files.sync(new.parent)
        with self._disk.changing():
            record.returned = True
            self._log.write(session, record)

    async def complete(
        self, session: str, record: ArchivedSession, right: set[str] | None = None
    ) -> list[str]:
        """Put the folder of a session in its place; return the names of lost segments. May follow
        a kill at any step. `right`: segments here that were verified just now."""
        await self._act(self._put_back, session)
        self._store.check()  # the disk may have been unmounted meanwhile

        def hand_over() -> None:
            with self._disk.changing():
                for segment in record.listed(session):  # a lost one is fetched again
                    self._replicas.add(segment, self._utc_s())
                record.verified_s = 0.0  # it is due now
                self._log.write(session, record, LEFT)
                self._log.forget(session)

        await self._act(hand_over)
        return await self.settle(session, right)

    def _put_back(self, session: str) -> None:
        folder, new = self._disk.root / session, self._beside(session)
        with self._disk.changing():
            if not new.exists():
                return
            if folder.is_symlink():
                folder.unlink()
            elif folder.exists():  # a person has put it in place of the link
                aside = self._disk.root / BAD / f"{session}.{time.time_ns()}"
                log.warning("%s is not the link to the archive: moved to %s", folder, aside)
                aside.parent.mkdir(parents=True, exist_ok=True)
                os.rename(folder, aside)
            folder.parent.mkdir(parents=True, exist_ok=True)
            os.rename(new, folder)
            files.sync(folder.parent)
            files.sync(folder.parent.parent)
            files.sync(new.parent)

    def _beside(self, session: str) -> Path:
        return self._disk.root / ARCHIVED / f"{session}.new"

    # Files left in the archive

    async def settle_due(self) -> list[tuple[str, Exception]]:
        """Settle the sessions that have left files in the archive, each once a day; return the
        faults."""
        faults = list[tuple[str, Exception]]()
        for session in list(await self._act(lambda: list(self._log.sessions(LEFT)))):
            left = await self._act(self._log.left, session)
            if (
                left is None
                or left.place != self._archive.place
                or is_recent(left.verified_s, self._utc_s(), DAY_S)
            ):
                continue
            try:
                await self.settle(session)
            except (PlaceFault, StationError, OSError) as fault:
                faults.append((session, fault))
        return faults

    async def settle(self, session: str, right: set[str] | None = None) -> list[str]:
        """Fetch the files that a recall has left in the archive, and delete there what is right
        here; return the names of segments that are lost. `right`: verified here just now."""
        left = await self._act(self._log.left, session)
        if left is None or self._log.exists(session):
            return []
        removed = await self._act(self._store.removed)
        gone = {name for name, sha256 in left.segments.items() if sha256 in removed}
        gone |= left.segments.keys() & self._replicas.evicted(session).keys()
        if right is None:
            await self._archive.claim(self._store.id, known=True)
            right = await self._act(self._right_here, session, left)
            right |= await self._fetch_left(session, left, left.segments.keys() - right - gone)
        lost = left.segments.keys() - right - gone
        await self._archive.remove(session, sorted(left.segments.keys() & right), not lost)

        def write() -> None:
            with self._disk.changing():
                left.segments = {name: left.segments[name] for name in lost}
                left.verified_s = self._utc_s()
                self._log.write(session, left, LEFT)
                if not lost:
                    self._log.forget(session, LEFT)

        await self._act(write)
        return sorted(lost)

    def _right_here(self, session: str, left: ArchivedSession) -> set[str]:
        """Return the segments that are here, by reading them."""
        folder, listed = self._disk.root / session, segments_of(self._store.listed(session))
        if folder.is_symlink():
            return set()
        return {
            name
            for name, sha256 in left.segments.items()
            if listed.get(name) == sha256 and read_back(folder / name) == sha256
        }

    async def _fetch_left(self, session: str, left: ArchivedSession, lost: set[str]) -> set[str]:
        """Fetch segments that are not here; return the right ones."""
        listed = [one for one in left.listed(session) if one.path.rpartition("/")[2] in lost]
        if not listed:
            return set()
        paths = await self._archive.fetch_segments(session, listed, quiet, lambda path: None)
        wanted = segments_of(listed)
        adopted = await adopt_files(self._store, session, paths, wanted, self._act)
        await self._act(self._store.clear, paths.values())
        return set(segments_of(adopted))


async def claims_of(
    archive: Archive, session: str, record: ArchivedSession, replicas: ReplicaLog
) -> Sums:
    """Return the checksums that the three lists have for each segment: the record, `.copies`, and
    the archive's own. Give the record those of their majority."""
    own = replicas.of(session).get(HERE)
    there = segments_of(stored_in(session, await archive.sums(session)))
    lists = [record.segments, own.segments if own else {}, there]
    majority = voted(lists)
    if majority != record.segments:
        log.warning("%s: its record is wrong; .copies and the archive disprove it", session)
        record.segments = majority
    return {name: {one[name] for one in lists if name in one} for name in majority}

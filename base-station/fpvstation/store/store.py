"""Store of many cars' recordings, in a folder that `sha256sum -c` can verify.

    .fpvstation.json                         identity of the store
    .incoming/CAR/NAME.SHA256                in transfer; its bytes tell the good pieces
    .removed                                 checksums of segments that people removed
    CAR/2026-11-21/SESSION/NAME.mcap         published whole, synced, never replaced
    CAR/2026-11-21/SESSION/SHA256SUMS        its line is written after the file
    .copies/                                 replicas at each place: replica_log.py
    .archived/                               sessions in an archive: archived.py
    .bad/, .trash/2026-11-22/                damaged files, and files that people removed

There is no journal: after a restart the fetched bytes are read again and compared, piece by piece.
A journal can be wrong about a disk that lost power; the bytes cannot.
"""

import contextlib
import errno
import time
from collections.abc import Callable, Iterable

from fpvcar.library.checksums import start_of
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase
from fpvcar.wire.station import SHA256, Sums
from fpvstation.errors import StationError
from fpvstation.store.archived import recall_step
from fpvstation.store.audit import AGAIN, BAD, BY_FILE, BY_RECORD, Audit, Finding, near
from fpvstation.store.contents import Contents
from fpvstation.store.disk import Disk
from fpvstation.store.identity import Identity
from fpvstation.store.replica_log import EVICTED, HERE, is_recent
from fpvstation.store.sums_file import StoredSegment

STORE_BYTES = Phrase(
    "store_bytes", "{path}: the store's disk does not return the written bytes: check that disk"
)

STORE_NAME = Phrase("store_name", "{path}: another segment has this name; check it")

INCOMING, TRASH = ".incoming", ".trash"
UNREADABLE = (errno.EIO, errno.EUCLEAN, errno.EBADMSG)
"""Errors of a disk, or its file system, for bytes that it has lost."""


def trash_of(now_s: float) -> str:
    """Return today's folder in the trash, UTC; housekeeping.py empties the trash by that date."""
    return f"{TRASH}/{time.strftime('%Y-%m-%d', time.gmtime(now_s))}"


class Store(Contents):
    """Store of recordings. Every call may block, and raise OSError."""

    def __init__(
        self,
        disk: Disk,
        on_stored: Callable[[str], None] = lambda session: None,
        utc_s: Clock = time.time,
    ) -> None:
        """Set the disk. `on_stored` gets each session that got a segment, in any thread."""
        super().__init__(disk)
        self._on_stored, self._identity, self._utc_s = on_stored, Identity(disk), utc_s
        self._audit = Audit(disk, self._manifest, self._replicas)

    def open(self, known: str) -> str:
        return self._identity.open(known)

    @property
    def id(self) -> str:
        """Id of the open store."""
        return self._identity.id

    def try_out(self) -> None:
        self._identity.try_out()

    def check(self) -> None:
        self._identity.check()

    # Verification

    def audit(self, session: str) -> list[Finding]:
        """Audit a session: see Audit.run. Raises StoreGone."""
        self.check()
        own = self._replicas.of(session).get(HERE)
        findings = self._archive.audit(session, own.segments if own else {})
        return findings if self.archived(session) else findings + self._audit.run(session)

    def verify_segment(self, segment: StoredSegment) -> Finding | None:
        """Read a segment again. Return None if it is right. Otherwise mend its line if that is
        proved wrong, or set the bad file aside, to be fetched again.

        Raises StoreGone, and OSError if the file cannot be verified.
        """
        self.check()
        sha256, fault = self._read(segment)
        if sha256 == segment.sha256:
            return None
        session, _, name = segment.path.rpartition("/")
        if record := self.archived(session):
            if sha256 in self._recorded_sums(segment):
                with self._disk.changing():
                    return self._archive.mend(session, name, sha256)
            step = recall_step(session)
            return Finding(segment.path, fault, f"not changed: it is in {record.place}; {step}")
        if not sha256 and self._replicas.evicted(session).get(name) == segment.sha256:
            self.set_aside(segment)  # a kill came between the two steps of `evict`
            return None
        proof = BY_RECORD if sha256 in self._recorded_sums(segment) else ""
        proof = proof or (BY_FILE if near(sha256, segment.sha256) else "")
        if proof:
            with self._disk.changing():
                self._audit.save_list(session)
                self._list(StoredSegment(segment.path, sha256))
            return Finding(segment.path, f"its line has {segment.sha256[:16]}...", proof)
        self.set_aside(segment)
        return Finding(segment.path, fault, f"set aside in {BAD}, {AGAIN}")

    def note_verified(self, session: str, now_s: float) -> None:
        """Record that all listed segments of a session were verified just now."""
        with self._disk.changing():
            if record := self.archived(session):
                record.verified_s = now_s
                self._archive.write(session, record)
                return
            for segment in self.listed(session):
                self._replicas.add(segment, now_s)
            self._replicas.mark_verified(session, now_s)

    def sums(self, path: str) -> Sums:
        """Return the checksums of a file on this store's disk."""
        return self._disk.sums(path)

    def _read(self, segment: StoredSegment) -> tuple[str, str]:
        """Return the checksum of a file, "" if it is gone or unreadable, and the text of the
        fault in case it differs from its line."""
        try:
            sha256 = self._disk.sha256(segment.path)
        except FileNotFoundError:
            return "", "it is missing"
        except OSError as fault:
            if fault.errno not in UNREADABLE:
                raise
            return "", f"it cannot be read: {fault.strerror}"
        return sha256, f"it is {sha256[:16]}..., expected {segment.sha256[:16]}..."

    # Arrival of segments

    def missing(self, car: str, name: str, sums: Sums) -> list[int]:
        """Return the numbers of a segment's absent or damaged pieces.

        Present pieces are written again: the sync of an earlier run may have failed, and a kill may
        have come before `publish` removed the file.
        """
        if self._place(car, name, sums)[1]:
            return []
        part = self._part(car, name, sums)
        try:
            self._disk.rewrite(part)
            present = self._disk.sums(part).pieces
        except FileNotFoundError:
            present = []
        return [
            number
            for number, sha256 in enumerate(sums.pieces)
            if number >= len(present) or present[number] != sha256
        ]

    def write(
        self, car: str, name: str, sums: Sums, number: int, data: bytes, anew: bool = False
    ) -> None:
        """Write a piece that is verified; or the first piece of a new file, whose pieces are
        verified later. `anew` removes the old file first: a kill within `publish` leaves it
        two names, and one of them may be the published one. Raises StoreGone."""
        self.check()
        part = self._part(car, name, sums)
        if anew:
            self._disk.remove(part)
        self._disk.write_at(part, start_of(number), data)

    def publish(self, car: str, name: str, sums: Sums, read_back: bool = True) -> StoredSegment:
        """Publish a complete segment durably, and write its line.

        A segment that is already published is only synced: a kill may have come before the sync.
        Raises StationError if the disk is gone, or does not return the written bytes: a segment
        that was not hashed on arrival is read again.
        """
        self.check()
        part = self._part(car, name, sums)
        session, present = self._place(car, name, sums)
        if not present:
            try:
                self._check(part, sums, read_back)
            except OSError:
                # After a failed sync the next one succeeds, regardless of the bytes on the disk
                # (fsync(2)): the bytes have to be fetched again.
                self._disk.remove(part)
                raise
        return self._settle(session, name, part, sums, present)

    def adopt(self, session: str, name: str, part: str, sums: Sums) -> StoredSegment:
        """Adopt a verified file of this store's disk as a segment of a session. Raises
        StationError, as `publish` does."""
        self.check()
        path = f"{session}/{name}"
        present = self._disk.size(path) is not None
        if present and self._disk.sums(path) != sums:
            self._clear_place(StoredSegment(path, sums.sha256))
            present = False
        if not present:
            self._disk.rewrite(part)
            self._check(part, sums)
        return self._settle(session, name, part, sums, present)

    def _clear_place(self, segment: StoredSegment) -> None:
        """Set aside a wrong file in a segment's place. A file without a line has no receipt
        either."""
        with self._disk.changing():
            lines = {
                line.sha256
                for line in self.listed(segment.path.rpartition("/")[0])
                if line.path == segment.path
            }
            if lines - {segment.sha256}:
                raise StationError(STORE_NAME(path=segment.path))
            self._put_aside(segment.path)

    def _put_aside(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            self._disk.publish(path, f"{BAD}/{path}")
        self._disk.remove(path)

    def _settle(
        self, session: str, name: str, part: str, sums: Sums, present: bool
    ) -> StoredSegment:
        stored = StoredSegment(f"{session}/{name}", sums.sha256)
        with self._disk.changing():  # an audit sees the file with its line
            self._archive.refuse_change(session)
            if not present:
                self._disk.publish(part, stored.path)
            self._disk.sync(stored.path)
            self._list(stored)
        self.check()  # the line of a disk that was unmounted meanwhile is below its mount point
        self._disk.remove(part)
        self._on_stored(session)
        return stored

    def _list(self, stored: StoredSegment) -> None:
        """Write record and line of a segment; the disk is `changing`."""
        self._replicas.add(stored, self._utc_s())
        self._manifest.add(stored)

    def _place(self, car: str, name: str, sums: Sums) -> tuple[str, bool]:
        """Return the folder for a segment, and whether the segment is there already.

        Another segment of that name may be there, or be gone from here and still at a remote,
        whose replica must not be replaced. A damaged file in the segment's place is set aside.
        """
        own, free = self._manifest.folders_of(car, name)[0], ""
        for session in (own, f"{own}.{sums.sha256[:8]}"):
            self._archive.refuse_change(session)
            wanted = StoredSegment(f"{session}/{name}", sums.sha256)
            size, listed = self._disk.size(wanted.path), self.listed(session)
            recorded = self._recorded_sums(wanted)
            if size is None:
                if self._take_back(wanted, sums):
                    return session, True
                if not free and recorded <= {sums.sha256}:
                    free = session
            elif size == sums.size and self._disk.sums(wanted.path) == sums:
                return session, True
            elif wanted in listed:
                self.set_aside(wanted)
                return session, False
            elif sums.sha256 in recorded and all(line.path != wanted.path for line in listed):
                self._clear_place(wanted)
                return session, False
        if not free:
            raise StationError(STORE_NAME(path=f"{own}/{name}"))
        return free, False

    def is_archived(self, car: str, name: str, sha256: str) -> bool:
        """Return True if an archive has this segment, and was verified recently: the car may
        forget it."""
        own = self._manifest.folders_of(car, name)[0]
        records = map(self.archived, (own, f"{own}.{sha256[:8]}"))
        return any(
            record
            and record.segments.get(name) == sha256
            and is_recent(record.verified_s, self._utc_s())
            for record in records
        )

    def _take_back(self, wanted: StoredSegment, sums: Sums) -> bool:
        """Publish a file that was set aside and is right by the car's own checksums: its line
        was wrong."""
        bad = f"{BAD}/{wanted.path}"
        if self._disk.size(bad) != sums.size or self._disk.sums(bad) != sums:
            return False
        with self._disk.changing():
            self._disk.publish(bad, wanted.path)
        return True

    def _recorded_sums(self, segment: StoredSegment) -> set[str]:
        """Return the checksums that records have for this name."""
        session, _, name = segment.path.rpartition("/")
        replicas = self._replicas.of(session).values()
        return {replica.segments[name] for replica in replicas if name in replica.segments}

    def _check(self, part: str, sums: Sums, read_back: bool = True) -> None:
        self._disk.write_at(part, 0, b"")  # an empty segment has no pieces
        self._disk.sync(part)
        size = self._disk.size(part)
        if size != sums.size or (read_back and self._disk.sums(part) != sums):
            raise StationError(STORE_BYTES(path=part))

    def _part(self, car: str, name: str, sums: Sums) -> str:
        assert SHA256.fullmatch(sums.sha256)  # plausible() has checked it
        return f"{INCOMING}/{car}/{name}.{sums.sha256}"

    # Removal

    def clear(self, paths: Iterable[str]) -> None:
        """Remove files in transfer, and the folders that this empties."""
        for path in paths:
            self._disk.remove(path)
            self._disk.prune(path.rpartition("/")[0])

    def set_aside(self, segment: StoredSegment) -> None:
        """Remove a bad file from the list, and keep it in .bad: it is fetched again. A file that
        another process has mended stays. Raises StoreGone."""
        self.check()
        with self._disk.changing():
            session = segment.path.rpartition("/")[0]
            lines = self._manifest.listing(session).lines
            sha256, _ = self._read(segment)
            if segment not in lines or sha256 == segment.sha256:
                return
            _, _, name = segment.path.rpartition("/")
            if self._replicas.evicted(session).get(name) != segment.sha256:
                self._replicas.add(
                    segment, self._utc_s()
                )  # keep it recorded, so that it is fetched
            self._put_aside(segment.path)
            self._manifest.replace(session, [line for line in lines if line != segment])

    def remove(self, session: str, to: str = "") -> list[StoredSegment]:
        """Move a session's segments to the folder `to`, for people; "" deletes them. They are
        not fetched again, and neither are those that were lost here."""
        with self._disk.changing():
            self._archive.refuse_change(session)
            segments, records = self.listed(session), self._replicas.of(session).values()
            lost = {sha256 for replica in records for sha256 in replica.segments.values()}
            removed = {segment.sha256 for segment in segments} | lost
            self._manifest.write_removed(self.removed() | removed)
            for segment in segments:
                if to:
                    with contextlib.suppress(FileNotFoundError):
                        self._disk.publish(segment.path, f"{to}/{segment.path}")
                self._disk.remove(segment.path)
            self._manifest.replace(session, [])
            self._replicas.forget(session)
            return segments

    def evict(self, session: str, allowed: Callable[[list[StoredSegment]], bool]) -> bool:
        """Delete a session here for a bound, if `allowed` still agrees. It is not fetched again
        while a remote has it. A damaged list stays."""
        self.check()
        with self._disk.changing():
            listing = self._manifest.listing(session)
            segments = listing.stored()
            if (
                self.archived(session)
                or listing.damaged
                or len(segments) < len(listing.lines)
                or not allowed(segments)
            ):
                return False
            for segment in segments:
                self._replicas.add(segment, self._utc_s())
            names = [segment.path.rpartition("/")[2] for segment in segments]
            self._replicas.move(session, names, EVICTED, self._utc_s())
            for segment in segments:
                self._disk.remove(segment.path)
            self._manifest.replace(session, [])
            return True

    def want_back(self, session: str, segments: Iterable[str]) -> None:
        """Mark evicted segments as wanted again: their remote has lost them."""
        with self._disk.changing():
            self._replicas.move(session, segments, HERE, self._utc_s())

    def want_again(self, sha256: set[str]) -> None:
        """Allow segments that people removed to be stored again."""
        with self._disk.changing():
            removed = self.removed()
            if removed & sha256:
                self._manifest.write_removed(removed - sha256)

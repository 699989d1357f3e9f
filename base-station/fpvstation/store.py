"""The store: recordings of many cars in a folder that `sha256sum -c` can judge.

    .fpvstation.json                         which store this is
    .incoming/CAR/NAME.SHA256                on its way; its own bytes say what is good
    .removed                                 checksums of what people removed
    CAR/2026-11-21/SESSION/NAME.mcap         published whole, synced, never replaced
    CAR/2026-11-21/SESSION/SHA256SUMS        its line comes after it
    .copies/                                 where else it is: copies.py
    .bad/, .trash/2026-11-22/                what bent, and what people removed

There is no journal: what was fetched is read again and compared, piece by piece. A
journal can be wrong about a disk that lost power; the bytes cannot.
"""

import contextlib
import errno
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fpvcar.recordings import names
from fpvcar.recordings.sums import start_of
from fpvcar.wire.station import SHA256, Sums
from fpvstation.disk import Disk
from fpvstation.identity import Identity, StoreError

REMOVED = ".removed"
INCOMING, SUMS_FILE, BAD, TRASH = ".incoming", "SHA256SUMS", ".bad", ".trash"
LINE = re.compile(r"([0-9a-f]{64})  ([^/\n]+)")
FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,40}")
UNREADABLE = (errno.EIO, errno.EUCLEAN, errno.EBADMSG)
"""What a disk, or its file system, says of bytes that it has lost."""
log = logging.getLogger("fpvstation")


class Stored(NamedTuple):
    """A segment in the store: where, and what it has to be."""

    path: str
    sha256: str


def trash_of(now_s: float) -> str:
    """The folder in the trash for what goes now, UTC: chores.py empties it by that."""
    return f"{TRASH}/{time.strftime('%Y-%m-%d', time.gmtime(now_s))}"


class Store:
    """One store. Every call may block, and raise OSError."""

    def __init__(
        self, disk: Disk, told: Callable[[str], None] = lambda session: None
    ) -> None:
        """`told` hears of each session that got a segment, in whose thread it may."""
        self._disk, self._told = disk, told
        self._identity = Identity(disk)

    def open(self, known: str) -> str:
        """As Identity.open."""
        return self._identity.open(known)

    @property
    def id(self) -> str:
        """Which store this is, once it is open."""
        return self._identity.id

    def check(self) -> None:
        """As Identity.check."""
        self._identity.check()

    # --- what is there ---

    def find(self, car: str, name: str, size: int) -> Stored | None:
        """A segment of that name and size that is here, and meant to be."""
        there = (
            one
            for session in self._sessions(car, name)
            for one in self.listed(session) if one.path.endswith(f"/{name}")
            and self._disk.size(one.path) == size
        )  # fmt: skip
        return next(there, None)

    def removed(self) -> set[str]:
        """Checksums of what people removed: nobody fetches it again."""
        try:
            return set(self._disk.read(REMOVED).decode().split())
        except FileNotFoundError:
            return set()

    def sessions(self) -> Iterator[str]:
        """The folder of each session, oldest first within a car."""
        for car in self._folders(""):
            for day in self._folders(car):
                yield from self._folders(day)

    def segments(self) -> Iterator[Stored]:
        """Every segment that is listed."""
        for session in self.sessions():
            yield from self.listed(session)

    def judge(self, one: Stored) -> str:
        """Reads a segment again; "" if it is right, else what is wrong with it, and
        it is set aside. Raises StoreGone, and OSError of what may be right."""
        self.check()
        fault = self._fault(one)
        if fault:
            self.set_aside(one)
        return fault

    def sums(self, path: str) -> Sums:
        """Of a file of this store's disk."""
        return self._disk.sums(path)

    def extent(self, session: str) -> tuple[int, float]:
        """Bytes of a session's segments, and when its list changed last, UTC; 0 where
        there is none."""
        size = sum(self._disk.size(one.path) or 0 for one in self.listed(session))
        return size, self._disk.changed_s(f"{session}/{SUMS_FILE}")

    def _fault(self, one: Stored) -> str:
        try:
            found = self._disk.sums(one.path).sha256
        except FileNotFoundError:
            return "it is gone"
        except OSError as fault:
            if fault.errno not in UNREADABLE:
                raise
            return f"it cannot be read: {fault.strerror}"
        if found == one.sha256:
            return ""
        return f"it is {found[:16]}..., expected {one.sha256[:16]}..."

    def _folders(self, path: str) -> list[str]:
        inside = self._disk.names(path)
        visible = [one for one in inside if not one.startswith((".", "lost+found"))]
        return [f"{path}/{one}".lstrip("/") for one in visible]

    def _sessions(self, car: str, name: str) -> list[str]:
        """Folders in which a segment may be. A car whose clock stood wrong may give a
        name twice: then the second has a folder with its checksum behind the name."""
        found = names.parse(name)
        if found is None or not FOLDER.fullmatch(car):
            raise StoreError(f"{name[:80]!r} of {car[:80]!r} is no segment's name")
        began = found.began
        day = f"{car}/{began[:4]}-{began[4:6]}-{began[6:8]}"
        own = f"{day}/{found.recording}"
        later = [
            f"{day}/{one}" for one in self._disk.names(day)
            if one.startswith(f"{found.recording}.")
        ]  # fmt: skip
        return [own, *later]

    def listed(self, session: str) -> list[Stored]:
        """What a session has to have."""
        try:
            text = self._disk.read(f"{session}/{SUMS_FILE}").decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = map(LINE.fullmatch, text.splitlines())
        return [Stored(f"{session}/{one[2]}", one[1]) for one in found if one]

    # --- how it comes ---

    def missing(self, car: str, name: str, sums: Sums) -> list[int]:
        """Which pieces of a segment are not here yet, or are not good."""
        if self._place(car, name, sums)[1]:
            return []
        try:
            here = self._disk.sums(self._part(car, name, sums)).pieces
        except FileNotFoundError:
            here = []
        return [
            number for number, one in enumerate(sums.pieces)
            if number >= len(here) or here[number] != one
        ]  # fmt: skip

    def write(self, car: str, name: str, sums: Sums, number: int, data: bytes) -> None:
        """A piece whose checksum is right has come. Raises StoreGone."""
        self.check()
        self._disk.write_at(self._part(car, name, sums), start_of(number), data)

    def publish(self, car: str, name: str, sums: Sums) -> Stored:
        """Gives a segment of which all came its place and its line, for good.

        One that has them is only synced: a kill may have come before that. Raises
        StoreError if the disk does not give back what was written, or is gone.
        """
        self.check()
        part = self._part(car, name, sums)
        session, there = self._place(car, name, sums)
        return self._settle(session, name, part, sums, there)

    def adopt(self, session: str, name: str, part: str, sums: Sums) -> Stored:
        """Takes a file of this store's disk, whose sums somebody judged, for a segment
        of a session. Raises StoreError, as `publish` does."""
        self.check()
        path = f"{session}/{name}"
        there = self._disk.size(path) is not None
        if there and self._disk.sums(path) != sums:
            self._make_way(Stored(path, sums.sha256))
            there = False
        return self._settle(session, name, part, sums, there)

    def _make_way(self, one: Stored) -> None:
        """For what should stand here. What has no line has no receipt either."""
        with self._disk.changing():
            lines = {it.sha256 for it in self.listed(one.path.rpartition("/")[0])
                     if it.path == one.path}  # fmt: skip
            if lines - {one.sha256}:
                raise StoreError(f"{one.path}: another one has this name; look at it")
            self._put_aside(one.path)

    def _put_aside(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            self._disk.publish(path, f"{BAD}/{path}")
        self._disk.remove(path)

    def _settle(
        self, session: str, name: str, part: str, sums: Sums, there: bool
    ) -> Stored:
        stored = Stored(f"{session}/{name}", sums.sha256)
        if not there:
            self._check(part, sums)
            self._disk.publish(part, stored.path)
        self._disk.sync(stored.path)
        self._list(session, stored)
        self._disk.remove(part)
        self._told(session)
        return stored

    def _place(self, car: str, name: str, sums: Sums) -> tuple[str, bool]:
        """The folder for a segment, and is it there already?

        Another one of that name may be there, too. What should be this one and is not
        any more is set aside.
        """
        own = self._sessions(car, name)[0]
        for session in (own, f"{own}.{sums.sha256[:8]}"):
            wanted = Stored(f"{session}/{name}", sums.sha256)
            size = self._disk.size(wanted.path)
            if size is None:
                return session, False
            if size == sums.size and self._disk.sums(wanted.path) == sums:
                return session, True
            if wanted in self.listed(session):
                self.set_aside(wanted)
                return session, False
        raise StoreError(f"{own}/{name}: two others have this name; look at them")

    def _check(self, part: str, sums: Sums) -> None:
        self._disk.write_at(part, 0, b"")  # an empty segment has no pieces
        self._disk.sync(part)
        if self._disk.sums(part) != sums:
            raise StoreError(f"{part}: the disk does not give back what was written")

    def _list(self, session: str, new: Stored) -> None:
        with self._disk.changing():
            there = self.listed(session)
            if new in there:
                self._disk.sync(f"{session}/{SUMS_FILE}")
                return
            others = [it for it in there if it.path != new.path]
            self._write_list(session, [*others, new])
        log.info("%s stored", new.path.rpartition("/")[2])

    def _write_list(self, session: str, stored: list[Stored]) -> None:
        lines = [
            f"{one.sha256}  {one.path.rpartition('/')[2]}\n" for one in sorted(stored)
        ]
        self._disk.replace(f"{session}/{SUMS_FILE}", "".join(lines).encode())
        if not lines:  # `sha256sum -c` takes an empty list for a fault
            self._disk.remove(f"{session}/{SUMS_FILE}")
            self._disk.prune(session)

    def _part(self, car: str, name: str, sums: Sums) -> str:
        assert SHA256.fullmatch(sums.sha256)  # plausible() looked
        return f"{INCOMING}/{car}/{name}.{sums.sha256}"

    # --- what goes ---

    def clear(self, paths: Iterable[str]) -> None:
        """Removes files that are on their way, and the folders that this empties."""
        for path in paths:
            self._disk.remove(path)
            self._disk.prune(path.rpartition("/")[0])

    def set_aside(self, one: Stored) -> None:
        """Takes a bad file off the list, and keeps it in .bad: it is fetched again.
        What somebody else has mended meanwhile stays. Raises StoreGone."""
        self.check()
        with self._disk.changing():
            session = one.path.rpartition("/")[0]
            there = self.listed(session)
            if one not in there or not self._fault(one):
                return
            self._put_aside(one.path)
            self._write_list(session, [it for it in there if it != one])

    def remove(self, session: str, to: str = "") -> list[Stored]:
        """Moves a session's segments to the folder `to`; "" deletes them. They are not
        fetched again."""
        with self._disk.changing():
            gone = self.listed(session)
            self._say_removed(self.removed() | {one.sha256 for one in gone})
            for one in gone:
                if to:
                    with contextlib.suppress(FileNotFoundError):
                        self._disk.publish(one.path, f"{to}/{one.path}")
                self._disk.remove(one.path)
            self._write_list(session, [])
            return gone

    def want_again(self, sha256: set[str]) -> None:
        """What people removed may be here again."""
        with self._disk.changing():
            removed = self.removed()
            if removed & sha256:
                self._say_removed(removed - sha256)

    def _say_removed(self, sha256: set[str]) -> None:
        text = "".join(f"{one}\n" for one in sorted(sha256))
        self._disk.replace(REMOVED, text.encode())

"""The store: recordings of many cars in a folder that `sha256sum -c` can judge.

    .fpvstation.json                         which store this is
    .incoming/CAR/NAME.SHA256                on its way; its own bytes say what is good
    .removed                                 checksums of what people removed
    CAR/2026-11-21/SESSION/NAME.mcap         published whole, synced, never replaced
    CAR/2026-11-21/SESSION/SHA256SUMS        its line comes after it

There is no journal: what was fetched is read again and compared, piece by piece. A
journal can be wrong about a disk that lost power; the bytes cannot.
"""

import contextlib
import logging
import re
import secrets
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from fpvcar.recordings import names
from fpvcar.recordings.sums import start_of
from fpvcar.wire.station import SHA256, Sums
from fpvstation.disk import Disk

MARKER, REMOVED = ".fpvstation.json", ".removed"
INCOMING, SUMS_FILE, BAD = ".incoming", "SHA256SUMS", ".bad"
LINE = re.compile(r"([0-9a-f]{64})  ([^/\n]+)")
FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,40}")
FORMAT = 1
log = logging.getLogger("fpvstation")


class StoreError(Exception):
    """Says why a store cannot be used, and what to do."""


class StoreGone(StoreError):
    """Its disk is not here any more: no segment can be stored."""


class Marker(msgspec.Struct):
    """What a store says of itself."""

    format: int
    id: str


class Stored(NamedTuple):
    """A segment in the store: where, and what it has to be."""

    path: str
    sha256: str


class Store:
    """One store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._id = ""

    def open(self, known: str) -> str:
        """Returns the store's id; `known` is the one that it had before, "" for none.

        Raises StoreError: a disk that is not mounted is no empty store.
        """
        try:
            marker = self._marker()
        except FileNotFoundError:
            self._id = self._begin(known)
            return self._id
        if marker.format != FORMAT:
            raise StoreError(
                f"{MARKER}: format {marker.format}, expected {FORMAT}: update "
                "fpvstation"
            )
        if known and marker.id != known:
            raise StoreError(
                f"this is the store {marker.id}, expected {known}: mount the right "
                "disk, or say --store-changed"
            )
        self._disk.sync(MARKER)  # a kill may have come before that
        self._id = marker.id
        return marker.id

    def check(self) -> None:
        """Raises StoreGone if the disk of this store was unmounted meanwhile: what is
        written then fills the folder below it, and is not stored."""
        try:
            found = self._marker().id
        except FileNotFoundError:
            found = ""
        if found != self._id:
            raise StoreGone(
                f"{found or 'no store'} is here, expected the store {self._id}: mount "
                "its disk"
            )

    def _marker(self) -> Marker:
        try:
            return msgspec.json.decode(self._disk.read(MARKER), type=Marker)
        except (ValueError, msgspec.DecodeError, RecursionError) as fault:
            raise StoreError(f"{MARKER}: {fault}; is this folder a store?") from None

    def _begin(self, known: str) -> str:
        if known:
            raise StoreError(
                f"no {MARKER} here, expected the store {known}: mount its disk, or say "
                "--store-changed"
            )
        own = ("lost+found", ".lock", ".changing")
        strangers = [one for one in self._disk.names("") if one not in own]
        if strangers:
            raise StoreError(
                f"{strangers[0]} is here and no {MARKER}: give the store a folder of "
                "its own"
            )
        made = Marker(FORMAT, secrets.token_hex(8))
        self._disk.replace(MARKER, msgspec.json.encode(made))
        return made.id

    # --- what is there ---

    def has(self, car: str, name: str, size: int) -> bool:
        """Is a segment of that name and size here, and meant to be?"""
        return any(
            self._disk.size(one.path) == size
            for session in self._sessions(car, name)
            for one in self._listed(session) if one.path.endswith(f"/{name}")
        )  # fmt: skip

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

    def listed(self, session: str) -> list[Stored]:
        """The segments of one session."""
        return self._listed(session)

    def segments(self) -> Iterator[Stored]:
        """Every segment that is listed."""
        for session in self.sessions():
            yield from self._listed(session)

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

    def _listed(self, session: str) -> list[Stored]:
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

    def publish(self, car: str, name: str, sums: Sums) -> None:
        """Gives a segment of which all came its place and its line, for good.

        One that has them is only synced: a kill may have come before that. Raises
        StoreError if the disk does not give back what was written, or is gone.
        """
        self.check()
        part = self._part(car, name, sums)
        session, there = self._place(car, name, sums)
        path = f"{session}/{name}"
        if not there:
            self._check(part, sums)
            self._disk.publish(part, path)
        self._disk.sync(path)
        self._list(session, Stored(path, sums.sha256))
        self._disk.remove(part)

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
            if wanted in self._listed(session):
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
            there = self._listed(session)
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

    def _part(self, car: str, name: str, sums: Sums) -> str:
        assert SHA256.fullmatch(sums.sha256)  # plausible() looked
        return f"{INCOMING}/{car}/{name}.{sums.sha256}"

    # --- what goes ---

    def set_aside(self, one: Stored) -> None:
        """Takes a bad file off the list, and keeps it in .bad: it is fetched again."""
        session = one.path.rpartition("/")[0]
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            self._disk.publish(one.path, f"{BAD}/{one.path}")
        self._disk.remove(one.path)
        with self._disk.changing():
            others = [it for it in self._listed(session) if it != one]
            self._write_list(session, others)

    def remove(self, session: str, to: str) -> list[Stored]:
        """Moves a session's segments to the folder `to`; they are not fetched again."""
        with self._disk.changing():
            return self._remove(session, to)

    def _remove(self, session: str, to: str) -> list[Stored]:
        gone = self._listed(session)
        said = sorted(self.removed() | {one.sha256 for one in gone})
        self._disk.replace(REMOVED, "".join(f"{one}\n" for one in said).encode())
        for one in gone:
            with contextlib.suppress(FileNotFoundError):
                self._disk.publish(one.path, f"{to}/{one.path}")
        self._write_list(session, [])
        return gone

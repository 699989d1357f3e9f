"""Archive of a store in a folder of another disk.

.fpvstation.json                 marker of the store
.incoming/SESSION                in transfer
CAR/DAY/SESSION/...              segments and SHA256SUMS, published as a whole
.bad/                            folders that a session did not match
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from fpvcar.recordings.library import checksums
from fpvcar.runtime import files
from fpvstation.errors import StationError
from fpvstation.mirror.replicate import CopyProgress, OfficeFault, OnProgress, quiet
from fpvstation.store.audit import BAD
from fpvstation.store.identity import MARKER
from fpvstation.store.store import INCOMING
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, text_of

OWN = re.compile(r"lost\+found|\..*")
"""Names that an empty archive may have: those of the file system, and temporary files."""


class FolderArchive:
    """Archive in a folder. Raises StationError if it is inside the store, or around it."""

    def __init__(self, place: str, root: Path) -> None:
        """Set the folder `place`. `root`: of this store."""
        self.place, self._root, self._folder = place, root, Path(place)
        folder, store = self._folder.resolve(), root.resolve()
        if folder.is_relative_to(store) or store.is_relative_to(folder):
            raise StationError(
                f'archive "{place}" refused: it and the store {root} are not two separate '
                "folders: name a folder of another disk"
            )

    async def claim(self, store: str, known: bool) -> None:
        """Compare the store's marker with that of the archive; create it in an empty folder.
        `known`: sessions are archived there. Raises OfficeFault, OSError."""
        marker, content = self._folder / MARKER, (self._root / MARKER).read_bytes()
        try:
            present = marker.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            foreign = [name for name in self._names() if not OWN.fullmatch(name)]
            if known or foreign or not self._folder.is_dir():
                raise OfficeFault(
                    f"{self.place}: {MARKER} is missing there: mount its disk"
                    + ("" if known else ", or name an empty folder")
                ) from None
            await asyncio.to_thread(files.write_whole, marker, [content])
            return
        if present != content:
            raise OfficeFault(
                f"{self.place} has the sessions of another store than {store}: "
                "give each store its own folder"
            )

    def _names(self) -> list[str]:
        with contextlib.suppress(OSError):
            return os.listdir(self._folder)
        return []

    def link(self, session: str) -> str:
        """Return the relative link that stays behind for a session."""
        return os.path.relpath(
            self._folder.resolve() / session, (self._root / session).parent.resolve()
        )

    async def put(
        self, session: str, listed: list[StoredSegment], on_progress: OnProgress = quiet
    ) -> None:
        """Copy a session, verify the copy, and publish it. Raises OfficeFault, OSError."""
        if not await self.check(session, listed):
            return  # a killed run has done so
        await asyncio.to_thread(self._set_aside, session)
        incoming = self._folder / INCOMING / session
        await asyncio.to_thread(shutil.rmtree, incoming, True)
        try:
            await asyncio.to_thread(_make, incoming)
            await self._copy(session, listed, incoming, on_progress)
            for segment in listed:
                if not await asyncio.to_thread(_is_right, incoming, segment):
                    raise OfficeFault(f"{self.place}: {segment.path}: the disk returns other bytes")
            await asyncio.to_thread(self._publish, session, incoming, text_of(listed))
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, incoming, True)
            raise

    async def _copy(
        self, session: str, listed: list[StoredSegment], into: Path, on_progress: OnProgress
    ) -> None:
        sizes = [(self._root / segment.path).stat().st_size for segment in listed]
        done = 0
        for segment, size in zip(listed, sizes, strict=True):
            source = self._root / segment.path
            await asyncio.to_thread(_copy_file, source, into / source.name)
            done += size
            on_progress(CopyProgress(done, done, sum(sizes)))

    def _publish(self, session: str, incoming: Path, sums: bytes) -> None:
        files.write_whole(incoming / SUMS_FILE, [sums])
        source, copy = self._root / session / SUMS_FILE, incoming / SUMS_FILE
        shutil.copystat(source, copy)
        _make((self._folder / session).parent)
        files.publish(incoming, self._folder / session)

    def _set_aside(self, session: str) -> None:
        folder = self._folder / session
        if os.path.lexists(folder):
            bad = self._folder / BAD / f"{session}.{time.time_ns()}"
            _make(bad.parent)
            files.publish(folder, bad)

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        """Read the copy, and return the names of bad or absent segments."""
        folder, bad = self._folder / session, []
        for segment in listed:
            if not await asyncio.to_thread(_is_right, folder, segment):
                bad.append(segment.path.rpartition("/")[2])
        return bad

    async def fetch(self, session: str, on_progress: OnProgress = quiet) -> Mapping[str, str]:
        """Copy a session to this store's disk; return the local path of each file."""
        key = hashlib.sha256(self.place.encode()).hexdigest()[:8]
        into, source = f"{INCOMING}/archive/{key}/{session}", self._folder / session
        await asyncio.to_thread(_make, self._root / into)
        names = [entry.name for entry in os.scandir(source)] if source.is_dir() else []
        total, done = sum((source / name).stat().st_size for name in names), 0
        for name in names:
            await asyncio.to_thread(_copy_file, source / name, self._root / into / name)
            done += (source / name).stat().st_size
            on_progress(CopyProgress(done, done, total))
        return {name: f"{into}/{name}" for name in names}

    async def remove(self, session: str, listed: list[StoredSegment]) -> None:
        """Delete the copy of a session that is in the store again; keep one that is not right."""
        folder, gone = self._folder / session, self._folder / INCOMING / session
        if folder.exists() and await self.check(session, listed):
            await asyncio.to_thread(self._set_aside, session)
        elif folder.exists():
            await asyncio.to_thread(shutil.rmtree, gone, True)
            await asyncio.to_thread(_make, gone.parent)
            await asyncio.to_thread(files.publish, folder, gone)
        await asyncio.to_thread(shutil.rmtree, gone, True)


def _make(folder: Path) -> None:
    """Create a folder and those above it, each synced."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        files.sync(folder.parent)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file with its time; sync it, and drop it from the page cache."""
    shutil.copy2(source, target)
    with target.open("rb") as copy:
        os.fsync(copy.fileno())
        os.posix_fadvise(copy.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _is_right(folder: Path, segment: StoredSegment) -> bool:
    try:
        sums = checksums.read(folder / segment.path.rpartition("/")[2])
    except (FileNotFoundError, NotADirectoryError):
        return False
    return sums.sha256 == segment.sha256

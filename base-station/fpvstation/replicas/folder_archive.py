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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from fpvcar.runtime import files
from fpvstation.errors import StationError
from fpvstation.replicas.remote import (
    BAD_DISK,
    OTHER_STORE,
    UNMOUNTED,
    UNMOUNTED_NEW,
    CopyProgress,
    OnFile,
    OnProgress,
    PlaceFault,
    damaged_here,
    no_room,
    quiet,
)
from fpvstation.store.audit import BAD
from fpvstation.store.disk import Folder, make_folder, read_back, sha256_of
from fpvstation.store.identity import FULL, MARKER
from fpvstation.store.store import INCOMING, UNREADABLE
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, text_of

OWN = re.compile(r"lost\+found|\..*")
"""Names that an empty archive may have: those of the file system, and temporary files."""
AT_ONCE = 3
"""Copies that are synced and read back while the next one is written."""


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
        `known`: sessions are archived there. Raises PlaceFault, OSError."""
        marker, content = self._folder / MARKER, (self._root / MARKER).read_bytes()
        try:
            present = marker.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            foreign = [name for name in self._names() if not OWN.fullmatch(name)]
            if known or foreign or not self._folder.is_dir():
                unmounted = UNMOUNTED if known else UNMOUNTED_NEW
                raise PlaceFault(unmounted(place=self.place, marker=MARKER)) from None
            await asyncio.to_thread(files.write_whole, marker, [content])
            return
        if present != content:
            raise PlaceFault(OTHER_STORE(place=self.place, store=store))

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
        """Copy a session, verify the copy, and publish it. Raises PlaceFault, OSError."""
        with self._held() as there:
            if not await _bad_in(there / session, listed):
                return  # a killed run has done so
            await asyncio.to_thread(_set_aside, there, session)
            incoming = there / INCOMING / session
            await asyncio.to_thread(shutil.rmtree, incoming, True)
            try:
                await asyncio.to_thread(make_folder, incoming)
                await self._copy(listed, incoming, on_progress)
                await asyncio.to_thread(self._publish, session, there, text_of(listed))
            except BaseException as fault:
                await asyncio.to_thread(shutil.rmtree, incoming, True)
                if isinstance(fault, OSError) and fault.errno in FULL:
                    size = sum((self._root / segment.path).stat().st_size for segment in listed)
                    free = shutil.disk_usage(there).free
                    raise PlaceFault(no_room(self.place, session, size, free)) from None
                raise

    @contextlib.contextmanager
    def _held(self) -> Iterator[Path]:
        """Yield a path of the claimed folder that stays on its disk: after a forced unmount the
        usual path leads below the mount point. Raises PlaceFault, OSError."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            held = Path(f"/proc/self/fd/{folder}")
            if not (held / MARKER).exists():
                raise PlaceFault(UNMOUNTED(place=self.place, marker=MARKER))
            yield held
        finally:
            os.close(folder)

    async def _copy(self, listed: list[StoredSegment], into: Path, on_progress: OnProgress) -> None:
        segments = {segment.path.rpartition("/")[2]: segment for segment in listed}

        def compare(copy: Path) -> None:
            segment = segments[copy.name]
            if read_back(copy) != segment.sha256:
                if not _is_right((self._root / segment.path).parent, segment):
                    raise damaged_here(segment)
                raise PlaceFault(BAD_DISK(place=self.place, path=segment.path))

        sources = [self._root / segment.path for segment in listed]
        await _copy_files(sources, into, compare, on_progress)

    def _publish(self, session: str, there: Path, sums: bytes) -> None:
        incoming = there / INCOMING / session
        files.write_whole(incoming / SUMS_FILE, [sums])
        source, copy = self._root / session / SUMS_FILE, incoming / SUMS_FILE
        shutil.copystat(source, copy)
        make_folder((there / session).parent)
        files.publish(incoming, there / session)

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        """Read the copy, and return the names of bad or absent segments."""
        with self._held() as there:
            return await _bad_in(there / session, listed)

    async def sums(self, session: str) -> bytes:
        """Return the list of a session there; b"" if it is missing or unreadable."""
        with self._held() as there, _unreadable():
            return (there / session / SUMS_FILE).read_bytes()
        return b""

    async def fetch_segments(
        self, session: str, listed: list[StoredSegment], on_progress: OnProgress, on_file: OnFile
    ) -> Mapping[str, str]:
        """Copy the segments that this disk can read; return the local path of each."""
        key = hashlib.sha256(self.place.encode()).hexdigest()[:8]
        into = self._root / f"{INCOMING}/archive/{key}/{session}"
        with self._held() as there:
            await asyncio.to_thread(make_folder, into)
            sources = [there / segment.path for segment in listed]
            paths = {path.name: str((into / path.name).relative_to(self._root)) for path in sources}
            copied = await _copy_files(
                sources, into, lambda copy: on_file(paths[copy.name]), on_progress, _unreadable
            )
        if not copied:
            Folder(self._root).prune(f"{INCOMING}/archive/{key}/{session}")
        return {name: paths[name] for name in copied}

    async def remove(self, session: str, names: list[str], last: bool) -> None:
        """Delete segments that are right in the store again. The folder goes with its last file;
        foreign files stay."""
        with self._held() as there:
            await asyncio.to_thread(_remove, there, session, {*names, *([SUMS_FILE] * last)})


def _remove(there: Path, session: str, names: set[str]) -> None:
    folder, gone = there / session, there / INCOMING / session
    if folder.is_dir():
        present = {name for name in os.listdir(folder) if not files.TEMPORARY.fullmatch(name)}
        if present <= names:
            shutil.rmtree(gone, True)
            make_folder(gone.parent)
            files.publish(folder, gone)
        else:
            for name in present & names:
                (folder / name).unlink()
            files.sync(folder)
    shutil.rmtree(gone, True)


@contextlib.contextmanager
def _unreadable() -> Iterator[None]:
    """Suppress the errors for a file that is missing, or that its disk has lost."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as fault:
        if fault.errno not in UNREADABLE:
            raise


async def _bad_in(folder: Path, listed: list[StoredSegment]) -> list[str]:
    bad = []
    for segment in listed:
        if not await asyncio.to_thread(_is_right, folder, segment):
            bad.append(segment.path.rpartition("/")[2])
    return bad


def _set_aside(there: Path, session: str) -> None:
    folder = there / session
    if os.path.lexists(folder):
        bad = there / BAD / f"{session}.{time.time_ns()}"
        make_folder(bad.parent)
        files.publish(folder, bad)


async def _copy_files(
    sources: Sequence[Path],
    into: Path,
    on_copy: Callable[[Path], None],
    on_progress: OnProgress,
    suppressed: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> list[str]:
    """Copy files with their times; return the copied names. `on_copy` gets each copy in a thread,
    while the next ones are copied. The first fault that is not `suppressed` ends the copy."""
    done, total, copied = 0, 0, list[str]()
    for source in sources:
        with suppressed():
            total += source.stat().st_size
    running = set[asyncio.Task[None]]()
    try:
        for source in sources:
            copy = into / source.name
            with suppressed():
                await asyncio.to_thread(shutil.copy2, source, copy)
                copied.append(source.name)
            if source.name not in copied:
                copy.unlink(missing_ok=True)
                continue
            running.add(asyncio.create_task(asyncio.to_thread(on_copy, copy)))
            if len(running) > AT_ONCE:
                ended, running = await asyncio.wait(running, return_when="FIRST_COMPLETED")
                for task in ended:
                    task.result()
            done += copy.stat().st_size
            on_progress(CopyProgress(done, done, total))
        await asyncio.gather(*running)
    finally:
        await asyncio.gather(*running, return_exceptions=True)
    return copied


def _is_right(folder: Path, segment: StoredSegment) -> bool:
    with _unreadable():
        return sha256_of(folder / segment.path.rpartition("/")[2]) == segment.sha256
    return False

"""The folder of a store as its parts use it; tests have one that fails.

Every call may block, and raise OSError. A path is relative, with "/" between names.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from fpvcar.recordings.library import checksums
from fpvcar.runtime import files
from fpvcar.wire.station import Sums

CHANGING = ".changing"


class Disk(Protocol):
    """A folder, and what is done there."""

    def read(self, path: str) -> bytes:
        """What is in a small file. Raises FileNotFoundError."""

    def size(self, path: str) -> int | None:
        """Of a file, in bytes; None if there is none."""

    def changed_s(self, path: str) -> float:
        """When a file was written last, UTC; 0 if there is none."""

    def sums(self, path: str) -> Sums:
        """Reads a whole file. Raises FileNotFoundError."""

    def write_at(self, path: str, at: int, data: bytes) -> None:
        """Writes a part of a file, which is made if it is absent."""

    def sync(self, path: str) -> None:
        """Waits until a file stays, whatever the power does: its bytes, its name, and
        the folders above it."""

    def publish(self, old: str, new: str) -> None:
        """Gives a synced file another name, and makes the folders above it. Raises
        FileExistsError."""

    def replace(self, path: str, data: bytes) -> None:
        """A small file is as given, whole or not at all."""

    def remove(self, path: str) -> None:
        """Removes a file; absent is fine."""

    def prune(self, path: str) -> None:
        """Removes a folder, and those above it, as far as they are empty."""

    def names(self, path: str) -> list[str]:
        """What is in a folder, in order; nothing if there is none."""

    def folders(self, path: str) -> list[str]:
        """Return the names of the folders in a folder, sorted; [] if it is missing."""

    def changing(self) -> AbstractContextManager[None]:
        """Nobody else changes a list meanwhile: not another process either."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made if it is missing; wait for another thread
    or process that holds it. Raises OSError."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class Folder:
    """A Disk that is a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes:
        """Reads it whole."""
        return (self.root / path).read_bytes()

    def size(self, path: str) -> int | None:
        """Follows no link."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return (self.root / path).lstat().st_size
        return None

    def changed_s(self, path: str) -> float:
        """By the file system."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return (self.root / path).lstat().st_mtime
        return 0.0

    def sums(self, path: str) -> Sums:
        """Reads it in pieces."""
        return checksums.read(self.root / path)

    def write_at(self, path: str, at: int, data: bytes) -> None:
        """Leaves a hole where nothing was written yet."""
        self._make(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self.root / path, flags, 0o644)
        with os.fdopen(file, "wb") as out:
            out.seek(at)
            out.write(data)

    def sync(self, path: str) -> None:
        """A kill may have come between a name and its sync: so all of them."""
        one = self.root / path
        for each in (one, *list(one.parents)[: len(Path(path).parts)]):
            try:
                files.sync(each)
            except OSError as fault:
                fault.filename = str(each)  # fsync(2) knows none
                raise

    def publish(self, old: str, new: str) -> None:
        """Replaces nothing."""
        self._make(new)
        files.publish(self.root / old, self.root / new)

    def replace(self, path: str, data: bytes) -> None:
        """Others may read it."""
        self._make(path)
        files.write_whole(self.root / path, [data])
        with contextlib.suppress(PermissionError):  # FAT has no modes
            (self.root / path).chmod(0o644)

    def remove(self, path: str) -> None:
        """Not synced: what comes back goes again."""
        (self.root / path).unlink(missing_ok=True)

    def prune(self, path: str) -> None:
        """Not synced: what comes back is empty."""
        folder = self.root / path
        with contextlib.suppress(OSError):
            while folder != self.root:
                folder.rmdir()
                folder = folder.parent

    def names(self, path: str) -> list[str]:
        """Of files and folders."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return sorted(os.listdir(self.root / path))
        return []

    def folders(self, path: str) -> list[str]:
        """Follow symbolic links, as an archived session may be one."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            with os.scandir(self.root / path) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        return []

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Wait for another thread or process that changes a list."""
        with locked(self.root / CHANGING):
            yield

    def _make(self, path: str) -> None:
        """Makes the folders above a path, each synced into the one above it."""
        folder = (self.root / path).parent
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            files.sync(one.parent)

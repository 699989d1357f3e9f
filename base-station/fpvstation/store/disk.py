"""File access of a store; tests replace it with a failing disk.

Every call may block, and raise OSError. A path is relative, with "/" between names.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from fpvcar.library import checksums
from fpvcar.runtime import files
from fpvcar.wire.station import Sums

CHANGING = ".changing"


class Disk(Protocol):
    """Folder with the operations that a store needs."""

    def read(self, path: str) -> bytes:
        """Return the content of a small file. Raises FileNotFoundError."""

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes; None if it is missing."""

    def changed_s(self, path: str) -> float:
        """Return the time of a file's last change, UTC; 0 if it is missing."""

    def sums(self, path: str) -> Sums:
        """Read a whole file; return its checksums. Raises FileNotFoundError."""

    def sha256(self, path: str) -> str:
        """Read a whole file; return its checksum: half the work of `sums`. Raises
        FileNotFoundError."""

    def write_at(self, path: str, at: int, data: bytes) -> None:
        """Write a part of a file; create an absent file."""

    def rewrite(self, path: str) -> None:
        """Write the bytes of a file again, so that the next sync writes them: after a failed sync
        Linux takes them for written (fsync(2)). Raises FileNotFoundError."""

    def sync(self, path: str) -> None:
        """Wait until a file survives a loss of power: its bytes, its name, and the folders above
        it."""

    def publish(self, old: str, new: str) -> None:
        """Rename a synced file, and create the folders above the new name. Raises
        FileExistsError."""

    def replace(self, path: str, data: bytes) -> None:
        """Replace a small file atomically."""

    def remove(self, path: str) -> None:
        """Remove a file; absent is fine."""

    def prune(self, path: str) -> None:
        """Remove an empty folder, and the folders above it that become empty."""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; [] if it is missing."""

    def folders(self, path: str) -> list[str]:
        """Return the names of the folders in a folder, sorted; [] if it is missing."""

    def changing(self) -> AbstractContextManager[None]:
        """Hold the lock on changes of the lists, against other threads and processes."""


@contextlib.contextmanager
def locked(path: Path, busy: Exception | None = None) -> Iterator[None]:
    """Hold the lock of a file, which is created if missing. If another thread or process holds it,
    wait, or raise `busy`. Raises OSError."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            assert busy
            raise busy from None
        yield
    finally:
        os.close(lock)


class Folder:
    """Disk in a directory of this computer."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def size(self, path: str) -> int | None:
        """Return the size of a file; symbolic links are not followed."""
        with _absent():
            return (self.root / path).lstat().st_size
        return None

    def changed_s(self, path: str) -> float:
        """Return the file system's modification time."""
        with _absent():
            return (self.root / path).lstat().st_mtime
        return 0.0

    def sums(self, path: str) -> Sums:
        """Read the file in pieces."""
        return checksums.read(self.root / path)

    def sha256(self, path: str) -> str:
        """Read the file in pieces."""
        return sha256_of(self.root / path)

    def write_at(self, path: str, at: int, data: bytes) -> None:
        """Write a part of a file; unwritten parts before it stay a hole."""
        self._make(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self.root / path, flags, 0o644)
        with os.fdopen(file, "wb") as out:
            out.seek(at)
            out.write(data)

    def rewrite(self, path: str) -> None:
        """Read each piece and write it in its place."""
        file = os.open(self.root / path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(file, "r+b") as stream:
            at = 0
            while data := stream.read(checksums.PIECE):
                stream.seek(at)
                at += stream.write(data)

    def sync(self, path: str) -> None:
        """Sync the file and all folders above it: a kill may have come between a rename and its
        sync."""
        file = self.root / path
        for entry in (file, *list(file.parents)[: len(Path(path).parts)]):
            try:
                files.sync(entry)
            except OSError as fault:
                fault.filename = str(entry)  # fsync(2) sets no file name
                raise

    def publish(self, old: str, new: str) -> None:
        """Rename the file; never replace an existing one."""
        self._make(new)
        files.publish(self.root / old, self.root / new)

    def replace(self, path: str, data: bytes) -> None:
        """Replace the file atomically, readable by all users."""
        self._make(path)
        files.write_whole(self.root / path, [data])
        with contextlib.suppress(PermissionError):  # FAT has no modes
            (self.root / path).chmod(0o644)

    def remove(self, path: str) -> None:
        """Remove the file, not synced: a file that reappears is removed again."""
        (self.root / path).unlink(missing_ok=True)

    def prune(self, path: str) -> None:
        """Remove empty folders, not synced: a folder that reappears is empty."""
        folder = self.root / path
        with contextlib.suppress(OSError):
            while folder != self.root:
                folder.rmdir()
                folder = folder.parent

    def names(self, path: str) -> list[str]:
        """Return the names of files and folders."""
        with _absent():
            return sorted(os.listdir(self.root / path))
        return []

    def folders(self, path: str) -> list[str]:
        """Follow symbolic links, as an archived session may be one."""
        with _absent():
            with os.scandir(self.root / path) as entries:
                return sorted(entry.name for entry in entries if _is_folder(entry))
        return []

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Wait for another thread or process that changes a list."""
        with locked(self.root / CHANGING):
            yield

    def _make(self, path: str) -> None:
        make_folder((self.root / path).parent)


@contextlib.contextmanager
def _absent() -> Iterator[None]:
    """Suppress the errors for a missing file. A loop of links leads to none."""
    try:
        yield
    except OSError as fault:
        if fault.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with _absent():
        return entry.is_dir()
    return False


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, each synced into the one above it."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        files.sync(folder.parent)


def sha256_of(path: Path) -> str:
    """Return the checksum of a file, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_back(path: Path) -> str:
    """Sync a file, and return the checksum of the bytes that its disk returns, in hex. Raises
    OSError."""
    files.sync(path)
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_open(path: Path) -> bool:
    """Return True if any program has a file open: the kernel then grants no lease on it. A file
    system without leases gives False."""
    with path.open("r+b") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False

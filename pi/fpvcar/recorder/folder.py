"""Folder of recordings on a card. Every call may block; do not call it on the loop."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from fpvcar.runtime import files

PIECES_MOST = 512
"""Buffers per writev(2); the kernel's limit is 1024."""
LOCK = ".lock"


def recorded_into(path: Path) -> bool:
    """Return whether a recorder has locked this folder; False if the check fails."""
    try:
        lock = os.open(path / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as fault:
        return fault.errno == errno.EWOULDBLOCK
    finally:
        os.close(lock)
    return False


class Folder:
    """Directory that only its owner may read.

    A directory that vanishes later (an unplugged USB stick) is not created again: it would be
    created on the wrong card.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._made = False
        self._identity: tuple[int, int] | None = None

    def enter(self) -> None:
        """Create the directory on the first call, and lock it until `leave`."""
        if not self._made:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._made = True
        lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise OSError(
                errno.EBUSY, "another fpvcar records here; give it a folder of its own"
            ) from None
        except BaseException:
            os.close(lock)
            raise
        self._lock, self._identity = lock, self._identify()

    def leave(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def entries(self) -> list[tuple[str, int]]:
        """List the files, without links, folders and files removed during the scan."""
        entries = []
        with os.scandir(self.path) as listing:
            for entry in listing:
                with contextlib.suppress(FileNotFoundError):  # removed during the scan
                    if entry.is_file(follow_symlinks=False):
                        entries.append((entry.name, entry.stat(follow_symlinks=False).st_size))
        return entries

    def free(self) -> int:
        """Return the space available to an ordinary user, in bytes."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def create(self, name: str) -> int:
        """Open a new file for appending and sync its name."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        file = os.open(self.path / name, flags, 0o600)
        try:
            files.sync(self.path)
        except BaseException:
            os.close(file)
            raise
        return file

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        """Write with as few system calls as the kernel allows."""
        for start in range(0, len(parts), PIECES_MOST):
            buffers = [part for part in parts[start : start + PIECES_MOST] if part]
            unwritten = sum(map(len, buffers)) - os.writev(file, buffers) if buffers else 0
            if unwritten:  # a nearly full card accepts less; the next write reports the error
                remaining = memoryview(b"".join(buffers))[-unwritten:]
                while remaining:
                    remaining = remaining[os.write(file, remaining) :]

    def sync(self, file: int) -> None:
        """Sync data and size, but not the timestamps.

        Raises OSError if the path leads elsewhere by now: to another card mounted there, or to a
        directory that was created again.
        """
        os.fdatasync(file)
        if self._identify() != self._identity:
            raise OSError(errno.ESTALE, "the folder was replaced by another one")

    def _identify(self) -> tuple[int, int]:
        status = os.stat(self.path)
        return status.st_dev, status.st_ino

    def shorten(self, file: int, size: int) -> None:
        """Truncate the file; the next append continues there."""
        os.ftruncate(file, size)

    def close(self, file: int) -> None:
        os.close(file)

    def rename(self, old: str, new: str) -> None:
        os.rename(self.path / old, self.path / new)
        files.sync(self.path)

    def touch(self, name: str) -> None:
        """Create an empty file; an existing file stays unchanged."""
        os.close(os.open(self.path / name, os.O_WRONLY | os.O_CREAT, 0o600))
        files.sync(self.path)

    def write(self, name: str, data: bytes) -> None:
        """Write a small file atomically."""
        files.write_whole(self.path / name, [data])

    def remove(self, name: str) -> None:
        """Remove a file without sync; after a power failure it is removed again."""
        (self.path / name).unlink(missing_ok=True)

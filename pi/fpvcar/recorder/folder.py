"""The folder of recordings on a card. Every call may block; none is on the loop."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from fpvcar.runtime import files

PIECES_MOST = 512
"""How many pieces one writev(2) gets; the kernel takes 1024."""
LOCK = ".lock"


def recorded_into(path: Path) -> bool:
    """Does a recorder have this folder now? No wherever that cannot be asked."""
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


class FolderLike(Protocol):
    """A folder as the recorder uses it. Every call may raise OSError."""

    def enter(self) -> None:
        """Takes the folder; fails if another recorder has it."""

    def leave(self) -> None:
        """Lets another recorder have it."""

    def entries(self) -> list[tuple[str, int]]:
        """Lists name and size of each file."""

    def free(self) -> int:
        """Says how many bytes may still be written."""

    def create(self, name: str) -> int:
        """Creates a file; returns its number. Raises FileExistsError if there is
        one."""

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        """Writes all parts."""

    def sync(self, file: int) -> None:
        """Waits until what was written stays, whatever the power does. Fails if the
        folder is another one than that which `enter` took."""

    def shorten(self, file: int, size: int) -> None:
        """Cuts a file."""

    def close(self, file: int) -> None:
        """Closes a file."""

    def rename(self, old: str, new: str) -> None:
        """Gives a file its name for good, synced."""

    def touch(self, name: str) -> None:
        """Makes an empty file, synced."""

    def write(self, name: str, data: bytes) -> None:
        """Makes or replaces a small file, synced."""

    def remove(self, name: str) -> None:
        """Removes a file; absent is fine."""


class Folder:
    """A directory that only its owner may read.

    One that vanishes later (a stick that was pulled) is not made anew: it would be made
    on the wrong card.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._made = False
        self._identity: tuple[int, int] | None = None

    def enter(self) -> None:
        """Makes the directory the first time, and locks it until `leave`."""
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
        """Gives the lock back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def entries(self) -> list[tuple[str, int]]:
        """Leaves out links, folders, and what goes meanwhile."""
        found = []
        with os.scandir(self.path) as listing:
            for one in listing:
                with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                    if one.is_file(follow_symlinks=False):
                        found.append((one.name, one.stat(follow_symlinks=False).st_size))
        return found

    def free(self) -> int:
        """Counts what an ordinary user may write."""
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def create(self, name: str) -> int:
        """Opens a new file for appending; its name is synced."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        file = os.open(self.path / name, flags, 0o600)
        try:
            files.sync(self.path)
        except BaseException:
            os.close(file)
            raise
        return file

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        """Writes with as few calls as the kernel allows."""
        for start in range(0, len(parts), PIECES_MOST):
            some = [part for part in parts[start : start + PIECES_MOST] if part]
            left = sum(map(len, some)) - os.writev(file, some) if some else 0
            if left:  # a card that is nearly full takes less, and then says why
                rest = memoryview(b"".join(some))[-left:]
                while rest:
                    rest = rest[os.write(file, rest) :]

    def sync(self, file: int) -> None:
        """Syncs the bytes, and the size, but no times.

        Raises OSError if the path leads elsewhere by now: to another card that was
        mounted there, or to a directory that somebody made anew.
        """
        os.fdatasync(file)
        if self._identify() != self._identity:
            raise OSError(errno.ESTALE, "the folder was replaced by another one")

    def _identify(self) -> tuple[int, int]:
        about = os.stat(self.path)
        return about.st_dev, about.st_ino

    def shorten(self, file: int, size: int) -> None:
        """Cuts it; the next append goes on there."""
        os.ftruncate(file, size)

    def close(self, file: int) -> None:
        """Closes the descriptor."""
        os.close(file)

    def rename(self, old: str, new: str) -> None:
        """Renames within the directory."""
        os.rename(self.path / old, self.path / new)
        files.sync(self.path)

    def touch(self, name: str) -> None:
        """Leaves a file that is there as it is."""
        os.close(os.open(self.path / name, os.O_WRONLY | os.O_CREAT, 0o600))
        files.sync(self.path)

    def write(self, name: str, data: bytes) -> None:
        """It is there whole or not at all."""
        files.write_whole(self.path / name, [data])

    def remove(self, name: str) -> None:
        """Removes it, unsynced: what comes back after a power cut goes again."""
        (self.path / name).unlink(missing_ok=True)

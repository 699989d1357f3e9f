"""Writes files that are there whole or not at all, whatever the power does.

    write beside it -> fsync -> one rename or link gives it its name -> fsync the folder

A fault on the way leaves what was there before, and no litter; only a power cut, or a
kill, may leave a nameless .XXXX.new.
"""

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, pieces: Iterable[bytes], replace: bool = True) -> int:
    """Writes a file that only its owner may read; returns its size.

    Raises FileExistsError if it is there and not to be replaced, OSError, and what
    `pieces` raises; then `path` is as it was, but for a fault of the last sync.
    """
    # No tempfile: it would cost `wheels` 0.7 MB.
    new = path.with_name(f".{os.urandom(8).hex()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            size = sum(file.write(piece) for piece in pieces)
            file.flush()
            os.fsync(descriptor)
        if replace:
            os.replace(new, path)
            sync(path.parent)
        else:
            publish(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    return size


def publish(new: Path, path: Path) -> None:
    """Gives a file or a folder, written and synced, its name for good.

    Both names are on one file system. Raises FileExistsError, as it replaces nothing,
    and OSError.
    """
    try:
        os.link(new, path)  # unlike rename it replaces nothing
    except FileExistsError:
        raise
    except OSError:  # a folder, or a file system without hard links (FAT)
        refuse_taken(path)
        os.rename(new, path)
    else:
        os.unlink(new)
    sync(path.parent)


def refuse_taken(path: Path) -> None:
    """Raises FileExistsError if anything has this name."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def sync(path: Path) -> None:
    """Waits until a file's bytes, or a folder's names, are on the card.

    A folder's names are not what they stand for. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

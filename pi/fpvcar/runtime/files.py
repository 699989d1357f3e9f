"""Atomic and durable file writes: after a power failure a file is complete or absent.

    write beside it -> fsync -> one rename or link gives it its name -> fsync the folder

A fault during a write keeps the old file, and leaves no temporary file; only a power cut or a kill
may leave a .XXXX.new.
"""

import contextlib
import errno
import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

log = logging.getLogger("fpvcar.run")
Record = TypeVar("Record", bound=msgspec.Struct)
TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.new")
"""Names that `write_whole` leaves behind when it is killed."""


def write_whole(
    path: Path, pieces: Iterable[bytes], replace: bool = True, owner: tuple[int, int] | None = None
) -> int:
    """Write a file that only its owner may read; return its size. `owner`: user and group, for
    root; never visible with another owner.

    Raises FileExistsError if it exists and is not to be replaced, OSError, and the exceptions of
    `pieces`. `path` is then unchanged, except after a fault of the last sync.
    """
    # No tempfile: it would cost `wheels` 0.7 MB.
    new = path.with_name(f".{os.urandom(8).hex()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if owner is not None:
                os.fchown(descriptor, *owner)
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
    """Rename a file or a folder, already written and synced, to its final name, durably.

    Both names are on one file system. Raises FileExistsError, as no file is replaced, and OSError.
    """
    try:
        os.link(new, path)  # unlike rename it replaces no file
    except FileExistsError:
        raise
    except OSError:  # a folder, or a file system without hard links (FAT)
        refuse_taken(path)
        os.rename(new, path)
    else:
        os.unlink(new)
    sync(path.parent)


def refuse_taken(path: Path) -> None:
    """Raise FileExistsError if the name is taken."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def set_aside(path: Path, reason: str) -> None:
    """Rename an unusable file to NAME.bad and log it."""
    aside = path.with_name(f"{path.name}.bad")
    with contextlib.suppress(FileNotFoundError):
        path.replace(aside)
        log.warning("%s: %s; kept as %s, created again", path, reason, aside.name)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the card.

    Syncing a folder does not sync its files. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def decoded(text: bytes | msgspec.Raw, kind: type[Record]) -> Record:
    """Decode a JSON object; fields of a later version go into the struct's field `later`.

    Raises ValueError, msgspec.DecodeError, RecursionError.
    """
    fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    later = {name: raw for name, raw in fields.items() if name not in kind.__struct_fields__}
    record = msgspec.json.decode(text, type=kind)
    return msgspec.structs.replace(record, later=later) if later else record


def encoded(record: msgspec.Struct) -> msgspec.Raw:
    """Encode a struct as a JSON object, with its `later` fields as they were read."""
    fields = msgspec.json.decode(msgspec.json.encode(record), type=dict[str, msgspec.Raw])
    fields.pop("later", None)
    return msgspec.Raw(msgspec.json.encode(record.later | fields))  # type: ignore[attr-defined]

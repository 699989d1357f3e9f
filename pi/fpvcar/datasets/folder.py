"""Datasets of a page in one folder, and their downloads as tar files.

FOLDER/NAME         complete
FOLDER/NAME.part    unfinished: part.py
FOLDER/.NAME        being removed
"""

import os
import re
import shutil
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

from fpvcar.datasets.jobs import NAME, PART, Dataset
from fpvcar.runtime.workers import Rest

PIECE_BYTES = 64 * 1024
BLOCK = 512
"""Unit of a tar file."""


class DatasetFolder:
    """Folder of datasets. All calls block, and raise OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sizes: dict[tuple[str, int], int] = {}
        """Bytes of complete datasets, by name and inode: thousands of files take a while."""

    def datasets(self, busy: str = "") -> list[Dataset]:
        """Return the datasets by name, complete and unfinished. Sizes: not of the one that is being
        made."""
        try:
            entries = sorted(os.scandir(self.path), key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        listed = list[Dataset]()
        for entry in entries:
            name = entry.name.removesuffix(PART)
            if entry.is_dir(follow_symlinks=False) and is_name(name):
                half = name != entry.name
                folder = Path(entry.path, "dataset") if half else Path(entry.path)
                size = 0 if name == busy else self._size(Path(entry.path), entry.inode(), half)
                listed.append(Dataset(name, _kind(folder), "unfinished" if half else "ready", size))
        return listed

    def _size(self, path: Path, inode: int, changes: bool) -> int:
        key = (path.name, inode)
        if changes or key not in self._sizes:
            with suppress(FileNotFoundError):  # a process has just renamed it
                self._sizes[key] = sum(os.stat(file).st_size for file in files_in(path))
        return self._sizes.get(key, 0)

    def exists(self, name: str) -> bool:
        """Return whether a dataset of this name is complete or unfinished."""
        return any(os.path.lexists(self.path / path) for path in (name, name + PART))

    def remove(self, name: str) -> None:
        """Remove a dataset. Raises FileNotFoundError if there is none."""
        whole = self.path / name
        path = whole if whole.is_dir() else self.path / (name + PART)
        gone = self.path / f".{name}"
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(path, gone)  # half of a dataset never has its name
        shutil.rmtree(gone, ignore_errors=True)


def is_name(name: str) -> bool:
    """Return whether a dataset may have this name."""
    return bool(re.match(NAME, name)) and not name.endswith(PART)


def _kind(folder: Path) -> str:
    return "donkey" if (folder / "images").is_dir() else "lerobot"


def files_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all files of a folder, in no order."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from files_in(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


def tar_size(folder: Path) -> int:
    """Return the bytes of the tar file of a folder."""
    return 2 * BLOCK + sum(
        BLOCK + os.stat(path).st_size + _padding(os.stat(path).st_size) for path in files_in(folder)
    )


def _padding(size: int) -> int:
    return -size % BLOCK


def tar_of(folder: Path, rest: Rest) -> Generator[bytes, None, None]:
    """Yield a tar file of a folder. Calls `rest` before reading each piece.

    A tar file has no index, which would need 50 MB for the pictures of an hour.
    """
    import tarfile  # a car that exports nothing saves 1 MB

    for path in files_in(folder):
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            info = tarfile.TarInfo(f"{folder.name}/{os.path.relpath(path, folder)}")
            info.size, info.mtime, info.mode = status.st_size, int(status.st_mtime), 0o644
            yield info.tobuf(tarfile.USTAR_FORMAT)
            left = status.st_size
            while left:
                rest()
                piece = file.read(min(PIECE_BYTES, left))
                if not piece:
                    raise OSError(f"{path} was cut while it was read")
                left -= len(piece)
                yield piece
        yield bytes(_padding(status.st_size))
    yield bytes(2 * BLOCK)

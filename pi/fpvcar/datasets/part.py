"""Unfinished dataset beside its final name: it survives a kill, and is continued.

    DIR.part/request.json     options and input files; others are refused
    DIR.part/episodes/N.json  an episode whose files are all written and synced
    DIR.part/dataset/         becomes DIR by one rename, when it is complete

Rate, size and columns follow from the request; they are not saved.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from fpvcar.datasets.grid import Size
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime import files


class Shape(msgspec.Struct, frozen=True):
    """Properties that all episodes share: frames per second, pixels, columns of the state."""

    fps: int
    width: int
    height: int
    columns: list[str]

    @property
    def size(self) -> Size:
        """Return the size of the pictures."""
        return Size(self.width, self.height)


class Episode(msgspec.Struct, frozen=True):
    """Episode whose files are written; `index` is the number of its first row in the dataset.

    `stops` have their causes and times, `unknown` the columns of the state that were not measured
    in some rows. `statistics` are those of each feature. An episode of length 0 was left out.
    """

    number: int
    index: int
    length: int
    task: str
    task_index: int
    driver: str
    stops: list[str]
    unknown: list[str]
    car: str
    recording: str
    start_ns: int
    doubled: int
    dropped: int
    copied: bool
    statistics: dict[str, Any] = {}


def request_of(out: Path) -> Path:
    """Return the file that has the request of an unfinished dataset."""
    return out.with_name(f"{out.name}.part") / "request.json"


class Part:
    """Folder of one unfinished dataset. `request` describes its options and inputs."""

    def __init__(self, out: Path, request: object) -> None:
        """Open or create the folder. Raises RecordingError if `out` exists, if another export uses
        the folder, or if it belongs to another request; OSError."""
        self.out, self.path = out, out.with_name(f"{out.name}.part")
        self.dataset = self.path / "dataset"
        if os.path.lexists(out):
            raise RecordingError(f"{out} exists: choose another name")
        if not out.parent.is_dir():
            raise RecordingError(f"{out.parent} is no directory: create it first")
        for folder in (self.dataset, self.path / "episodes"):
            folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._claim(request)
        except BlockingIOError:
            self.close()
            raise RecordingError(f"{self.path} is in use by another export: wait for it") from None
        except BaseException:
            self.close()
            raise

    def _claim(self, request: object) -> None:
        text, path = msgspec.json.encode(request), request_of(self.out)
        if not path.exists():
            files.write_whole(path, [text])
        elif path.read_bytes() != text:
            raise RecordingError(
                f"{self.path} was begun with other options or recordings: repeat those, or delete "
                "this folder"
            )

    def close(self) -> None:
        """Let other exports use the folder."""
        os.close(self._lock)

    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(path.lstat().st_size for path in self.path.rglob("*"))

    def episodes(self) -> list[Episode]:
        """Return the complete episodes in order. Raises OSError."""
        episodes = list[Episode]()
        while (path := self._episode(len(episodes))).exists():
            episodes.append(msgspec.json.decode(path.read_bytes(), type=Episode))
        return episodes

    def _episode(self, number: int) -> Path:
        return self.path / "episodes" / f"{number}.json"

    def save(self, number: int, episode: Episode) -> None:
        """Save an episode after its files. Raises OSError."""
        os.sync()  # a tub's episode has thousands of files
        files.write_whole(self._episode(number), [msgspec.json.encode(episode)])

    def publish(self) -> None:
        """Give the complete dataset its final name. Raises RecordingError, OSError."""
        os.sync()
        try:
            files.publish(self.dataset, self.out)
        except FileExistsError:
            raise RecordingError(
                f"{self.out} was created meanwhile: nothing was replaced"
            ) from None
        shutil.rmtree(self.path, ignore_errors=True)


@contextlib.contextmanager
def opened(out: Path, request: object) -> Iterator[Part]:
    """Open the unfinished dataset for `out`. Raises RecordingError, OSError."""
    part = Part(out, request)
    try:
        yield part
    finally:
        if not part.episodes():  # nothing to continue
            shutil.rmtree(part.path, ignore_errors=True)
        part.close()

"""Recordings that were read lately: whoever plays one asks it again and again."""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from fpvcar.recordings import reader
from fpvcar.recordings.reader import Recording

OPEN_MAX = 3
AGAIN_S = 5.0
"""A file that is being written is read anew after so long."""


class RecordingCache:
    """A few recordings that were read lately. Blocks: call it from its one thread."""

    def __init__(
        self, clock_s: Callable[[], float], rest: Callable[[], None] = lambda: None
    ) -> None:
        """`rest` is called before each piece that is read."""
        self._clock_s, self._rest = clock_s, rest
        self._kept: OrderedDict[Path, tuple[object, float, Recording]] = OrderedDict()

    def get(self, path: Path, growing: bool) -> Recording:
        """Raises ReadError, OSError."""
        about, now_s = path.stat(), self._clock_s()
        stamp = (about.st_ino, 0 if growing else (about.st_size, about.st_mtime_ns))
        kept = self._kept.pop(path, None)
        if kept is not None:
            if kept[0] == stamp and not (growing and now_s - kept[1] > AGAIN_S):
                self._kept[path] = kept
                return kept[2]
            kept[2].close()
        found = reader.read(path, self._rest)
        self._kept[path] = stamp, now_s, found
        while len(self._kept) > OPEN_MAX:
            self._kept.popitem(last=False)[1][2].close()
        return found

    def close(self) -> None:
        """Closes all of them."""
        while self._kept:
            self._kept.popitem()[1][2].close()

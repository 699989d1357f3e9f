"""Keeps recordings open that were read lately: who plays one asks again and again."""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from fpvcar.recordings import reader
from fpvcar.recordings.reader import Recording

OPEN_MAX = 3
AGAIN_S = 5.0
"""How soon a file that is being written is read anew."""


class RecordingCache:
    """The last OPEN_MAX recordings that were read. Blocks: call it from its one
    thread."""

    def __init__(
        self, clock_s: Callable[[], float], rest: Callable[[], None] = lambda: None
    ) -> None:
        """`rest` is called before each piece that is read."""
        self._clock_s, self._rest = clock_s, rest
        self._open: OrderedDict[Path, tuple[object, float, Recording]] = OrderedDict()

    def get(self, path: Path, growing: bool) -> Recording:
        """Returns the recording in a file; it stays the cache's. Raises ReadError,
        OSError."""
        about, now_s = path.stat(), self._clock_s()
        stamp = (about.st_ino, 0 if growing else (about.st_size, about.st_mtime_ns))
        cached = self._open.pop(path, None)
        if cached is not None:
            if cached[0] == stamp and not (growing and now_s - cached[1] > AGAIN_S):
                self._open[path] = cached
                return cached[2]
            cached[2].close()
        found = reader.read(path, self._rest)
        self._open[path] = stamp, now_s, found
        while len(self._open) > OPEN_MAX:
            self._open.popitem(last=False)[1][2].close()
        return found

    def close(self) -> None:
        """Closes all of them."""
        while self._open:
            self._open.popitem()[1][2].close()

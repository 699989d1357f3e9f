"""Cache of open recordings. A player requests the same recording again and again."""

from collections import OrderedDict
from pathlib import Path

from fpvcar.recordings import reader
from fpvcar.recordings.reader import Recording
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.workers import Rest, no_rest

OPEN_MAX = 3
AGAIN_S = 5.0
"""Seconds until a file that is still being written is read again."""


class RecordingCache:
    """The last OPEN_MAX recordings read. Blocks: call it from its one thread."""

    def __init__(self, clock_s: Clock, rest: Rest = no_rest) -> None:
        """Call `rest` before reading each piece of a file."""
        self._clock_s, self._rest = clock_s, rest
        self._open: OrderedDict[Path, tuple[object, float, Recording]] = OrderedDict()

    def get(self, path: Path, growing: bool) -> Recording:
        """Return the recording in a file. The cache keeps ownership of it and closes it.

        Raises RecordingError, OSError.
        """
        status, now_s = path.stat(), self._clock_s()
        stamp = (status.st_ino, 0 if growing else (status.st_size, status.st_mtime_ns))
        cached = self._open.pop(path, None)
        if cached is not None:
            if cached[0] == stamp and not (growing and now_s - cached[1] > AGAIN_S):
                self._open[path] = cached
                return cached[2]
            cached[2].close()
        recording = reader.read(path, self._rest)
        self._open[path] = stamp, now_s, recording
        while len(self._open) > OPEN_MAX:
            self._open.popitem(last=False)[1][2].close()
        return recording

    def close(self) -> None:
        """Close all cached recordings."""
        while self._open:
            self._open.popitem()[1][2].close()

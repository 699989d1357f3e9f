"""FIFOs for NO: pigpio0, pigpio1 ... in the directory that stands for /dev."""

import contextlib
import os
from pathlib import Path

from fpvbench.pigpiod.edges.notify import Sink


class FifoDirectory:
    """Creates, opens and removes the FIFOs of notification handles."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[int, int] = {}

    def open(self, handle: int) -> Sink | None:
        """Create a FIFO; return a sink that drops data while the FIFO is full, or None on
        failure."""
        path = self._directory / f"pigpio{handle}"
        try:
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o664)
            # Opened for reading and writing, so that no reader is needed, as pigpiod does.
            file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            return None
        self._files[handle] = file

        def sink(data: bytes) -> bool:
            try:
                os.write(file, data)  # at most PIPE_BUF: all or nothing
            except BlockingIOError:
                return True
            except OSError:
                return False
            return True

        return sink

    def close(self, handle: int) -> None:
        file = self._files.pop(handle, None)
        if file is not None:
            os.close(file)
            with contextlib.suppress(OSError):
                (self._directory / f"pigpio{handle}").unlink()

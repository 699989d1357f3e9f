"""The recorder's thread: a turn every few tenths of a second."""

import threading
import time
from collections.abc import Callable


class Turns:
    """Calls `turn` every `every_s`, `first` before and `last` behind, in a thread."""

    def __init__(
        self, first: Callable[[], None], turn: Callable[[], None],
        last: Callable[[], None], every_s: float,
    ) -> None:  # fmt: skip
        self._first, self._turn, self._last = first, turn, last
        self._every_s = every_s
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread, also again after it ended by itself."""
        thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        thread.start()
        self._thread = thread

    def stop(self, wait_s: float) -> None:
        """One more turn, and `last`; not waited for longer than this."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(wait_s)

    @property
    def ending(self) -> bool:
        """Was it stopped?"""
        return self._ending.is_set()

    @property
    def dead(self) -> bool:
        """It ended by itself: by something that nobody thought of."""
        thread = self._thread
        return thread is not None and not (thread.is_alive() or self.ending)

    def _work(self) -> None:
        self._first()
        wait_s = self._every_s
        while not self._ending.wait(wait_s):
            began_s = time.monotonic()
            self._turn()
            wait_s = max(0.0, self._every_s - (time.monotonic() - began_s))
        self._turn()
        self._last()

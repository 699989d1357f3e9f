"""Threads of `run` for what is slow and harmless: pins that blink, sensors, the card.

A daemon or a card that hangs holds up its thread only; the event loop reads what that
last knew.

    Runner: starts, ends, is noticed when it dies
      Worker: one life after the other; a life ends with `Lost`, and another begins
      Periodic: does the same every few tenths of a second
"""

import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

RETRY_S = 0.5
STOP_S = 1.0
REST_S = 0.5
"""How often a sensor is read while nobody is here."""


def _nothing() -> None: ...


class Lost(Exception):
    """What a life hung on has gone; the text says what."""


class Runner(ABC):
    """A thread that waits for its next work in `pause`. Methods return at once, but
    `stop`."""

    def __init__(self, name: str) -> None:
        self.ending = False
        self._name = name
        # Not an event, whose wait makes a lock: that costs as much as the wait itself.
        self._alarm = threading.Lock()
        self._alarm.acquire()
        self._thread: threading.Thread | None = None
        self._over, self._tell = False, _nothing

    def start(self) -> None:
        """Starts the thread, also again after it ended by itself."""
        self._over = False
        thread = threading.Thread(target=self._whole, name=self._name, daemon=True)
        thread.start()
        self._thread = thread

    def stop(self, wait_s: float = STOP_S) -> None:
        """Ends the thread; does not wait for it longer than this."""
        self.ending = True
        self.wake()
        if self._thread is not None:
            self._thread.join(wait_s)

    def wake(self) -> None:
        """Ends a `pause`, or the next one."""
        with contextlib.suppress(RuntimeError):  # it rings already
            self._alarm.release()

    @property
    def dead(self) -> bool:
        """It ended by itself: by something that nobody thought of."""
        thread = self._thread
        return thread is not None and not (thread.is_alive() or self.ending)

    # --- in the thread ---

    def pause(self, seconds: float) -> None:
        """Waits, or until there is something to do."""
        self._alarm.acquire(timeout=max(0.0, seconds))

    def _whole(self) -> None:
        try:
            self._run()
        finally:
            self._over = True
            self._tell()

    @abstractmethod
    def _run(self) -> None:
        """What the thread does, until `ending`."""


class Worker(Runner):
    """A thread that lives again after each loss. `state` is "ok", or what is wrong."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = "starting"
        self.resting = False
        self._log = logging.getLogger(f"fpvcar.{name}")

    async def watch(self) -> None:
        """Raises RuntimeError when the thread has died: no car is half alive."""
        import asyncio  # not above: `wheels` needs `Lost`, and must stay small

        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended before
                loop.call_soon_threadsafe(ended.set)

        self._tell = tell
        if not self._over:  # no clock: five threads that are looked at cost much
            await ended.wait()
        if self.ending:
            await asyncio.Event().wait()  # as it was told to
        raise RuntimeError(f"the thread of {self._name} has failed")

    def attend(self, here: bool) -> None:
        """Somebody is here, or nobody: then `rest` takes its time."""
        self.resting, rested = not here, self.resting
        if here and rested:
            self.wake()

    # --- in the thread ---

    def rest(self) -> None:
        """Waits a while if nobody is here; it ends when somebody comes."""
        if self.resting:
            self.pause(REST_S)

    @abstractmethod
    def live(self) -> None:
        """One life: until `ending`, or until Lost, after which another begins."""

    def lost(self) -> None:
        """A life ended: what was known is known no more."""

    def set_state(self, state: str) -> None:
        """Sets the state, and logs it where it changed."""
        if state != self.state:
            level = logging.INFO if state == "ok" else logging.WARNING
            self._log.log(level, "%s", state)
        self.state = state

    def _run(self) -> None:
        while not self.ending:
            try:
                self.live()
            except Lost as fault:
                self.set_state(str(fault))
            self.lost()
            if not self.ending:
                self.pause(RETRY_S)


class Periodic(Runner):
    """Calls `turn` every `every_s`; `first` before all turns and `last` after them."""

    def __init__(
        self,
        name: str,
        first: Callable[[], None],
        turn: Callable[[], None],
        last: Callable[[], None],
        every_s: float,
    ) -> None:
        super().__init__(name)
        self._first, self._turn, self._last = first, turn, last
        self._every_s = every_s

    def _run(self) -> None:
        self._first()
        self.pause(self._every_s)
        while not self.ending:
            began_s = time.monotonic()
            self._turn()
            self.pause(self._every_s - (time.monotonic() - began_s))
        self._turn()
        self._last()

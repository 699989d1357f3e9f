"""Threads of `run` for slow, uncritical work: blinking pins, sensors, the card.

A daemon or a card that hangs blocks its own thread only; the event loop reads the last known
values.

    Runner: start, stop, detection of its death
      Worker: a sequence of lives; a life ends with `DeviceLost`, and the next begins
"""

import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpvcar.runtime.texts import State

RETRY_S = 0.5
STOP_S = 1.0
REST_S = 0.5
"""Interval of sensor readings while no page is connected."""


Rest = Callable[[], None]
"""Pause of a busy thread, which leaves time to the gate; called often, and returns at once if the
thread may go on."""


def no_rest() -> None:
    """Return at once: nothing else needs this processor."""


def _nothing() -> None: ...


class DeviceLost(Exception):
    """Loss of a device or connection that a life needs; the text gives the reason."""


class Runner(ABC):
    """Thread that waits for its next work in `pause`. All methods except `stop` return at once."""

    def __init__(self, name: str) -> None:
        self.ending = False
        self._name = name
        # A lock, as an event creates a lock in each wait: that costs as much as the wait itself.
        self._alarm = threading.Lock()
        self._alarm.acquire()
        self._thread: threading.Thread | None = None
        self._over, self._notify = False, _nothing

    def start(self) -> None:
        """Start the thread, also again after it ended by itself."""
        self._over = False
        thread = threading.Thread(target=self._thread_main, name=self._name, daemon=True)
        thread.start()
        self._thread = thread

    def stop(self, wait_s: float = STOP_S) -> None:
        """End the thread; wait at most `wait_s` for it."""
        self.ending = True
        self.wake()
        if self._thread is not None:
            self._thread.join(wait_s)

    def wake(self) -> None:
        """End a `pause`, or the next one."""
        with contextlib.suppress(RuntimeError):  # it is already released
            self._alarm.release()

    @property
    def dead(self) -> bool:
        """Whether the thread ended by itself, through an unexpected exception."""
        thread = self._thread
        return thread is not None and not (thread.is_alive() or self.ending)

    # Called in the thread

    def pause(self, seconds: float) -> None:
        """Wait for so long, or until `wake`."""
        self._alarm.acquire(timeout=max(0.0, seconds))

    def _thread_main(self) -> None:
        try:
            self._run()
        finally:
            self._over = True
            self._notify()

    @abstractmethod
    def _run(self) -> None:
        """Do the work of the thread until `ending`."""


class Worker(Runner):
    """Thread that starts a new life after each loss. `state` is "ok", or the fault."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        from fpvcar.runtime.texts import STARTING  # not above: the guardian needs DeviceLost only

        self.state: State = STARTING
        self.resting = False
        self._log = logging.getLogger(f"fpvcar.{name}")

    async def watch(self) -> None:
        """Raise RuntimeError when the thread has died: the service then ends as a whole."""
        import asyncio  # not above: `wheels` needs `DeviceLost`, and must stay small

        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has already ended
                loop.call_soon_threadsafe(ended.set)

        self._notify = notify
        if not self._over:  # no polling: checking five threads regularly costs much time
            await ended.wait()
        if self.ending:
            await asyncio.Event().wait()  # ended as requested
        raise RuntimeError(f"the thread of {self._name} has failed")

    def attend(self, here: bool) -> None:
        """Set whether any page is connected; otherwise `rest` pauses."""
        self.resting, was_resting = not here, self.resting
        if here and was_resting:
            self.wake()

    # Called in the thread

    def rest(self) -> None:
        """Wait a while if no page is connected; end the wait when one connects."""
        if self.resting:
            self.pause(REST_S)

    @abstractmethod
    def live(self) -> None:
        """Run one life: until `ending`, or until DeviceLost, after which the next begins."""

    def lost(self) -> None:
        """Discard the known values after the end of a life."""

    def set_state(self, state: "State") -> None:
        """Set the state, and log a change."""
        if state != self.state:
            level = logging.INFO if state == "ok" else logging.WARNING
            self._log.log(level, "%s", state)
        self.state = state

    def _run(self) -> None:
        while not self.ending:
            try:
                self.live()
            except DeviceLost as fault:
                from fpvcar.runtime.texts import fault_text  # not above: see __init__

                self.set_state(fault_text(fault))
            self.lost()
            if not self.ending:
                self.pause(RETRY_S)

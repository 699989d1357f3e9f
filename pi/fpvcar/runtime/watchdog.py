"""Watchdog thread that ends a `run` with a blocked event loop, with all stacks in the log.

    loop ---- beat, every 0.5 s ----> watchdog <---- check, every 0.5 s ---- a thread
    no beat for 2 s: the stacks to stderr, exit status 70; the unit starts it again

It restores the service; it does not stop the car. `wheels` has stopped it long before, at the
deadline of the last setpoint.

Blocked time is counted in checks, each of half a second at most: a process that was stopped, or a
machine that slept or was too busy to run this thread, also shows a long time without a beat, but
few checks. A loop that holds the interpreter's lock blocks this thread as well, and `wheels` has no
watchdog thread: both cases are ended by the watchdogs of the units, which both loops feed.
"""

import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from fpvcar.runtime import sd_notify
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.service import aligned_sleep

PATIENCE_S = 2.0
CHECK_S = 0.5
STATUS = 70
"""EX_SOFTWARE of <sysexits.h>, to distinguish it from every other exit."""
log = logging.getLogger("fpvcar.run")


class Watchdog:
    """Counter of the time that the loop has been blocked, as observed by this process. Pure."""

    def __init__(self, patience_s: float = PATIENCE_S, check_s: float = CHECK_S) -> None:
        self.beats = 0
        self._patience_s, self._check_s = patience_s, check_s
        self._beats_checked = 0
        self._checked_s: float | None = None
        self.blocked_s = 0.0

    def beat(self) -> None:
        """Note a turn of the loop. Called on the loop; `check` by another thread."""
        self.beats += 1

    def check(self, now_s: float) -> bool:
        """Return True once the loop has been blocked for longer than `patience_s`."""
        elapsed_s = 0.0 if self._checked_s is None else now_s - self._checked_s
        self._checked_s = now_s
        if self.beats != self._beats_checked:
            self._beats_checked, self.blocked_s = self.beats, 0.0
            return False
        self.blocked_s += min(max(elapsed_s, 0.0), self._check_s)
        return self.blocked_s >= self._patience_s


def abort(blocked_s: float) -> NoReturn:
    """Log the stacks of all threads, and exit without cleaning up."""
    log.critical("the event loop was blocked for %.1f s; exiting", blocked_s)
    faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
    os._exit(STATUS)


async def run(
    watchdog: Watchdog, expire: Callable[[float], object] = abort, clock_s: Clock = time.monotonic
) -> None:
    """Beat on this loop while a thread checks; runs for ever."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(CHECK_S):
            if watchdog.check(clock_s()):
                expire(watchdog.blocked_s)

    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    unit = sd_notify.Heartbeat(sd_notify.watchdog_ns())
    try:
        while True:
            watchdog.beat()
            unit.beat(round(clock_s() * 1e9))
            await aligned_sleep(CHECK_S)
    finally:
        ended.set()

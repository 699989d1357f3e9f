"""Threads of `run` for what is slow and harmless; most have a connection to pigpiod.

A daemon that hangs holds up its thread only; the event loop reads what it last knew.
After any fault it connects anew, and `work` begins from the beginning.
"""

import asyncio
import contextlib
import logging
import threading

from fpvcar import config
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.devices.pins import PinsFault

RETRY_S = 0.5
ANSWER_S = 0.5
WATCH_S = 0.5


class Worker:
    """One thread, and its lives. Every method returns at once, but `stop`.

    `state` is "ok", or says what is wrong.
    """

    def __init__(self, name: str) -> None:
        self.state = "starting"
        self.ending = False
        self._name = name
        self._wake = threading.Event()
        self._log = logging.getLogger(f"fpvcar.{name}")
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    async def watch(self) -> None:
        """Raises RuntimeError when the thread has died: no car is half alive."""
        while True:
            if not self._thread.is_alive():
                raise RuntimeError(f"the thread of {self._name} has failed")
            await asyncio.sleep(WATCH_S)

    def stop(self) -> None:
        """Ends the thread; takes a second at most."""
        self.ending = True
        self._wake.set()
        self._thread.join(2 * ANSWER_S)

    def wake(self) -> None:
        """Ends a `pause`."""
        self._wake.set()

    # --- in the thread ---

    def live(self) -> None:
        """One life: until `ending`, or until PinsFault, after which another begins."""
        raise NotImplementedError

    def lost(self) -> None:
        """A life ended: what was known is known no more."""

    def pause(self, seconds: float) -> None:
        """Waits, or until there is something to do."""
        self._wake.wait(max(0.0, seconds))
        self._wake.clear()

    def say(self, state: str) -> None:
        """Sets the state, and logs it where it changed."""
        if state != self.state:
            level = logging.INFO if state == "ok" else logging.WARNING
            self._log.log(level, "%s", state)
        self.state = state

    def _run(self) -> None:
        while not self.ending:
            try:
                self.live()
            except PinsFault as fault:
                self.say(str(fault))
            self.lost()
            if not self.ending:
                self.pause(RETRY_S)


class PinThread(Worker):
    """What works with slow and harmless pins."""

    def __init__(self, name: str, where: config.Pins) -> None:
        super().__init__(name)
        self._where = where

    def work(self, pins: PigpioPins) -> None:
        """Until `ending`. May raise PinsFault."""
        raise NotImplementedError

    def live(self) -> None:
        """Connects, and works."""
        connection = PigpioPins(self._where.host, self._where.port, ANSWER_S)
        with contextlib.closing(connection):
            self.work(connection)

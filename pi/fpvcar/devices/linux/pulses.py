"""Pulses on outputs, from a thread that wakes up for each edge.

The kernel offers no pulses on arbitrary pins. The thread's edges are delayed by the
scheduler and the interpreter's lock, and each costs processor time, hence MOST_HZ. The
thread runs as SCHED_FIFO where permitted (LimitRTPRIO of the unit).
"""

import ctypes
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from fpvcar.devices.pins import PinsLost
from fpvcar.runtime.texts import Phrase

PRIORITY = 10
SWITCH_S = 0.0002
"""Longest hold of the interpreter's lock by another thread when an edge is due."""
PR_SET_TIMERSLACK, SLACK_NS = 29, 1000  # <linux/prctl.h>
END_S, FINISH_S = 0.2, 0.05
STALLED_S = 0.1
"""Delay after which the thread counts as hung, with its pin possibly high."""
CATCH_UP_S = 0.02
"""After a pause of the whole process the thread is late as well; it gets this time to catch up."""
Put = Callable[[dict[int, int]], None]
"""Function that sets the levels of some outputs. Raises OSError."""
GPIO_LATE = Phrase("gpio_late", "GPIO {gpio}: pulses are {seconds} s late")
log = logging.getLogger("fpvcar.wheels")


@dataclass
class _Wave:
    """Waveform of one pin: high for `on_s` out of every `period_s`."""

    period_s: float
    on_s: float
    rise_s: float
    next_s: float
    high: bool = False


class Schedule:
    """Timetable of edges. Pure.

    Both edges follow the plan: their delays are alike, so the mean duty is right. A
    waveform delayed by more than a period restarts.
    """

    def __init__(self) -> None:
        self._waves: dict[int, _Wave] = {}

    def run(self, gpio: int, period_s: float, on_s: float, now_s: float) -> None:
        """Start at once; a running waveform changes with its next pulse."""
        wave = self._waves.get(gpio)
        if wave is None:
            # rises when the thread gets there: a late first rise must not shorten its pulse
            self._waves[gpio] = _Wave(period_s, on_s, -math.inf, now_s)
        else:
            wave.period_s, wave.on_s = period_s, on_s

    def stop(self, gpio: int) -> None:
        """Stop and remove the waveform of a pin."""
        self._waves.pop(gpio, None)

    def high(self, gpio: int) -> bool:
        """Return whether a pulse of the pin is under way."""
        return gpio in self._waves and self._waves[gpio].high

    def due(self, now_s: float) -> dict[int, int]:
        """Return the levels that change by now."""
        return {
            gpio: self._flip(wave, now_s)
            for gpio, wave in self._waves.items()
            if wave.next_s <= now_s
        }

    @property
    def next_s(self) -> float | None:
        """Time of the next edge; None for never."""
        return min((wave.next_s for wave in self._waves.values()), default=None)

    def _flip(self, wave: _Wave, now_s: float) -> int:
        wave.high = not wave.high
        if wave.high:
            if now_s - wave.rise_s > wave.period_s:
                wave.rise_s = now_s
            wave.next_s = wave.rise_s + wave.on_s
        else:
            wave.rise_s += wave.period_s
            wave.next_s = wave.rise_s
        return int(wave.high)


class Pulses:
    """Pulse thread, started by the first pulse."""

    def __init__(self, put: Put) -> None:
        self._put, self._schedule = put, Schedule()
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._fault = ""
        self._ending = False

    def run(self, gpio: int, period_s: float, on_s: float) -> None:
        """Drive the pin high for `on_s` out of every `period_s` from now on. Raises PinsLost."""
        self._refuse_stalled(gpio)
        with self._lock:
            self._schedule.run(gpio, period_s, on_s, time.monotonic())
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="pulses", daemon=True)
            self._thread.start()
        self._wake.set()

    def stop(self, gpio: int) -> None:
        """Keep the pin's level; after the return the thread no longer touches the pin."""
        with self._lock:
            self._schedule.stop(gpio)

    def finish(self, gpio: int) -> None:
        """End the pulses of a pin with a whole one, unless the thread hangs."""
        end_s = time.monotonic() + FINISH_S
        while time.monotonic() < end_s:
            with self._lock:
                if not self._schedule.high(gpio):
                    self._schedule.stop(gpio)
                    return
            time.sleep(FINISH_S / 100)
        self.stop(gpio)

    def _refuse_stalled(self, gpio: int) -> None:
        dead = self._thread is not None and not self._thread.is_alive()
        if dead or self._fault:
            raise PinsLost(f"GPIO {gpio}: {self._fault or 'the pulse thread has ended'}")
        if self._late_s() > STALLED_S:
            time.sleep(CATCH_UP_S)
            if (late_s := self._late_s()) > STALLED_S:
                raise PinsLost(GPIO_LATE(gpio=gpio, seconds=f"{late_s:.2f}"))

    def _late_s(self) -> float:
        with self._lock:
            next_s = self._schedule.next_s
        return 0.0 if next_s is None else time.monotonic() - next_s

    def close(self) -> None:
        """Stop the thread and wait for its end."""
        self._ending = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(END_S)

    def _work(self) -> None:
        try:
            hurry()
            self._pulse()
        except OSError as fault:
            self._fault = fault.strerror or repr(fault)
        except Exception as fault:
            self._fault = repr(fault)
            log.exception("the pulses end")

    def _pulse(self) -> None:
        while not self._ending:
            with self._lock:
                if due := self._schedule.due(time.monotonic()):
                    self._put(due)
                next_s = self._schedule.next_s
            if next_s is None:
                self._wake.wait()
                self._wake.clear()
            elif (left_s := next_s - time.monotonic()) > 0.0:
                time.sleep(left_s)


def hurry() -> None:
    """Give this thread precise wake-ups, as far as permitted."""
    sys.setswitchinterval(SWITCH_S)
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, SLACK_NS)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))

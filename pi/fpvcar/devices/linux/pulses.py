"""Pulses on outputs, by a thread that wakes for each of their edges.

The kernel has no such thing on any pin, so the thread is ours: its edges are late by
what the scheduler and this interpreter's lock cost, and each costs processor time,
hence MOST_HZ. It runs as SCHED_FIFO where that is allowed (LimitRTPRIO of the unit).
"""

import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from fpvcar.devices.pins import PinsLost

MOST_HZ = 100
"""Two motors have 400 edges a second then: 1.3 % of a core of a busy x86-64, and a Zero
2 W's are ten times slower."""
PRIORITY = 10
SWITCH_S = 0.0002
"""How long the other thread may have the interpreter's lock when an edge is due."""
PR_SET_TIMERSLACK, SLACK_NS = 29, 1000  # <linux/prctl.h>
END_S = 0.2
STALLED_S = 0.1
"""An edge later than this: the thread hangs, and its pin may be high."""
CATCH_UP_S = 0.02
"""Who was stopped together with us is late, too, and then comes first."""
Put = Callable[[dict[int, int]], None]
"""Sets the levels of some outputs. Raises OSError."""
log = logging.getLogger("fpvcar.wheels")


@dataclass
class _Wave:
    """One pin: high for `on_s` out of every `period_s`."""

    period_s: float
    on_s: float
    rise_s: float
    next_s: float
    high: bool = False


class Schedule:
    """Which pin changes when. Pure.

    Both edges keep to the plan: late as they are alike, the mean is what it should be.
    Who comes later than a whole period begins anew.
    """

    def __init__(self) -> None:
        self._waves: dict[int, _Wave] = {}

    def run(self, gpio: int, period_s: float, on_s: float, now_s: float) -> None:
        """Begins at once; one that runs changes with its next pulse."""
        wave = self._waves.get(gpio)
        if wave is None:
            self._waves[gpio] = _Wave(period_s, on_s, now_s, now_s)
        else:
            wave.period_s, wave.on_s = period_s, on_s

    def stop(self, gpio: int) -> None:
        """Nothing is due for this pin any more."""
        self._waves.pop(gpio, None)

    def due(self, now_s: float) -> dict[int, int]:
        """The levels that pins change to by now."""
        return {
            gpio: self._flip(wave, now_s)
            for gpio, wave in self._waves.items()
            if wave.next_s <= now_s
        }

    @property
    def next_s(self) -> float | None:
        """When something is due; None: never."""
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
    """The thread. It begins with the first pulse."""

    def __init__(self, put: Put) -> None:
        self._put, self._schedule = put, Schedule()
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._fault = ""
        self._ending = False

    def run(self, gpio: int, period_s: float, on_s: float) -> None:
        """High for `on_s` out of every `period_s`, from now on. Raises PinsLost."""
        self._refuse_stalled(gpio)
        with self._lock:
            self._schedule.run(gpio, period_s, on_s, time.monotonic())
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="pulses", daemon=True
            )
            self._thread.start()
        self._wake.set()

    def stop(self, gpio: int) -> None:
        """Leaves the pin as it is; when this returns we touch it no more."""
        with self._lock:
            self._schedule.stop(gpio)

    def _refuse_stalled(self, gpio: int) -> None:
        dead = self._thread is not None and not self._thread.is_alive()
        if dead or self._fault:
            raise PinsLost(f"GPIO {gpio}: {self._fault or 'nobody makes the pulses'}")
        if self._late_s() > STALLED_S:
            time.sleep(CATCH_UP_S)
            if (late_s := self._late_s()) > STALLED_S:
                raise PinsLost(f"GPIO {gpio}: pulses are {late_s:.2f} s late")

    def _late_s(self) -> float:
        with self._lock:
            next_s = self._schedule.next_s
        return 0.0 if next_s is None else time.monotonic() - next_s

    def close(self) -> None:
        """Ends the thread."""
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
    """This thread is woken in time, as far as that is allowed."""
    sys.setswitchinterval(SWITCH_S)
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, SLACK_NS)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))

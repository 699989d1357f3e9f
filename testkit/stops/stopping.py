"""Measurement of one stop of the car, at the emulator's pins: from the failure to motors off.

The failures themselves, as data, are in causes.py and browser_causes.py.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fpvcar.hil.checks.stops import BUSY, STAYS_S
from fpvcar.hil.driver import stop_cause
from testkit.harness import PinWatch, RunningBench, wait_for

TRANSIENT_S = 0.02
"""The emulator switches the pins of a bank one after the other."""
SPOILT_MOST = 4
"""Most repeats of a run: a car that often stops too early for another reason is faulty, rather
than on a busy machine."""
S = TypeVar("S")


@dataclass(frozen=True)
class Cause(Generic[S]):
    """Row of the table. `fail` returns CLOCK_MONOTONIC in ns just before the failure.

    `shown` is the cause that the car then gives to all clients. It is None if only a neutral wish
    came, or if the guard leaves no throttle. `logged` must be in the log of the bench. `throttle`
    is the direction of driving; `guard` is the grown-up's setting of the guard.
    """

    name: str
    limit_s: float
    shown: str | None
    fail: Callable[[S], int]
    mend: Callable[[S], object] = lambda scene: None
    logged: str = ""
    way: str = "direct"
    deaf: bool = False
    """`run` does not answer until it is mended."""
    throttle: float = 1.0
    guard: str = "off"
    silent: bool = False
    """Whether the pulses of an ESC end at once, without neutral."""


def one_stop(
    scene: S, bench: RunningBench, cause: Cause[S], drive: Callable[[PinWatch], object]
) -> float:
    """Drive off, let the failure happen, and check everything except the time; return the
    seconds it took."""
    with bench.watch() as watch:
        drive(watch)
        # avoids a fixed phase between this test and the car's ticks
        time.sleep(random.random() * 0.04)
        said = len(bench.log())
        now_ns = cause.fail(scene)
        try:
            wait_for(lambda: not watch.now.driving, f"{cause.name}: the car drives on")
            taken_s, stood = watch.stopped_after_s(now_ns), len(watch.samples)
            drove(watch, now_ns, cause.name)
            if cause.deaf:
                cause.mend(scene)
            _shown(bench, cause)
            _logged(bench, cause, said)
        except AssertionError:
            with suppress(Exception):  # for the next run; the first fault counts
                cause.mend(scene)
            raise
        if not cause.deaf:
            cause.mend(scene)
        time.sleep(STAYS_S)
        stood_still(watch, stood, cause.name)
        faults = [] if cause.silent else watch.faults()
        assert faults == [], f"{cause.name}: {faults}"
    return taken_s


class Busy(AssertionError):
    """Raised when a process had to wait for the machine, so that another cause stopped the car
    first."""

    def __init__(self, words: str, said: str) -> None:
        super().__init__(words)
        self.said = said


def drove(watch: PinWatch, at_ns: int, what: str) -> None:
    """Raise Busy if the car stood already at the failure."""
    if not watch.drove_at(at_ns):
        raise Busy(f"{what}: the car stood before it failed", "stood before")


def _shown(bench: RunningBench, cause: Cause[Any]) -> None:
    said: list[str | None] = []

    def right() -> bool:
        said.append(reason(bench))
        return said[-1] == cause.shown

    try:
        wait_for(right, cause.name)
    except AssertionError as fault:
        last = said[-1]
        words = f"{cause.name}: expected {cause.shown}, but the car says {last}"
        if last in BUSY:
            raise Busy(words, last) from fault
        raise AssertionError(words) from fault


def _logged(bench: RunningBench, cause: Cause[Any], since: int) -> None:
    words = f"no log: {cause.logged}"
    try:
        wait_for(lambda: cause.logged in bench.log()[since:], words)
    except AssertionError as fault:
        others = [one for one in BUSY if f"stopped: {one}" in bench.log()[since:]]
        if others:
            raise Busy(f"{words}, but {others[0]}", others[0]) from fault
        raise


@dataclass(frozen=True)
class Run:
    """Result of one run: the seconds until the motors were off, and the causes that spoilt
    earlier tries."""

    taken_s: float
    spoilt: tuple[str, ...]


def patiently(one_run: Callable[[], float]) -> Run:
    """Repeat a run, SPOILT_MOST times, if a busy machine had stopped the car already."""
    spoilt: list[str] = []
    while True:
        try:
            return Run(one_run(), tuple(spoilt))
        except Busy as fault:
            spoilt.append(fault.said)
            if len(spoilt) > SPOILT_MOST:
                raise


def stood_still(watch: PinWatch, since: int, what: str) -> None:
    """Raise AssertionError if a motor was driven after sample number `since`.

    The stick was held all the time, and returning parts may move no motor.
    """
    ends_ns = [sample.time_ns for sample in watch.samples[1:]] + [time.monotonic_ns()]
    for sample, end_ns in list(zip(watch.samples, ends_ns, strict=True))[since:]:
        moved = sample.driving and (end_ns - sample.time_ns) / 1e9 > TRANSIENT_S
        assert not moved, f"{what}: it moved again: {sample}"


def reason(bench: RunningBench) -> str | None:
    """Return the cause of the car's stop, None if it may drive, or NO_ANSWER."""
    return stop_cause(bench.port)

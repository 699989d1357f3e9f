"""Pairs of faults: any two of the parts that keep the car safe, each killed or hung, in any order.

`helper` is the process that releases the pins when pigpiod hangs. It runs on request only: its
fault waits for the first helper process and hits that.
"""

import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fpvcar.hil.driver import NO_ANSWER
from fpvcar.hil.stop_causes import TWO_FAULTS_S
from testkit.driver import free, make_whole, set_off, sit_down
from testkit.harness import RunningBench, wait_for
from testkit.stops.ground import Ground
from testkit.stops.stopping import reason, stood_still

PARTS = ("run", "wheels", "pigpiod", "helper", "camera")
KINDS = {"killed": signal.SIGKILL, "hung": signal.SIGSTOP}
GAP_MOST_S = 0.3
HELD_S = 1.5
"""The stick is held for this time after all parts have come back."""


@dataclass(frozen=True)
class Fault:
    """A part of the car, killed or hung."""

    part: str
    kind: str

    def __str__(self) -> str:
        return f"{self.part} {self.kind}"


Pair = tuple[Fault, Fault]


def pairs(parts: Sequence[str]) -> tuple[Pair, ...]:
    """Return each pair of faults of different parts."""
    faults = [Fault(part, kind) for part in parts for kind in KINDS]
    both = itertools.permutations(faults, 2)
    return tuple((one, other) for one, other in both if one.part != other.part)


PAIRS = pairs(PARTS)

GRAVEST = tuple(
    (Fault(*one.split()), Fault(*other.split()))
    for one, other in (
        ("pigpiod hung", "wheels killed"),
        ("pigpiod hung", "wheels hung"),
        ("wheels hung", "pigpiod hung"),
        ("helper hung", "pigpiod hung"),
        ("helper killed", "pigpiod hung"),
        ("run hung", "wheels hung"),
        ("run killed", "pigpiod hung"),
    )
)
"""Pairs with which the car once drove on, or that leave the fewest parts; the others are drawn."""


def children_of(pid: int) -> list[str]:
    """Return the process ids of a process's children; [] after its end."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return []


class HelperFault(threading.Thread):
    """Thread that signals the first helper process of a bench as soon as it runs."""

    def __init__(self, bench: RunningBench, number: signal.Signals) -> None:
        super().__init__(daemon=True)
        self._bench, self._number = bench, number
        self.over = threading.Event()

    def run(self) -> None:
        """Search until a helper was found, or the run is over."""
        while not self.over.is_set():
            for pid in map(int, children_of(self._bench.process.pid)):
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{pid}/cmdline").read_bytes()
                    if b"fpvbench.pins_off" in words:
                        os.kill(pid, self._number)
                        return
            time.sleep(0.002)


class Faults:
    """Faults of a bench; hung processes can be continued."""

    def __init__(self, bench: RunningBench) -> None:
        self._bench = bench
        self._hung: list[int] = []
        self._helpers: list[HelperFault] = []

    def bring(self, fault: Fault) -> None:
        """Kill or stop a part. For the helper this happens at its first request."""
        number = KINDS[fault.kind]
        if fault.part == "helper":
            self._helpers.append(HelperFault(self._bench, number))
            self._helpers[-1].start()
            return
        for pid in self._pids(fault.part):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                if number is signal.SIGSTOP:
                    self._hung.append(pid)

    def _pids(self, part: str) -> list[int]:
        if part == "camera":
            with contextlib.suppress(AssertionError):  # the camera ended with `run`
                return self._bench.cameras()
            return []
        if part == "guardian":
            return [int(pid) for pid in children_of(self._bench.pid("wheels"))]
        return [self._bench.pid(part)]

    def mend(self) -> None:
        """Continue the processes that still hang."""
        for helper in self._helpers:
            helper.over.set()
        for pid in self._hung:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._hung.clear()


def off_after_s(ground: Ground, pair: Pair, gap_s: float) -> float:
    """Drive, bring both faults, and return the seconds from the second fault to the last moment
    at which a motor was driven.

    Raises AssertionError if the car drives on, or moves again while the stick is still held.
    """
    bench = ground.bench
    wait_for(lambda: reason(bench) != NO_ANSWER, "run did not come back", 20.0)
    make_whole(bench)
    faults = Faults(bench)
    with ground.driver("direct") as driver, bench.watch() as watch:
        sit_down(driver)
        free(driver)
        set_off(driver, watch)
        try:
            faults.bring(pair[0])
            time.sleep(gap_s)
            now_ns = time.monotonic_ns()
            faults.bring(pair[1])
            wait_for(lambda: not watch.now.driving, f"{pair}: it drives on")
            time.sleep(TWO_FAULTS_S)
            taken_s, stood = watch.stopped_after_s(now_ns), len(watch.samples)
        finally:
            faults.mend()
        time.sleep(HELD_S)
        stood_still(watch, stood, f"{pair}")
    return taken_s

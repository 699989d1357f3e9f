"""Stop times, from the failure to the last moment at which a bridge was driven."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator

from tests.bench.rig import Given, running
from tests.bench.rows import Aim, Result, row
from tests.e2e.driver import Driver, free
from tests.e2e.harness import RunningBench, wait_for
from tests.e2e.test_who_stops import answers, forward


def lift(bench: RunningBench, driver: Driver) -> int:
    """The finger lifts."""
    now_ns = time.monotonic_ns()
    driver.drive(0.0, 0.0)
    return now_ns


def hush(bench: RunningBench, driver: Driver) -> int:
    """Nothing comes any more."""
    driver.sending = driver.pinging = False
    return time.monotonic_ns()


def signalled(unit: str, number: signal.Signals) -> Callable[..., int]:
    """A process is killed or stopped."""
    return lambda bench, driver: bench.kill(unit, number)


CAUSES: dict[str, tuple[Callable[..., int], float]] = {
    "finger lifts": (lift, 40),
    "link silent": (hush, 300),
    "run killed": (signalled("run", signal.SIGKILL), 50),
    "run stopped": (signalled("run", signal.SIGSTOP), 150),
    "wheels killed": (signalled("wheels", signal.SIGKILL), 300),
    "wheels stopped": (signalled("wheels", signal.SIGSTOP), 300),
    "pigpiod killed": (signalled("pigpiod", signal.SIGKILL), 500),
    "pigpiod stopped": (signalled("pigpiod", signal.SIGSTOP), 500),
}


def rows(given: Given) -> Iterator[Result]:
    """Every cause, as often as asked for."""
    with running() as bench:
        for name, (cause, limit) in CAUSES.items():
            values = [one_stop(bench, cause) * 1000.0 for _ in range(given.runs)]
            yield row("stop", name, "ms", values, Aim(worst=limit))


def one_stop(bench: RunningBench, cause: Callable[..., int]) -> float:
    """Drives off, lets something fail, and waits until the bench is whole again."""

    wait_for(lambda: answers(bench.port), "run did not come back", 15.0, 0.2)
    driver = Driver(bench.port, client="bench-driver-1")
    with driver, bench.watch() as watch:
        wait_for(lambda: driver.state.get("role") == "driver", "no seat", 15.0)
        free(driver)
        forward(driver, watch)
        now_ns = cause(bench, driver)
        wait_for(lambda: not watch.now.driving, "drives on")
        taken_s = watch.stopped_after_s(now_ns)
        for pid in bench.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    return taken_s

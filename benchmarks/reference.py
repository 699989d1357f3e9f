"""Reference load: a fixed loop of pure Python; CPU is reported as a ratio to it.

    python -m benchmarks.reference

Machines differ by a third from day to day, and by their other users. The loop wakes as often as
`run` does and works as little each time, so that its caches are as cold.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.rows import RATIO, Aim, Row, row

EVERY_S, ROUNDS = 0.01, 600
AIMED = 0.80
"""CPU of the loop on the machine that the aims are for, in % of a core: there all of `run` with
a driver took 5.5 % once."""
NAME = "reference"


def cpu_s(pid: int) -> float:
    """Return CPU time of a process so far, all threads: clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def main() -> None:
    """Run the loop until killed. Never change it: all ratios would change."""
    while True:
        time.sleep(EVERY_S)
        table: dict[int, int] = {}
        total = 0
        for number in range(ROUNDS):
            key = number & 63
            table[key] = table.get(key, 0) + number
            total += len(table)


@contextmanager
def beside() -> Iterator[int]:
    """Run the loop within the context; yield its process id."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.reference"], cwd=Path(__file__).resolve().parents[1]
    )
    try:
        time.sleep(0.3)  # exclude its start-up
        yield process.pid
    finally:
        process.kill()
        process.wait()


def shares(pids: Mapping[str, int], windows: int, seconds: float) -> dict[str, list[float]]:
    """Return CPU of each process and of the reference, in % of a core, window by window."""
    results: dict[str, list[float]] = {}
    with beside() as loop:
        all_pids = {**pids, NAME: loop}
        for _ in range(windows):
            start_s = {name: cpu_s(pid) for name, pid in all_pids.items()}
            began_s = time.monotonic()
            time.sleep(seconds / windows)
            took_s = time.monotonic() - began_s
            for name, pid in all_pids.items():
                share = 100 * (cpu_s(pid) - start_s[name]) / took_s
                results.setdefault(name, []).append(share)
    return results


def aimed(percent: float) -> Aim:
    """Return the aim for so much of a core of the target machine, as a ratio."""
    return Aim(median=percent / AIMED)


def rows(
    part: str,
    name: str,
    cpu: Sequence[float],
    loop: Sequence[float],
    aim: Aim | None = None,
    note: str = "",
) -> Iterator[Row]:
    """Yield CPU in % of a core, and as a ratio to the reference; the aim is the ratio's."""
    ratios = [used / reference for used, reference in zip(cpu, loop, strict=True)]
    yield row(part, name, "%", cpu, note=note)
    yield row(part, f"{name} / loop", RATIO, ratios, aim)


def micros(more: Row, less: Row, per_s: float) -> float:
    """Return the cost of one of `per_s` events, in us on the machine that aims are for, from the
    ratios of two rows, with them and without."""
    return (more.median - less.median) * AIMED * 1e4 / per_s


if __name__ == "__main__":
    main()

"""Resident memory while somebody drives and watches; no heavy library in it."""

import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.harness import GUARD

from benchmarks.rig import Given, opened, running
from benchmarks.rows import Aim, Result, row


def resident_mb(pid: int) -> float:
    """VmRSS of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no memory")


HEAVY = ("numpy", "mujoco", "libav", "OpenGL")


def heavy(pid: int) -> list[str]:
    """Which heavy libraries a process has mapped."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return [name for name in HEAVY if name in maps]


def rows(given: Given) -> Iterator[Result]:
    """`run` and `wheels` with one driver who watches."""
    with (
        given.chromium() as browser,
        running(GUARD) as bench,
        opened(browser, bench.url),
    ):
        time.sleep(5.0)
        for unit, limit in (("run", 45.0), ("wheels", 20.0)):
            pid = bench.pid(unit)
            resident, mapped = [resident_mb(pid)], ", ".join(heavy(pid))
            yield row("memory", f"{unit}, resident", "MB", resident, Aim(worst=limit),
                      f"has {mapped} mapped" if mapped else "")  # fmt: skip

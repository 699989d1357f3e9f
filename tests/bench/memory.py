"""Resident memory while somebody drives and watches."""

import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.rig import Given, opened, running
from tests.bench.rows import Aim, Result, row


def resident_mb(pid: int) -> float:
    """VmRSS of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no memory")


def rows(given: Given) -> Iterator[Result]:
    """`run` and `wheels` with one driver who watches."""
    with given.chromium() as browser, running() as bench, opened(browser, bench.url):
        time.sleep(5.0)
        for unit, limit in (("run", 60.0), ("wheels", 25.0)):
            resident = [resident_mb(bench.pid(unit))]
            yield row("memory", f"{unit}, resident", "MB", resident, Aim(worst=limit))

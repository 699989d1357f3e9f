"""What the bench knows of its own machine."""

import os
import subprocess
import sys

from fpvcar.hil.bench_rig import below, waits_s
from tests.e2e.harness import wait_for

BURN = "while True: pass"


def test_who_shares_a_core_waits() -> None:
    (core, *_) = sorted(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(2)]
    try:
        for one in busy:
            os.sched_setaffinity(one.pid, {core})
        assert set(below(os.getpid())) >= {one.pid for one in busy}
        waited_s = waits_s(os.getpid())
        wait_for(lambda: waited_s() > 0.05, "two on one core, and nobody waits")
    finally:
        for one in busy:
            one.kill()
            one.wait()

"""Processes and processor waits that the bench measures on its own machine."""

import os
import signal
import subprocess
import sys

from testkit.harness import wait_for

from fpvbench.hil_rig import below, waits_s

BURN = f"{sys.executable} -c 'while True: pass' & echo $!; wait"


def test_processes_on_a_shared_core_wait() -> None:
    (core, *_) = sorted(os.sched_getaffinity(0))
    shells = [subprocess.Popen(["sh", "-c", BURN], stdout=subprocess.PIPE) for _ in range(2)]
    busy = [int(one.stdout.readline()) for one in shells if one.stdout]
    try:
        for pid in busy:
            os.sched_setaffinity(pid, {core})
        assert set(below(os.getpid())) >= {*busy, *(one.pid for one in shells)}
        waited_s = waits_s(os.getpid())
        wait_for(lambda: waited_s() > 0.05, "two on one core, and nobody waits")
        assert waits_s(os.getpid())() < waited_s(), "from now on"
    finally:
        for pid in busy:
            os.kill(pid, signal.SIGKILL)
        for one in shells:
            one.communicate()

"""Whole-store jobs for tests: a store of short drives, a Dask cluster of real processes, and plants
in its workers.

A plant is a change of the program in the processes that work on sessions: `sitecustomize` on their
PYTHONPATH. It reads the file PLANTS before each session: {"gate": true, "hang": "NAME"}.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from testkit import mcaps
from testkit.base_station.queries import scan
from testkit.base_station.stored import put
from testkit.harness import wait_for
from testkit.mcaps import Drive, McapFile
from testkit.network.ports import free_port

CAR, CAUSE = "Plague", "estop_grown_up"
START_S = 60.0
PLANT = r"""
import json, os, signal, sys, time

if "fpvstation.batch.tasks" in sys.orig_argv:
    from msgspec import structs
    from fpvcar.drive import gate
    from fpvcar.recordings.replay import drives

    replay_drives, decide = drives.replay_drives, gate.decide
    plants = {}

    def planted_decide(*arguments):
        decision = decide(*arguments)
        hold = decision.latches.hold
        if plants.get("gate") and hold is not None and hold.cause == "estop_grown_up":
            return structs.replace(decision, throttle=0.125)
        return decision

    def planted_replay(paths, *rest):
        plants.clear()
        with open(os.environ["PLANTS"]) as file:
            plants.update(json.load(file))
        name = str(paths[0])
        if plants.get("hang", "(none)") in name:
            while True:
                pass
        if plants.get("large", "(none)") in name:
            bytearray(10**10)
        if plants.get("crash", "(none)") in name:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(plants.get("slow_s", 0.0))
        return replay_drives(paths, *rest)

    gate.decide, drives.replay_drives = planted_decide, planted_replay
"""


def fill(root: Path, count: int, seconds: float = 6.0) -> list[str]:
    """Make a store of drives with the real gate; return its sessions. A third of them differ."""
    root.mkdir(parents=True)
    store = Store(Folder(root))
    store.open("")
    steps = [Drive(seed).go(seconds) for seed in (1, 2, 3)]
    for number in range(count):
        name = f"{CAR}-20251121T{number // 3600:02}{number // 60 % 60:02}{number % 60:02}Z"
        contents = list(mcaps.step_messages(steps[number % 3]))
        file = McapFile(contents, profile=Drive(1).profile, recording=name)
        put(store, f"{name}-0001.mcap", b"".join(file.chunks()), CAR)
    return sorted(store.sessions())


def planted_times(root: Path, session: str) -> list[int]:
    """Return the UTC times, in us, of the steps that the plant "gate" changes."""
    steps = scan(sorted((root / session).glob("*.mcap"))).topics["/step"]
    return [
        at_ns // 1000
        for at_ns, step in steps
        if (hold := step["after"].get("hold")) and hold["cause"] == CAUSE
    ]


class Cluster:
    """Scheduler and workers, each a process with a session of its own, in `home`."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        (home / "sitecustomize.py").write_text(PLANT)
        self._plants, self._log = home / "plants.json", home / "log"
        self.plant()
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(home),
            "PLANTS": str(self._plants),
            "STATE_DIRECTORY": str(home / "state"),
            "DASK_TEMPORARY_DIRECTORY": str(home / "dask"),
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s",
        }
        port = free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        options = ["--host=127.0.0.1", f"--port={port}", "--no-dashboard"]
        self._processes = [self._start("dask", "scheduler", *options)]
        self.workers = list[subprocess.Popen[bytes]]()

    def _start(self, *argv: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", *argv],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def add_workers(self, count: int) -> None:
        """Start workers, one process each."""
        wait_for(lambda: "Scheduler at" in self._log.read_text(), "no scheduler", START_S, 0.1)
        for _ in range(count):
            self.workers.append(self._start("fpvstation", "worker", self.address, "--workers=1"))
        self._processes += self.workers[-count:]

    def plant(self, **plants: object) -> None:
        """Replace the plants: hang, large and crash name a session; slow_s delays all."""
        self._plants.write_text(json.dumps(plants))

    def batch(self, *argv: object, here: int = 0) -> subprocess.Popen[str]:
        """Start `fpvstation batch` on the cluster, or on so many processes of its own."""
        place = [f"--workers={here}"] if here else [f"--cluster={self.address}"]
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "fpvstation", "batch", *map(str, argv), *place],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def kill(self, number: int) -> None:
        """Kill a worker as a loss of its machine does: all processes at once."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()

    def busy(self, number: int) -> bool:
        """Return whether a worker has a session."""
        return bool(children_of(self.workers[number].pid))

    def end(self) -> None:
        for process in self._processes:
            for sid in members(process.pid):
                os.kill(sid, signal.SIGKILL)
            process.wait()


def members(session: int) -> list[int]:
    """Return the processes of a session (setsid) that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(sid) == session and state != "Z":
            found.append(int(path.parent.name))
    return found


def children_of(session: int) -> list[int]:
    """Return the processes of a session that work on recordings, and have begun."""
    found = []
    for pid in members(session):
        path = Path(f"/proc/{pid}/cmdline")
        if path.exists() and "fpvstation.batch.tasks" in path.read_text().split("\0"):
            found.append(pid)
    return found


def finished(process: subprocess.Popen[str], limit_s: float = 60.0) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr of a process."""
    out, errors = process.communicate(timeout=limit_s)
    return process.returncode, out, errors


def result_of(out: str, sessions: Sequence[str]) -> dict[str, str]:
    """Return the result of each session that the output names."""
    lines = (line.split() for line in out.splitlines() if not line.startswith(" "))
    return {words[0]: words[1] for words in lines if words and words[0] in sessions}

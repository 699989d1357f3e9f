"""Base stations as processes, and queries over HTTP."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from fpvcar.runtime import pdeathsig
from testkit.base_station.queries import QueryWorld
from testkit.harness import wait_for
from testkit.network.ports import free_port


class Station(AbstractContextManager["Station"]):
    """`fpvstation run` as a process, with its log in `home`; `env` adds variables.

    It ends in order, or by `kill`; otherwise leaving it fails.
    """

    def __init__(self, home: Path, *options: str, store: Path | None = None, **env: str) -> None:
        self.store, self.port = store or home / "store", free_port()
        self.url, self.log = f"http://localhost:{self.port}", home / "station.log"
        self._argv = [sys.executable, "-m", "fpvstation", "run", f"--port={self.port}"]
        self._argv += [f"--store={self.store}", *options]
        self._env = {**os.environ, **env}
        self.start()

    def start(self) -> None:
        """Start the station, also again."""
        self._killed = False
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._argv, env=self._env, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill the station with SIGKILL."""
        self._killed = True
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL, self.log.read_text()

    def __exit__(self, *_: object) -> None:
        if not self._killed:
            pdeathsig.end(self.process, 60.0)
            assert self.process.returncode == 0, self.log.read_text()

    def segments(self) -> list[Path]:
        """Return the published segments of the store."""
        return sorted(self.store.glob("*/*/*/*.mcap"))

    def ask(self, path: str) -> Any:
        """Return the answer of the station's page."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.load(answer)


def station_over(world: QueryWorld, home: Path) -> Station:
    """Run a station over the store and the state of queries."""
    return Station(home, store=world.root, STATE_DIRECTORY=str(world.state))


def ask(url: str, sql: str) -> Any:
    """Return the rows of a query over HTTP; [] while the station starts."""
    try:
        with urllib.request.urlopen(f"{url}/api/query", sql.encode(), timeout=90) as answer:
            return json.load(answer)["rows"]
    except OSError:
        return []


@contextmanager
def serving(home: Path, *more: str) -> Iterator[int]:
    """Run a station over store and settings of `home`; yield its port."""
    config = f"--config={home}/station.toml"
    with Station(home, config, *more, XDG_STATE_HOME=str(home)) as station:
        wait_for(lambda: "page" in station.log.read_text(), "no station", 30.0)
        yield station.port

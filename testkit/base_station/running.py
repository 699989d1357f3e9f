"""Base stations as processes, and queries over HTTP."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testkit.base_station.queries import QueryWorld
from testkit.harness import wait_for
from testkit.network.ports import free_port


@contextmanager
def station(world: QueryWorld, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a station over a store; yield its process and its URL."""
    port = free_port()
    argv = [sys.executable, "-m", "fpvstation", "run", f"--store={world.root}", f"--port={port}"]
    environment = {**os.environ, "STATE_DIRECTORY": str(world.state)}
    with log.open("ab") as out:
        process = subprocess.Popen(argv, env=environment, stdout=out, stderr=out)
    try:
        yield process, f"http://localhost:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20.0)


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
    port = free_port()
    argv = [sys.executable, "-m", "fpvstation", "run", f"--port={port}"]
    argv += [f"--store={home}/store", f"--config={home}/station.toml", *more]
    env = {**os.environ, "XDG_STATE_HOME": str(home)}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
        try:
            wait_for(lambda: "page" in (home / "log").read_text(), "no station", 30.0)
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20.0) == 0, (home / "log").read_text()

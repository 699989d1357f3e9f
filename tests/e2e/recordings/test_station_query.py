"""Queries to a station that runs: it writes sidecars, answers over HTTP, and serves its page."""

import json
import os
import shutil
import threading
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from testkit.base_station.queries import SESSION, QueryWorld, sample_rows
from testkit.base_station.running import ask, station_over
from testkit.harness import wait_for

pytestmark = pytest.mark.e2e
STATION_MB = 400
SLOW = "SELECT count(*) FROM range(100000) a, range(100000) b WHERE a.range % 7 = b.range"


def answers(url: str, sql: str, expected: Any) -> bool:
    return bool(ask(url, sql) == expected)


def peak_mb(pid: int) -> float:
    """Return the largest resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) / 1000


def test_station_writes_sidecars_again_after_kills(tmp_path: Path) -> None:
    world = QueryWorld(tmp_path)
    world.catalogue.close()
    old_s = time.time() - 3600.0
    for sums in world.root.rglob("SHA256SUMS"):
        os.utime(sums, (old_s, old_s))
    expected = [[len(list(sample_rows(world.files())))]]
    count = f"SELECT count(*) FROM samples WHERE session = '{SESSION}'"
    for end in ("lost", "killed", "ended"):
        with station_over(world, tmp_path) as station:
            wait_for(partial(answers, station.url, count, expected), "no sidecar", 120.0, 0.5)
            if end == "killed":
                station.kill()
        if end == "lost":
            shutil.rmtree(world.keeper.folder)
    log = station.log.read_text()
    assert "Traceback" not in log, log


@pytest.mark.long
def test_station_serves_its_page_during_a_query(tmp_path: Path) -> None:
    world = QueryWorld(tmp_path)
    world.catalogue.close()
    with station_over(world, tmp_path) as station:
        url = station.url
        wait_for(lambda: ask(url, "SELECT 1") == [[1]], "no answer", 60.0, 0.5)

        def latencies(seconds: float) -> list[float]:
            taken, until_s = list[float](), time.monotonic() + seconds
            while time.monotonic() < until_s:
                began_s = time.monotonic()
                with urllib.request.urlopen(f"{url}/api/recordings/drives", timeout=20) as answer:
                    assert json.load(answer)["drives"]
                taken.append(time.monotonic() - began_s)
                time.sleep(0.01)
            return sorted(taken)

        quiet = latencies(10.0)
        asking = threading.Thread(target=ask, args=(url, SLOW))
        asking.start()
        busy = latencies(10.0)
        asking.join()
        assert busy[len(busy) * 9 // 10] < 0.02 + 2.0 * quiet[len(quiet) * 9 // 10]
        assert peak_mb(station.process.pid) < STATION_MB

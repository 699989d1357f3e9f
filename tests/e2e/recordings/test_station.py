"""A station beside a car, in real processes: drives come home, whichever part ends."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from testkit.base_station.running import Station
from testkit.driver import Driver, free, sit_down
from testkit.harness import STRIP, RunningBench, apart, started, wait_for
from testkit.network.sshd import Sshd

from fpvcar.runtime.units import counted
from fpvstation.fetch import client
from fpvstation.fetch.cars import Cars

pytestmark = pytest.mark.e2e
COMES_S = 180.0


def beside(bench: RunningBench, home: Path, *options: str, path: str = "") -> Station:
    """Run a station beside a car, with the car's state; `path` comes first in its PATH."""
    own = home / "own"
    own.mkdir()
    (own / "fpvcar").symlink_to(bench.state)
    car = f"--beside=http://127.0.0.1:{bench.port}"
    path = os.pathsep.join(filter(None, (path, os.environ["PATH"])))
    return Station(home, car, *options, XDG_STATE_HOME=str(own), PATH=path)


def drives_of(station: Station) -> Any:
    """Return the drives that the station's page lists."""
    return station.ask("/api/recordings/drives")["drives"]


def fetched(folder: Path) -> list[str]:
    """Return the car's segments that have a receipt."""
    return sorted(one.name.removesuffix(".ack") for one in folder.glob("*.ack"))


async def proves_itself(bench: RunningBench, home: Path) -> None:
    """Assert that the car proves its certificate to a station by the station's key."""
    url = f"https://127.0.0.1:{bench.port + 1}"
    shown = await client.fingerprint_of(url)
    code = json.loads((bench.state / "codes.json").read_text())["grown_up"]
    made = await client.pair(url, shown, code, "workshop")
    assert await client.certificate_of(Cars(home).add(made, url, shown)) == shown


def test_drives_come_home_though_processes_are_killed(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    options = [
        STRIP,
        "--host=0.0.0.0",
        "--set=recording.segment_s = 5",
        "--set=recording.station = true",
        f"--set=recording.directory = '{recordings}'",
    ]
    with started(tmp_path, *options) as bench, beside(bench, tmp_path) as station:
        wait_for(lambda: bool(station.segments()), "nothing came", COMES_S)
        dice = random.Random(1)
        for part in ("station", "car", "station", "car", "both", "both"):
            if part != "car":
                station.kill()
                station.start()
            if part != "station":
                bench.kill("run")  # the bench starts it again
            time.sleep(dice.uniform(0.2, 2.0))
        there = len(station.segments())
        wait_for(lambda: len(station.segments()) > there + 1, "no more came", COMES_S)
        wait_for(lambda: len(fetched(recordings)) > there, "no receipts", COMES_S)
        (state,) = station.ask("/api/status")["cars"]
        assert state["folder"] == "Plague" and not state["bad"]
        wait_for(lambda: bool(drives_of(station)), "not in the catalogue", COMES_S)
        assert drives_of(station)[-1]["parts"]
        status = subprocess.run(
            [sys.executable, "-m", "fpvstation", "status", f"--port={station.port}"],
            capture_output=True,
            text=True,
        )
        assert status.returncode == 0 and "Plague: " in status.stdout
        apart(lambda: asyncio.run(proves_itself(bench, tmp_path)))
    judge(station, recordings)


@pytest.mark.smoke
def test_drive_comes_home_and_is_replicated_to_an_office_over_ssh(
    rdma_tools: Path, sshd: Sshd, tmp_path: Path
) -> None:
    office, config = tmp_path / "office", tmp_path / "station.toml"
    office.mkdir()
    far = ["--ssh", sshd.command, "--remote-path", str(rdma_tools)]
    config.write_text(f"[replicas]\ntarget = 'host1:{office}'\noptions = {json.dumps(far)}\n")
    options = [STRIP, "--set=recording.segment_s = 5", "--set=recording.station = true"]
    with (
        started(tmp_path, *options) as bench,
        beside(bench, tmp_path, f"--config={config}", path=str(rdma_tools)) as station,
    ):
        with Driver(bench.port) as driver:
            sit_down(driver)
            free(driver)
            wait_for(lambda: bool(fetched(bench.state / "recordings")), "no receipt", COMES_S)
            station.kill()
            station.start()  # else the replicator waits for a minute without a new segment
            wait_for(lambda: bool(list(office.glob("*/*/*/*.mcap"))), "not replicated", COMES_S)
    for copy in office.glob("*/*/*/*.mcap"):
        assert copy.read_bytes() == (station.store / copy.relative_to(office)).read_bytes()
    judge(station, bench.state / "recordings")


def judge(station: Station, recordings: Path) -> None:
    """Check the store by `sha256sum`, by the reader, and against the car's files."""
    stored = {one.name: one for one in station.segments()}
    assert len(stored) == len(station.segments()), "a segment is there twice"
    for name in fetched(recordings):
        assert stored[name].read_bytes() == (recordings / name).read_bytes()
    for sums in station.store.glob("*/*/*/SHA256SUMS"):
        subprocess.run(["sha256sum", "--quiet", "-c", sums.name], cwd=sums.parent, check=True)
    files = [str(one) for one in stored.values()]
    argv = [sys.executable, "-m", "fpvcar", "log", "verify", *files]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(
        [sys.executable, "-m", "fpvstation", "verify", f"--store={station.store}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"good: {counted(len(stored), 'segment')}" in done.stdout

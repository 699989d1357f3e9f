"""Base station: its fetch rate, and the effect of a fetch on the car and its driver.

Over plain http, to exclude the cost of TLS.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testkit.harness import RunningBench, wait_for
from testkit.network.lan import Lan
from testkit.network.ports import free_port

from benchmarks.browser import glass
from benchmarks.browser.control import press_to_pin
from benchmarks.browser.video import CANVAS, FPS, source
from benchmarks.memory import resident_mb
from benchmarks.recordings.recording import DriverSamples
from benchmarks.rig import Settings, opened, running, say
from benchmarks.rows import RATIO, Aim, Note, Result, Row, ratio, row
from fpvcar.access.codes import load_codes
from fpvcar.runtime.units import MB, MIB

PART = "station"
ROOT = Path(__file__).resolve().parents[2]
SEGMENT_BYTES = 16 * MB
SEGMENTS, REPEATS = 20, 11
LINK_BITS_S, QUEUE_BYTES = 50_000_000, 250_000
OUTAGE_S, OUTAGE_EVERY_S = 1.0, 20.0
CARS, OF_EACH = 10, 4
SIGHT_S, PRESSES = 15.0, 20
SAME = 1.1
TWENTY_MBIT_S = 20e6 / 8
IDLE_S = 5.0
LIMIT_S = 900.0
TICKS = os.sysconf("SC_CLK_TCK")


def fill(folder: Path, car: str, count: int) -> int:
    """Write segments of a drive, as large as real ones; return their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(1)
    for number in range(1, count + 1):
        name = f"{car}-20260101T100000Z-{number:04d}.mcap"
        (folder / name).write_bytes(dice.randbytes(SEGMENT_BYTES))
    return count * SEGMENT_BYTES


def ends(*arguments: object) -> list[str]:
    """Return the command of one end's process."""
    program = "benchmarks.recordings.station_ends"
    return [sys.executable, "-m", program, *map(str, arguments)]


@contextmanager
def cars(home: Path, host: str, count: int, segments: int) -> Iterator[list[dict[str, str]]]:
    """Serve so many cars with so many segments each; save the station's list of them in
    `home`/state."""
    for number in range(count):
        fill(home / "cars" / f"Car{number}", f"Car{number}", segments)
    argv = ends("cars", home / "cars", host, count)
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        listed = process.stdout.readline()
        (home / "state").mkdir(exist_ok=True)
        (home / "state" / "cars.json").write_text(listed)
        yield json.loads(listed)
    finally:
        process.kill()
        process.wait()


def pulled_s(home: Path, count: int, enter: Sequence[str] = ()) -> float:
    """Return the time that a new store takes to fetch so many segments."""
    shutil.rmtree(home / "store", ignore_errors=True)
    os.sync()
    argv = [*enter, *ends("pull", home / "state", home / "store", count)]
    done = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    return float(done.stdout)


def curled_s(home: Path, url: str, names: Sequence[str]) -> float:
    """Return the time of curl for the files in sequence on one connection, without any sync."""
    out = home / "curl"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    os.sync()
    arguments = [
        argument
        for name in names
        for argument in ("-o", str(out / name), f"{url}/api/recordings/{name}")
    ]
    began_s = time.monotonic()
    subprocess.run(["curl", "-sS", "--fail", *arguments], check=True, timeout=LIMIT_S)
    return time.monotonic() - began_s


def beside_curl() -> Iterator[Row]:
    """Compare with curl for the same bytes, in turn."""
    ours, theirs = [], []
    size = SEGMENTS * SEGMENT_BYTES / MB
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with cars(home, "127.0.0.1", 1, SEGMENTS) as (car,):
            names = sorted(os.listdir(home / "cars" / "Car0"))
            pulled_s(home, SEGMENTS)  # makes the car compute its checksums, once
            names = [name for name in names if name.endswith(".mcap")]
            for number in range(REPEATS):
                say(f"station: pull beside curl, {number + 1} of {REPEATS}")
                theirs.append(size / curled_s(home, car["url"], names))
                forget_receipts(home)
                ours.append(size / pulled_s(home, SEGMENTS))
    note = "loopback; hashes, sync"
    pull = row(PART, "pull", "MB/s", ours, note=note)
    curl = row(PART, "curl of the same bytes", "MB/s", theirs, note="no sync")
    yield from (pull, curl, ratio(PART, "pull / curl", pull, curl, Aim(least=0.6)))


def forget_receipts(home: Path) -> None:
    """Reset the cars to a state before any receipt."""
    for receipt in (home / "cars").glob("*/*.ack"):
        receipt.unlink()


def over_a_bad_link() -> Iterator[Result]:
    """Measure at 50 Mbit/s with an outage of a second in twenty."""
    if os.geteuid() != 0:
        yield Note(PART, "a link with outages needs root")
        return
    say("station: a link with outages")
    with tempfile.TemporaryDirectory() as folder, Lan(offload=True) as lan:
        home = Path(folder)
        with cars(home, lan.near, 1, SEGMENTS):
            ended, outages = threading.Event(), list[float]()
            lan.narrow(LINK_BITS_S, QUEUE_BYTES)

            def cut() -> None:
                while not ended.wait(OUTAGE_EVERY_S - OUTAGE_S):
                    lan.lose()
                    ended.wait(OUTAGE_S)
                    lan.find()
                    outages.append(OUTAGE_S)

            cutting = threading.Thread(target=cut)
            cutting.start()
            try:
                took_s = pulled_s(home, SEGMENTS, lan.enter)
            finally:
                ended.set()
                cutting.join()
    through = (took_s - sum(outages)) * LINK_BITS_S / 8
    note = f"{len(outages)} outages of {OUTAGE_S:.0f} s in {took_s:.0f} s"
    yield row(
        PART,
        "pull, 50 Mbit/s with outages / what passes",
        RATIO,
        [SEGMENTS * SEGMENT_BYTES / through],
        Aim(least=0.9),
        note,
    )


def paired(bench: RunningBench, home: Path) -> None:
    """Pair a station in `home` with the bench's car."""
    code = load_codes(bench.state).grown_up
    env = {**os.environ, "FPVSTATION_CODE": code, "STATE_DIRECTORY": str(home / "state")}
    argv = [sys.executable, "-m", "fpvstation", "pair", f"127.0.0.1:{bench.port}"]
    subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL)


def recorded(home: Path) -> list[str]:
    """Return options of a bench with many recordings."""
    fill(home / "recordings", "Plague", SEGMENTS)
    return [f"--set=recording.directory = '{home}/recordings'", "--set=recording.station = true"]


def cpu_s(pid: int) -> float:
    """Return CPU time of a process: proc(5), fields 14 and 15."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def car_cost() -> Iterator[Row]:
    """Measure CPU per byte, as at 20 Mbit/s, and the car's memory."""
    say("station: what the car pays")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with running(*recorded(home)) as bench:
            paired(bench, home)
            pid = bench.pid("run")
            before_s = cpu_s(pid)
            time.sleep(IDLE_S)
            idle = (cpu_s(pid) - before_s) / IDLE_S
            before_s, before_mb = cpu_s(pid), resident_mb(pid)
            took_s = pulled_s(home, SEGMENTS)
            spent_s = cpu_s(pid) - before_s - idle * took_s
            grown_mb = resident_mb(pid) - before_mb
    share = 100.0 * spent_s / (SEGMENTS * SEGMENT_BYTES) * TWENTY_MBIT_S
    yield row(
        PART,
        "CPU of run for being pulled at 20 Mbit/s",
        "%",
        [share],
        Aim(worst=4.0),
        "by its bytes; sums are reckoned, too",
    )
    yield row(PART, "memory of run, more after being pulled", "MB", [grown_mb], Aim(worst=8.0))


def driver_rows(settings: Settings) -> Iterator[Row]:
    """Measure on one bench: alone, pulled, pulled, alone."""
    alone, pulled = DriverSamples(), DriverSamples()
    with tempfile.TemporaryDirectory() as folder, settings.chromium() as browser:
        home = Path(folder)
        with (
            running(*source("strip", FPS), *recorded(home)) as bench,
            opened(browser, bench.url) as page,
        ):
            paired(bench, home)
            for pulls in (False, True, True, False):
                say(f"station: what the driver feels{', pulled' * pulls}")
                samples = pulled if pulls else alone
                with pulling(home) if pulls else no_pull():
                    picture, _ = glass.watch(page, CANVAS, SIGHT_S)
                    samples.ages += picture.ages_ms
                    samples.presses += press_to_pin(page, bench, PRESSES)
    for name, values, baseline in (
        ("age of the picture", pulled.ages, alone.ages),
        ("key press to pin", pulled.presses, alone.presses),
    ):
        with_it = row(PART, f"{name}, pulled", "ms", values, note="guard off")
        without = row(PART, f"{name}, not pulled", "ms", baseline, note="guard off")
        yield from (with_it, without)
        yield row(
            PART, f"{name}: p99, pulled / not", RATIO, [with_it.p99 / without.p99], Aim(worst=SAME)
        )


@contextmanager
def pulling(home: Path) -> Iterator[None]:
    """Run a station within the context that fetches until all is stored: the car gives a station
    1 MB/s during a drive."""
    for receipt in (home / "recordings").glob("*.ack"):
        receipt.unlink()
    shutil.rmtree(home / "store", ignore_errors=True)
    argv = ends("pull", home / "state", home / "store", 10**9)
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: bool(list(home.glob("store/.incoming/*/*"))), "no pull", 60.0)
        yield
        assert process.poll() is None, "it ended"
    finally:
        process.kill()
        process.wait()


@contextmanager
def no_pull() -> Iterator[None]:
    """Run no station within the context."""
    yield


def memory_of_many() -> Iterator[Row]:
    """Measure `fpvstation run`, including its page and catalogue."""
    say(f"station: memory with {CARS} cars")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with cars(home, "127.0.0.1", CARS, OF_EACH):
            port = free_port()
            argv = [
                sys.executable,
                "-m",
                "fpvstation",
                "run",
                f"--port={port}",
                f"--store={home}/store",
                f"--config={home}/none",
            ]
            env = {**os.environ, "STATE_DIRECTORY": str(home / "state")}
            process = subprocess.Popen(
                argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                total = CARS * OF_EACH
                wait_for(
                    lambda: len(list(home.glob("store/*/*/*/*.mcap"))) == total,
                    "they did not come",
                    LIMIT_S,
                )
                status = Path(f"/proc/{process.pid}/status").read_text()
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()
    (peak,) = (
        int(line.split()[1]) * 1024 / MIB
        for line in status.splitlines()
        if line.startswith("VmHWM")
    )
    yield row(
        PART,
        f"memory of the station, {CARS} cars pulled",
        "MB",
        [peak],
        Aim(worst=150.0),
        "its peak",
    )


def rows(settings: Settings) -> Iterator[Result]:
    """Measure all parts of the station."""
    yield from beside_curl()
    yield from over_a_bad_link()
    yield from car_cost()
    yield from driver_rows(settings)
    yield from memory_of_many()

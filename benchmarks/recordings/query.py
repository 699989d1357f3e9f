"""Speed of questions to a large store: SQL beside `cat` of the same files, text search, the time to
write a sidecar beside that to verify its session, and `fpvstation batch replay`.

The large store has no recordings, only sidecars: copies of one made of random figures, under the
names of as many sessions, a fortieth of them in each month. QUERY_SESSIONS sets their number: 4,000
need 1.2 GB, 100,000 need 31 GB.
"""

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from testkit.base_station.batch import fill
from testkit.base_station.queries import QueryWorld
from testkit.base_station.running import ask, station_over
from testkit.harness import wait_for

from benchmarks.recordings import replay
from benchmarks.rig import Settings, say
from benchmarks.rows import Aim, Result, Row, ratio, row
from fpvcar.library import checksums
from fpvcar.runtime.units import MB
from fpvstation.query import sidecar
from fpvstation.query.grep import grep
from fpvstation.query.rows import EventRow, SampleRow
from fpvstation.query.sidecar import TABLES

PART = "query"
SESSIONS = int(os.environ.get("QUERY_SESSIONS", "4000"))
MONTHS, ROWS, EVENTS, RUNS = 40, 6000, 60, 5
FILTER = "SELECT count(*), min(front_m) FROM samples WHERE front_m < 0.3 AND throttle_share > 0.5"
LARGE = "SELECT count(DISTINCT hash(range)) FROM range(50000000)"
"""Query that needs more memory than the station gives."""
LONG = "SELECT sum(hash(range)) FROM range(1000000000000)"
"""Query that lasts until the station ends it."""
PAGES, LONG_RUNS = 200, 3
DRIVES, DRIVE_S, BATCH_RUNS = 200, 60.0, 1


def samples(dice: random.Random) -> list[SampleRow]:
    """Return ten minutes of a drive: figures with the digits of real ones."""
    made = []
    for number in range(ROWS):
        shares = [round(dice.uniform(-1.0, 1.0), 3) for _ in range(6)]
        ranges = [round(dice.uniform(0.1, 4.0), 3), None, round(dice.uniform(0.1, 4.0), 3), None]
        ages = [7.4 + dice.random() / 10, dice.random() / 30, 13.0 + dice.random(), 2.0, 0.0]
        at_ns = 1_795_289_460_000_000_000 + number * 100_000_000
        made.append(SampleRow._make([at_ns, "Ann", *shares, "driving", None, *ranges, *ages]))
    return made


def make(world: QueryWorld) -> None:
    """Write the sidecars of all sessions, and the index of their texts."""
    dice, folder = random.Random(1), world.keeper.folder
    events = [
        EventRow(1_795_289_460_000_000_000 + number, "Ann", "stop", "blind", "gate", f"w{number}")
        for number in range(EVENTS)
    ]
    packed = [TABLES[0].packed("P~2026-01-01~P~1~0", samples(dice))]
    packed.append(TABLES[1].packed("P~2026-01-01~P~1~0", events))
    sources, lines = list[tuple[int, str]](), list[tuple[int, int, int]]()
    for number in range(SESSIONS):
        month = number % MONTHS
        day = f"{2023 + month // 12}-{month % 12 + 1:02d}-01"
        stem = f"P{number % 30}~{day}~P-{number:06d}~1~{number:016x}"
        for path, data in zip(sidecar.paths_of(folder, stem), packed, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        sources.append((number + 1, stem))
        lines += [(text % EVENTS + 1, number * 1000 + text, number + 1) for text in range(EVENTS)]
    with sidecar.texts(folder) as db:
        db.executemany("INSERT INTO source VALUES (?, ?, '')", sources)
        texts = [(number + 1, f"gate: stop number {number}") for number in range(EVENTS)]
        texts += [(EVENTS + number, f"Ann: mark {number}") for number in range(1, 2001)]
        db.execute("DELETE FROM text")
        db.executemany("INSERT INTO text VALUES (?, ?)", texts)
        db.executemany("INSERT INTO line VALUES (?, ?, ?, 'stop')", lines)


def seconds(world: QueryWorld, argv: Sequence[str], cold: Sequence[Path] = ()) -> float:
    """Return the duration of a command; the files in `cold` leave the page cache before."""
    for path in cold:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    environment = {**os.environ, "STATE_DIRECTORY": str(world.state)}
    began_s = time.monotonic()
    subprocess.run(
        argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    return time.monotonic() - began_s


def rows(_: Settings) -> Iterator[Result]:
    """Measure queries over SESSIONS sessions."""
    with tempfile.TemporaryDirectory(prefix="fpvcar-bench-") as folder:
        world = QueryWorld(Path(folder))
        yield from sidecar_rows(world)
        make(world)
        os.sync()
        files = world.sidecars("samples")
        size = sum(path.stat().st_size for path in files)
        say(f"{PART}: {SESSIONS} sessions, {size / 1e9:.1f} GB")
        ask_csv = [sys.executable, "-m", "fpvstation", "query", "--csv", f"--store={world.root}"]
        cat = ["sh", "-c", 'find "$0" -name "*.parquet" -exec cat {} + >/dev/null']
        plain = [*cat, str(world.keeper.folder / "samples")]
        note = f"{SESSIONS} sessions, {size / 1e9:.1f} GB"
        for name, cold in (("cold", files), ("warm", ())):
            theirs = row(
                PART, f"cat, {name}", "s", [seconds(world, plain, cold) for _ in range(RUNS)]
            )
            times = [seconds(world, [*ask_csv, FILTER], cold) for _ in range(RUNS)]
            ours = row(PART, f"all months, {name}", "s", times, None, note)
            limit = 1 / 0.8 if name == "cold" else 2.0
            yield from (ours, theirs)
            yield ratio(PART, f"all months / cat, {name}", ours, theirs, Aim(median=limit))
        month = [*ask_csv, f"{FILTER} AND month = '2024-01'"]
        times = [seconds(world, month) for _ in range(RUNS)]
        yield row(PART, "one month", "s", times, Aim(median=1.0), note)
        yield row(PART, "text search", "ms", text_ms(world), Aim(median=100.0), note)
    yield from station_rows()
    yield from batch_rows()


def text_ms(world: QueryWorld) -> list[float]:
    """Return the duration of a search for a rare and a frequent text, without the start."""
    times = []
    for pattern in ("number 7$", "stop") * RUNS:
        began_s = time.monotonic()
        assert grep(world.state, world.store.id, pattern, 1000)
        times.append(1e3 * (time.monotonic() - began_s))
    return times


def sidecar_rows(world: QueryWorld) -> Iterator[Result]:
    """Measure a sidecar of ten minutes of driving with pictures, beside its verification."""
    folder = world.root.parent / "drive"
    folder.mkdir()
    size = replay.drive(folder)
    paths = sorted(folder.glob("*.mcap"))
    job = sidecar.Job("P~2026-01-01~P-0~1~0", [str(path) for path in paths])
    verified, checked, written = list[float](), list[float](), list[float]()
    for _ in range(RUNS):
        began_s = time.monotonic()
        for path in paths:
            checksums.read(path)
        verified.append(time.monotonic() - began_s)
        check = [sys.executable, "-m", "fpvcar", "log", "verify", *map(str, paths)]
        checked.append(seconds(world, check))
        began_s = time.monotonic()
        sidecar.write(world.keeper.folder, job)
        written.append(time.monotonic() - began_s)
    sidecar.remove(world.keeper.folder, job.stem)
    note = f"ten minutes, {size / 1e6:.0f} MB"
    sums = row(PART, "SHA-256 of a session", "s", verified, None, note)
    chunks = row(PART, "fpvcar log verify of it", "s", checked, None, note)
    ours = row(PART, "write its sidecar", "s", written, None, note)
    yield from (sums, chunks, ours, ratio(PART, "sidecar / SHA-256", ours, sums, Aim(median=0.5)))
    yield ratio(PART, "sidecar / log verify", ours, chunks)


def station_rows() -> Iterator[Row]:
    """Measure a station during queries that reach their limits: the memory of all its processes,
    and the list of its page beside the same without a query."""
    peak, answers = 0.0, list[object]()
    with tempfile.TemporaryDirectory(prefix="fpvcar-bench-") as folder:
        world = QueryWorld(Path(folder))
        with station_over(world, Path(folder)) as station:
            url = station.url
            wait_for(lambda: ask(url, "SELECT 1") == [[1]], "no answer", 60.0, 0.5)
            asking = threading.Thread(target=lambda: answers.append(ask(url, LARGE)))
            asking.start()
            while asking.is_alive():
                peak = max(peak, resident_mb(station.process.pid))
                time.sleep(0.02)
            alone, beside, ratios = list[float](), list[float](), list[float]()
            for _ in range(LONG_RUNS):
                before = list_ms(url)
                asking = threading.Thread(target=lambda: answers.append(ask(url, LONG)))
                asking.start()
                during = list_ms(url)
                assert asking.is_alive(), "the query ended too soon"
                asking.join()
                alone, beside = alone + before, beside + during
                p99s = [row(PART, "", "ms", times).p99 for times in (during, before)]
                ratios.append(p99s[0] / p99s[1])
    yield row(
        PART, "station's memory during a query", "MB", [peak], Aim(worst=400.0), "all processes"
    )
    yield row(PART, "list of the page, no query", "ms", alone)
    yield row(PART, "list of the page, during a query", "ms", beside)
    yield row(PART, "p99 of the list, during / without", "x", ratios, Aim(median=1.1))


def list_ms(url: str) -> list[float]:
    """Return the times of so many answers with the page's list."""
    times = []
    for _ in range(PAGES):
        began_s = time.monotonic()
        with urllib.request.urlopen(f"{url}/api/recordings/drives?most=50") as answer:
            answer.read()
        times.append((time.monotonic() - began_s) * 1000)
        time.sleep(0.02)
    return times


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process and its descendants."""
    size = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        size = sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))
    return size / MB


def batch_rows() -> Iterator[Result]:
    """Measure `fpvstation batch replay` with one and two processes, beside a loop of the shell."""
    with tempfile.TemporaryDirectory(prefix="fpvcar-bench-") as folder:
        root = Path(folder, "store")
        fill(root, DRIVES, DRIVE_S)
        environment = {**os.environ, "STATE_DIRECTORY": str(Path(folder, "state"))}

        def took_s(*argv: str) -> float:
            began_s = time.monotonic()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=environment)
            return time.monotonic() - began_s

        batch = (sys.executable, "-m", "fpvstation", "batch", "replay", f"--store={root}")
        loop = 'for session in "$0"/*/*/*/; do "$1" -m fpvcar replay "$session"; done'
        times = dict[str, list[float]]()
        for number in range(BATCH_RUNS):
            say(f"{PART}: batch replay, {number + 1} of {BATCH_RUNS}")
            for count in (1, 2):
                key = f"batch replay, {count} processes"
                times.setdefault(key, []).append(took_s(*batch, f"--workers={count}"))
            key = "loop of fpvcar replay"
            times.setdefault(key, []).append(took_s("sh", "-c", loop, str(root), sys.executable))
    note = f"{DRIVES} drives of {DRIVE_S:.0f} s"
    one, two, shell = (row(PART, name, "s", values, None, note) for name, values in times.items())
    yield from (one, two, shell)
    yield ratio(PART, "batch: one process / two", one, two, Aim(least=1.8))
    yield ratio(PART, "batch: loop / two processes", shell, two, Aim(least=3.0))

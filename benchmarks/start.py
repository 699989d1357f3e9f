"""Start-up time of `run`: its imports, its first picture, and from a kill in the middle of a
drive until the car drives again, with the wheels stopped in between."""

import os
import resource
import select
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from testkit.driver import Driver, free, sit_down
from testkit.harness import STRIP, PinWatch, RunningBench, wait_for
from websockets.exceptions import WebSocketException

from benchmarks.load_viewers import Viewer
from benchmarks.rig import Settings, running
from benchmarks.rows import Aim, Result, row

KILLS, IMPORTS = 5, 9
SOON_S = 20.0
NOTHING = "pass"
RUN = (
    "from fpvcar.cli.verbs import without_authorities\n"
    "with without_authorities(): import fpvcar.app"
)


def import_cpu_s(code: str) -> float:
    """Return CPU seconds of an interpreter that runs this code."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def age_s(pid: int) -> float:
    """Return the time since a process was started: proc(5), field 22."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s


def first_picture_s(bench: RunningBench, dead: int, into: list[float]) -> None:
    """Append the age of the `run` after `dead` when a viewer gets its first picture."""
    wait_for(lambda: bench.pid("run") != dead, "run is not started again", SOON_S)
    end_s = time.monotonic() + SOON_S
    while time.monotonic() < end_s:
        with suppress(OSError):
            viewer = Viewer(bench.port, None)
            with viewer.socket:
                while not viewer.units:
                    select.select([viewer.socket], [], [], SOON_S)
                    viewer.read()
            into.append(age_s(bench.pid("run")))
            return
        time.sleep(0.01)


def drives_again(bench: RunningBench, watch: PinWatch, client: str) -> None:
    """Take the wheel as soon as `run` is back, and drive."""
    while True:
        with suppress(OSError, WebSocketException), Driver(bench.port, client=client) as driver:
            sit_down(driver)
            free(driver)
            driver.drive(0.3, 0.0)
            wait_for(lambda: watch.now.driving, "it does not drive", SOON_S)
            return
        time.sleep(0.01)


def killed(bench: RunningBench) -> tuple[float, float, float]:
    """Kill `run` in the middle of a drive; return seconds until the wheels stop, until the car
    drives again, and from its new start to its first picture."""
    client, pictures = uuid.uuid4().hex, list[float]()
    with PinWatch(bench.soc, bench.pins) as watch:
        with Driver(bench.port, client=client) as driver:
            sit_down(driver)
            free(driver)
            driver.drive(0.3, 0.0)
            wait_for(lambda: watch.now.driving, "it does not drive", SOON_S)
            dead = bench.pid("run")
            killed_ns = bench.kill("run")
            wait_for(lambda: not watch.now.driving, "the wheels run on")
            stood_s = watch.stopped_after_s(killed_ns)
        viewer = threading.Thread(target=first_picture_s, args=(bench, dead, pictures))
        viewer.start()
        drives_again(bench, watch, client)
        again_s = (watch.now.time_ns - killed_ns) / 1e9
        viewer.join()
    return stood_s, again_s, pictures[0]


def rows(settings: Settings) -> Iterator[Result]:
    """Measure the imports, then kills."""
    nothing_s = min(import_cpu_s(NOTHING) for _ in range(IMPORTS))
    imports = [import_cpu_s(RUN) - nothing_s for _ in range(IMPORTS)]
    yield row("start", "import of run, CPU", "s", imports, Aim(median=0.35))
    with running(STRIP) as bench:
        stood, drives_s, pictures = zip(*(killed(bench) for _ in range(KILLS)), strict=True)
    yield row(
        "start",
        "run is killed: the wheels stand",
        "ms",
        [1000.0 * stand_s for stand_s in stood],
        Aim(worst=50.0),
    )
    yield row("start", "run is killed: it drives again", "s", drives_s, Aim(worst=2.0))
    yield row("start", "start of run to its first picture", "s", pictures, Aim(worst=2.5))

"""Cost of viewers for `run`: CPU, and the age of a unit when its last byte arrives.

The camera is a separate process and does not count; neither do the viewers.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testkit.driver import Driver, free, sit_down
from testkit.harness import GUARD, STRIP, RunningBench

from benchmarks import reference
from benchmarks.reference import aimed, micros
from benchmarks.rig import Settings, running
from benchmarks.rows import Aim, Result, Row, row
from fpvcar.seat.hub import REST_AFTER_S

VIEWERS = (0, 1, 2, 5, 10, 20, 50)
SLOPE_OVER = (1, 20)
WINDOWS = 5
SECONDS_MOST = 10.0
SETTLE_S = 1.0
CROWDS = (1, 10, 50, 100, 200, 400, 800, 1000)
"""Numbers of viewers; the last is the largest that a profile may allow."""
ALL, IN_TIME, IN_TIME_MS = 0.99, 0.95, 33.0
"""Criteria for a served crowd: nearly every unit arrives, and 95 of 100 within a picture's time."""
MOST = "most viewers, 99 % of units, 95 % in 33 ms"
SHIPPED = "all sensors, recorder, guard on"
NO_SENSORS = "no range sensors, guard off"
ZERO_W = "15 fps, no sensors, recorder on"
AS_ZERO_W = (
    "--set=camera.fps = 15",
    "--set=sensors.tof = {}",
    "--set=sensors.ultrasound = {}",
    "--set=battery = {}",
)
NO_CAMERA = ('--set=camera.source = "none"', '--set=gate.blind = "ignore"')
FPS = 29.9
SOURCE = (
    STRIP,
    f"--set=camera.fps = {FPS}",
    "--set=sensors.tof = {}",
    "--set=sensors.ultrasound = {}",
)
CROWDED = (
    "--host=0.0.0.0",  # https
    f"--set=server.max_viewers = {CROWDS[-1]}",
    "--set=server.max_connections = 4096",
    "--set=server.max_per_address = 4096",
)
COMMANDS_PER_S = 25.0
COMMAND = "what a driver costs more than nobody, by 25 a second; sensors as above"
FRAME = "one viewer, and nobody without a camera, by the frames"


@dataclass
class Load:
    """Result of one measurement: shares of one core in percent, window by window."""

    viewers: int
    cpu: dict[str, list[float]] = field(default_factory=dict)
    ages_ms: Sequence[float] = ()
    share: float = 1.0
    note: str = ""

    @property
    def in_time(self) -> float:
        """Return the share of the units that arrived within a picture's time."""
        arrived = len(self.ages_ms)
        return sum(age_ms <= IN_TIME_MS for age_ms in self.ages_ms) / max(1, arrived)

    @property
    def served(self) -> bool:
        """Return whether nearly everything arrived, and in time."""
        return self.share >= ALL and self.in_time >= IN_TIME


class Crowd:
    """Viewers in their own process."""

    def __init__(self, argv: Sequence[str], count: int) -> None:
        """Start a program of viewers with the commands of load_viewers.py."""
        self.count = count
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[1],
        )
        if self._hear() != "ready":
            raise RuntimeError(f"the viewers ended ({self._process.wait()})")

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def say(self, command: str) -> None:
        """Send a command to the viewers."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def end(self, load: Load, seconds: float, fps: float) -> None:
        """End the viewers; store their results in `load`."""
        self.say("end")
        report = json.loads(self._hear())
        self._process.communicate()
        load.ages_ms = report["ages_ms"]
        if not self.count:
            return
        load.share = len(load.ages_ms) / (self.count * fps * seconds)
        rate = report["bytes"] * 8e-6 / self.count / seconds
        load.note = (
            f"{load.share:.0%} of all units, {rate:.1f} Mbit/s each, "
            f"the readers took {report['cpu_s'] / seconds:.0%} of a core"
        )


def measure(
    bench: RunningBench,
    count: int,
    seconds: float,
    fps: float,
    driver: Driver | None = None,
    scheme: str = "http",
) -> Load:
    """Measure with `count` viewers for so long. If there is a driver, the first viewer is the
    driver's own."""
    pids = {name: bench.pid(name) for name in ("run", "wheels")}
    port = bench.port + (scheme == "https")
    argv = [sys.executable, "-m", "benchmarks.load_viewers", scheme, str(port), str(count)]
    argv += [driver.video, driver.client] if driver else []
    return watched(Crowd(argv, count), pids, seconds, fps)


def watched(crowd: Crowd, pids: Mapping[str, int], seconds: float, fps: float) -> Load:
    """Measure processes with a crowd for so long."""
    load = Load(crowd.count)
    time.sleep(SETTLE_S)
    crowd.say("go")
    load.cpu = reference.shares(pids, WINDOWS, seconds)
    crowd.end(load, seconds, fps)
    return load


def slope(loads: Sequence[Load]) -> float:
    """Return CPU of `run` per additional viewer, by least squares, in percent of a core."""
    points = [
        (load.viewers, sum(load.cpu["run"]) / len(load.cpu["run"]))
        for load in loads
        if SLOPE_OVER[0] <= load.viewers <= SLOPE_OVER[1]
    ]
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    over = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return over / sum((x - middle_x) ** 2 for x, _ in points)


def cpu_rows(
    load: Load, label: str, setup: str, aim: Aim | None = None, unit: str = "run"
) -> Iterator[Row]:
    """Yield CPU of `run` or `wheels`, and its ratio to the reference."""
    note = f"{setup}; {load.note}" if load.note else setup
    name = f"CPU of {unit}{label}"
    return reference.rows("load", name, load.cpu[unit], load.cpu[reference.NAME], aim, note)


def rows(settings: Settings) -> Iterator[Result]:
    """Measure the shipped car, with a camera that renders no room; then as a Zero W; then the
    server alone: one driver, and 1 to 50 viewers."""
    seconds, fps = min(settings.seconds, SECONDS_MOST), FPS
    with running(STRIP, GUARD) as bench:
        time.sleep(REST_AFTER_S)
        load = measure(bench, 0, seconds, fps)
        yield from cpu_rows(load, " as shipped, nobody here", SHIPPED, aimed(1.0))
        with driving(bench) as driver:
            load = measure(bench, 1, seconds, fps, driver)
        yield from cpu_rows(load, " as shipped, a driver", SHIPPED, aimed(2.5))
    with running(STRIP, *AS_ZERO_W) as bench, driving(bench) as driver:
        load = measure(bench, 1, seconds, 15.0, driver)
        yield from cpu_rows(load, " as zero-w.toml, a driver", ZERO_W, aimed(1.2))
    loads = []
    with running(*SOURCE, "--set=server.max_viewers = 100") as bench:
        with driving(bench) as driver:
            load = measure(bench, 1, seconds, fps, driver)
            for unit in ("run", "wheels"):
                label = ", a driver who watches"
                yield from cpu_rows(load, label, NO_SENSORS, unit=unit)
            load = measure(bench, 0, seconds, fps)
        _, driven = list(cpu_rows(load, "", NO_SENSORS))
        for count in VIEWERS:
            load = measure(bench, count, seconds, fps)
            loads.append(load)
            pair = list(cpu_rows(load, f", {count} viewers", NO_SENSORS))
            yield from pair
            if count == 0:
                command_us = micros(driven, pair[1], COMMANDS_PER_S)
            if count == 1:
                one_viewer = pair[1]
            if load.ages_ms:
                yield row("load", f"age on arrival, {count} viewers", "ms", load.ages_ms)
    first, last = SLOPE_OVER
    yield row("load", f"CPU per viewer, {first} to {last}", "%", [slope(loads)], Aim(worst=0.5))
    with running(*NO_CAMERA, *SOURCE[2:]) as bench:
        time.sleep(REST_AFTER_S)  # the battery's thread rests then, as in the row of one viewer
        _, dark = cpu_rows(measure(bench, 0, seconds, fps), "", NO_SENSORS)
    yield row("load", "a command, nobody watches", "us", [command_us], Aim(median=250), COMMAND)
    yield row(
        "load", "a frame, one viewer", "us", [micros(one_viewer, dark, fps)], Aim(median=90), FRAME
    )


def crowds(settings: Settings) -> Iterator[Result]:
    """Measure growing crowds over http and https, far beyond the profile's default limit, until
    units are missing."""
    seconds = min(settings.seconds, SECONDS_MOST)
    most = dict.fromkeys(("http", "https"), 0)
    reasons: dict[str, str] = {}
    with running(*SOURCE, *CROWDED) as bench:
        for count in CROWDS:
            for scheme in most:
                if scheme in reasons:
                    continue
                try:
                    load = measure(bench, count, seconds, FPS, scheme=scheme)
                except RuntimeError as fault:  # possibly too few file descriptors
                    reasons[scheme] = f"{count}: {fault}"
                    continue
                label = f"{count} viewers, {scheme}"
                yield from cpu_rows(load, f", {label}", NO_SENSORS)
                yield row("load", f"age on arrival, {label}", "ms", load.ages_ms)
                if load.served:
                    most[scheme] = count
                else:
                    reasons[scheme] = f"{count}: {load.share:.1%} came, {load.in_time:.1%} in time"
    full = f"server.max_viewers is at most {CROWDS[-1]}"
    for scheme, count in most.items():
        yield row("load", f"{scheme}: {MOST}", "", [count], note=reasons.get(scheme, full))


@contextmanager
def driving(bench: RunningBench) -> Iterator[Driver]:
    """Yield a driver that holds the stick all the time."""
    with Driver(bench.port) as driver:
        sit_down(driver)
        free(driver)
        driver.drive(0.1, 0.0)
        yield driver
        driver.drive(0.0, 0.0)
        driver.say(kind="release")

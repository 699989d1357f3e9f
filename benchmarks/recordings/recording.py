"""Cost of recording: CPU per recorded second, `run` with and without it, the age of the picture
and a key's latency to the pin with and without it; and the duration of a replay."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser
from testkit.driver import Driver, free, sit_down
from testkit.harness import GUARD, RunningBench, wait_for

from benchmarks import reference
from benchmarks.browser import glass
from benchmarks.browser.control import press_to_pin
from benchmarks.browser.video import CANVAS, FPS, source
from benchmarks.recordings import replay as recording_replay
from benchmarks.rig import Settings, opened, running, say
from benchmarks.rows import RATIO, Aim, Result, Row, row

SECONDS = 120
WINDOWS, WINDOW_S = 6, 2.0
ON = ()
OFF = ("--set=recording.on = false", "--set=recording.minute = false")
SIGHT_S, PRESSES = 15.0, 20
"""Per bench, for each of four: on, off, off, on."""
SAME = 1.2
"""Seconds and presses on each of four benches: on, off, off, on."""


def costs_ms(seconds: int) -> list[float]:
    """Return CPU of each recorded second, ms, on the disk of this machine."""
    with tempfile.TemporaryDirectory(prefix="fpvcar-bench-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.recordings.load", folder, str(seconds)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        costs: list[float] = json.loads(done.stdout)
    return costs


def windows(bench: RunningBench) -> dict[str, list[float]]:
    """Return CPU of `run` with a driver, and of the reference, in % of one core."""
    with Driver(bench.port) as driver:
        sit_down(driver)

        def drives() -> bool:
            if driver.wish == (0.0, 0.0) or driver.state["stop"]:  # blind for a moment
                free(driver)
                driver.drive(0.0, 0.3)
            return bool(driver.state["reason"] == "driving")

        wait_for(drives, "it does not drive", 30.0)
        time.sleep(1.0)
        pids = {"run": bench.pid("run")}
        return reference.shares(pids, WINDOWS, WINDOWS * WINDOW_S)


@dataclass
class DriverSamples:
    """Latencies for a driver: ages of pictures, and from key press to pin, ms."""

    ages: list[float] = field(default_factory=list)
    presses: list[float] = field(default_factory=list)


def sample_driver(browser: Browser, options: tuple[str, ...], samples: DriverSamples) -> None:
    """Measure on a separate bench; append to `samples`."""
    with running(*source("strip", FPS), *options) as bench, opened(browser, bench.url) as page:
        picture, _ = glass.watch(page, CANVAS, SIGHT_S)
        samples.ages += picture.ages_ms
        samples.presses += press_to_pin(page, bench, PRESSES)


def same(name: str, on: Row, off: Row) -> Row:
    """Return the ratio of two p99 as a row."""
    return row(
        "recording", f"{name}: p99, recording / off", RATIO, [on.p99 / off.p99], Aim(worst=SAME)
    )


def driver_rows(settings: Settings) -> Iterator[Row]:
    """Compare a driver's latencies with and without recording: they must not differ noticeably."""
    on, off = DriverSamples(), DriverSamples()
    with settings.chromium() as browser:
        for options, samples in ((ON, on), (OFF, off), (OFF, off), (ON, on)):
            say(f"recording: what a driver feels, recording {'off' * bool(options)}")
            sample_driver(browser, options, samples)
    for name, values, baseline, aim in (
        ("age of the picture", on.ages, off.ages, Aim(13, p99=24)),
        ("key press to pin", on.presses, off.presses, Aim(8, p99=20)),
    ):
        with_it = row("recording", f"{name}, recording", "ms", values, aim, "guard off")
        without = row("recording", f"{name}, recording off", "ms", baseline, note="guard off")
        yield from (with_it, without, same(name, with_it, without))


def rows(settings: Settings) -> Iterator[Result]:
    """Measure the recorder alone, a replay, then all of `run` with a driver."""
    say("recording: CPU a recorded second")
    yield row(
        "recording", "CPU a recorded second, 2 Mbit/s", "ms", costs_ms(SECONDS), Aim(median=2.0)
    )
    say("recording: replay of 10 minutes")
    took_s, speed = recording_replay.seconds()
    yield row("recording", "replay of 10 minutes", "s", took_s, Aim(worst=10.0), speed)
    for state, options in (("recording", ON), ("recording off", OFF)):
        say(f"recording: CPU of run, {state}")
        with running(GUARD, *options) as bench:
            shares = windows(bench)
        yield from reference.rows(
            "recording",
            f"CPU of run, 1 driver, {state}",
            shares["run"],
            shares[reference.NAME],
            note="guard on",
        )
    yield from driver_rows(settings)

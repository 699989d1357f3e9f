"""Sensors: their measuring rates, the age of their readings on a page, and their cost."""

import time
import urllib.request
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families
from testkit.driver import Driver
from testkit.harness import GUARD, RunningBench

from benchmarks import reference
from benchmarks.reference import aimed
from benchmarks.rig import Settings, running
from benchmarks.rows import Aim, Result, row

SETTLE_S = 3.0
SECONDS_MOST, COST_S = 21.0, 10.0
"""Pages get 10 states a second: more than 200 ages of each sensor."""
WINDOWS = 5
NO_CAMERA = ('--set=camera.source = "none"', '--set=gate.blind = "ignore"')
BARE = ("--set=sensors.tof = {}", "--set=sensors.ultrasound = {}", "--set=battery = {}", *NO_CAMERA)
TWO_BEHIND = "--set=sensors.ultrasound.left = {trigger = 10, echo = 11, bearing_deg = 150}"
RATES = {"front": 30.0, "rear": 15.0, "left": 15.0, "battery": 10.0}


def readings(bench: RunningBench) -> dict[str, float]:
    """Return the number of readings of each sensor."""
    with urllib.request.urlopen(f"{bench.url}metrics", timeout=5.0) as answer:
        text = answer.read().decode()
    return {
        sample.labels["sensor"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "fpvcar_readings_total"
    }


def cost(bench: RunningBench) -> dict[str, list[float]]:
    """Return CPU of `run` and of the reference, in percent of a core, in some windows."""
    return reference.shares({"run": bench.pid("run")}, WINDOWS, COST_S)


def rows(settings: Settings) -> Iterator[Result]:
    """Measure the bench's own sensors and one additional HC-SR04; then `run` with and without."""
    seconds = min(settings.seconds, SECONDS_MOST)
    with running(*NO_CAMERA, TWO_BEHIND, GUARD) as bench:
        with Driver(bench.port) as watcher:
            time.sleep(SETTLE_S)
            start, began_s = readings(bench), time.monotonic()
            del watcher.heard[:]
            time.sleep(seconds)
            end, took_s = readings(bench), time.monotonic() - began_s
            states = [state for state in watcher.heard if state["kind"] == "state"]
            full = cost(bench)
        for name, aim in RATES.items():
            rate = (end[name] - start[name]) / took_s
            yield row("sensors", f"{name}, readings", "1/s", [rate], Aim(least=aim))
            ages_s = [age_s(state, name) for state in states]
            ages = [1000.0 * age for age in ages_s if age is not None]
            yield row("sensors", f"{name}, age", "ms", ages, Aim(p99=100.0))
    with running(*BARE) as bench, Driver(bench.port):
        time.sleep(SETTLE_S)
        bare = cost(bench)
    loops = full[reference.NAME]
    yield from reference.rows(
        "sensors", "CPU of run, no sensor, somebody here", bare["run"], bare[reference.NAME]
    )
    yield from reference.rows(
        "sensors", "CPU of run, all sensors, somebody here", full["run"], loops, note="guard on"
    )
    sensor_cpu = [
        state - bare_cpu for state, bare_cpu in zip(full["run"], bare["run"], strict=True)
    ]
    yield from reference.rows("sensors", "CPU of all sensors", sensor_cpu, loops, aimed(3.0))


def age_s(state: dict[str, object], name: str) -> float | None:
    """Return the age of one sensor's reading when the page receives it."""
    if name == "battery":
        battery = state.get("battery")
        assert isinstance(battery, dict)
        age = battery["age_s"]
    else:
        ranges = state["ranges"]
        assert isinstance(ranges, list)
        age = next(entry["age_s"] for entry in ranges if entry["name"] == name)
    return None if age is None else float(age)

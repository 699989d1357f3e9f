"""`make bench`: what the car does on this machine, in figures. A benchmark, no test.

Each row is measured on a running bench with a real browser. Latency to the glass is
read off the canvas: the camera paints the car's clock into each picture just before
its encoder (fpvcar.bench.camera_strip), a script reads it before every paint.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.e2e.conftest import chromium
from tests.e2e.driver import Driver, free
from tests.e2e.harness import RunningBench, wait_for
from tests.e2e.seat import until
from tests.e2e.test_who_stops import answers, forward

READ_STRIP = """
() => {
  const cells = 40, row = 8;
  const canvas = document.createElement('canvas');
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  window.stripSamples = [];
  let last = -1;
  const look = () => {
    requestAnimationFrame(look);
    const mse = window.fpvcar.video.path === 'mse';
    const source = document.querySelector(mse ? '#picture-mse' : '#picture');
    const width = source.videoWidth || source.width;
    if (!width) return;
    canvas.width = width; canvas.height = 1;
    pen.drawImage(source, 0, row, width, 1, 0, 0, width, 1);
    const line = pen.getImageData(0, 0, width, 1).data;
    const cell = Math.floor(width / cells);
    let bits = 0n;
    for (let i = 0; i < cells; i++)
      bits = bits << 1n | (line[4 * (i * cell + (cell >> 1))] > 128 ? 1n : 0n);
    const clock = Number(bits >> 4n & 0xffffffffn);
    let check = 0;
    for (let i = 0; i < 8; i++) check ^= Number(BigInt(clock) >> BigInt(4 * i) & 15n);
    if (Number(bits & 15n) !== check || Number(bits >> 36n) !== 10) return;
    if (clock === last) return;
    last = clock;
    window.stripSamples.push([clock, performance.timeOrigin + performance.now()]);
  };
  look();
}
"""

NOTE_PRESS = """
addEventListener('keydown', (event) => {
  window.pressedAt = performance.timeOrigin + event.timeStamp;
}, true);
"""


@dataclass(frozen=True)
class Row:
    """One line of the table; values in `unit`."""

    part: str
    name: str
    unit: str
    count: int
    median: float
    p95: float
    p99: float
    worst: float
    aim: str


def row(part: str, name: str, unit: str, values: list[float], aim: str) -> Row:
    """Sums up one series of measurements."""
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return Row(
        part, name, unit, len(ordered), statistics.median(ordered), at(0.95), at(0.99),
        ordered[-1], aim,
    )  # fmt: skip


@contextmanager
def running(*options: str) -> Iterator[RunningBench]:
    """A bench that is gone afterwards."""
    with tempfile.TemporaryDirectory() as home:
        bench = RunningBench(Path(home), *options)
        try:
            yield bench.wait_ready()
        finally:
            bench.stop()


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    """A page that shows pictures."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.add_init_script(NOTE_PRESS)
    page = context.new_page()
    page.goto(url)
    until(page, "window.fpvcar && window.fpvcar.video.shown > 10")
    yield page
    context.close()


def glass(browser: Browser, seconds: float) -> Iterator[Row]:
    """Capture to glass, both paths, 640x480 at 29.9 frames a second."""
    source = ('--set=camera.source = "strip"', "--set=camera.fps = 29.9")
    with running(*source) as bench:
        for path, aim in (("webcodecs", "median <= 20"), ("mse", "next issue's")):
            with opened(browser, f"{bench.url}?path={path}") as page:
                page.evaluate(READ_STRIP)
                page.wait_for_timeout(seconds * 1000)
                samples = page.evaluate("window.stripSamples")
            # The car's clock and the browser's: both of this machine.
            ahead_ms = (time.time() - time.monotonic()) * 1000.0
            values = [
                (shown - ahead_ms - clock + 2**31) % 2**32 - 2**31
                for clock, shown in samples[5:]
            ]
            yield row("video", f"capture to glass, {path}", "ms", values, aim)


def press(browser: Browser, times: int) -> Iterator[Row]:
    """Key press in the browser to PWM at the pin."""
    with running() as bench, opened(browser, bench.url) as page:
        until(page, "window.fpvcar.state.role === 'driver'")
        values = []
        with bench.watch() as watch:
            for _ in range(times):
                page.wait_for_timeout(350)
                before = len(watch.samples)
                page.keyboard.down("ArrowUp")
                wait_for(lambda: watch.now.driving, "does not drive", every_s=0.001)
                pin_ms = next(
                    one.time_ns for one in watch.samples[before:] if one.driving
                ) / 1e6  # fmt: skip
                page.keyboard.up("ArrowUp")
                ahead_ms = (time.time() - time.monotonic()) * 1000.0
                values.append(pin_ms + ahead_ms - page.evaluate("window.pressedAt"))
        yield row("control", "key press to pin", "ms", values, "median <= 10")


def resident_mb(pid: int) -> float:
    """VmRSS of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no memory")


def memory(browser: Browser) -> Iterator[Row]:
    """Resident memory while somebody drives and watches."""
    with running() as bench, opened(browser, bench.url):
        time.sleep(5.0)
        for unit, aim in (("run", "<= 60"), ("wheels", "<= 25")):
            yield row("memory", unit, "MB", [resident_mb(bench.pid(unit))], aim)


def lift(bench: RunningBench, driver: Driver) -> int:
    """The finger lifts."""
    now_ns = time.monotonic_ns()
    driver.drive(0.0, 0.0)
    return now_ns


def hush(bench: RunningBench, driver: Driver) -> int:
    """Nothing comes any more."""
    driver.sending = driver.pinging = False
    return time.monotonic_ns()


def signalled(unit: str, number: signal.Signals) -> Callable[..., int]:
    """A process is killed or stopped."""
    return lambda bench, driver: bench.kill(unit, number)


CAUSES: dict[str, tuple[Callable[..., int], str]] = {
    "finger lifts": (lift, "one frame"),
    "link silent": (hush, "<= 300"),
    "run killed": (signalled("run", signal.SIGKILL), "<= 50"),
    "run stopped": (signalled("run", signal.SIGSTOP), "<= 150"),
    "wheels killed": (signalled("wheels", signal.SIGKILL), "<= 300"),
    "wheels stopped": (signalled("wheels", signal.SIGSTOP), "<= 300"),
    "pigpiod killed": (signalled("pigpiod", signal.SIGKILL), "<= 500"),
    "pigpiod stopped": (signalled("pigpiod", signal.SIGSTOP), "<= 500"),
}


def stops(runs: int) -> Iterator[Row]:
    """From the failure to the last moment at which a bridge was driven."""
    with running() as bench:
        for name, (cause, aim) in CAUSES.items():
            values = [one_stop(bench, cause) * 1000.0 for _ in range(runs)]
            yield row("stop", name, "ms", values, aim)


def one_stop(bench: RunningBench, cause: Callable[..., int]) -> float:
    """Drives off, lets something fail, and waits until the bench is whole again."""

    wait_for(lambda: answers(bench.port), "run did not come back", 15.0, 0.2)
    driver = Driver(bench.port, client="bench-driver-1")
    with driver, bench.watch() as watch:
        wait_for(lambda: driver.state.get("role") == "driver", "no seat", 15.0)
        free(driver)
        forward(driver, watch)
        now_ns = cause(bench, driver)
        wait_for(lambda: not watch.now.driving, "drives on")
        taken_s = watch.stopped_after_s(now_ns)
        for pid in bench.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    return taken_s


def show(one: Row) -> None:
    """One line, as soon as it is known."""
    print(
        f"{one.part:8} {one.name:28} {one.median:8.1f} {one.p95:8.1f} {one.p99:8.1f} "
        f"{one.worst:8.1f} {one.unit:3} n={one.count:<4} aim: {one.aim}", flush=True,
    )  # fmt: skip


def main() -> int:
    """Runs all parts in turn, or the one that --only names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["video", "control", "memory", "stop"])
    parser.add_argument("--seconds", type=float, default=31.0, help="per video row")
    parser.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", "10")))
    parser.add_argument("--json", type=Path, default=Path("bench.json"))
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}")
    print(f"{'':37} {'median':>8} {'p95':>8} {'p99':>8} {'worst':>8}")
    rows = []
    with chromium() as browser:
        parts: dict[str, Callable[[], Iterator[Row]]] = {
            "video": lambda: glass(browser, given.seconds),
            "control": lambda: press(browser, 3 * given.runs),
            "memory": lambda: memory(browser),
            "stop": lambda: stops(given.runs),
        }
        for name, part in parts.items():
            if given.only in (None, name):
                for one in part():
                    show(one)
                    rows.append(one)
    given.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    print(f"written to {given.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

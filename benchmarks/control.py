"""Latency from a key press in the browser to PWM at the pin."""

from collections.abc import Iterator
from typing import Any

from tests.e2e.harness import PinWatch, RunningBench
from tests.e2e.seat import drives, stands, until

from benchmarks.rig import Given, opened, running, say, wall_ahead_ms
from benchmarks.rows import Aim, Result, row


def press_ms(page: Any, watch: PinWatch) -> float:
    """Return ms from one key press to PWM at the pin. Waits for the end of a stop beforehand,
    uncounted. `page`: Playwright's, or a compatible one."""
    before = len(watch.samples)

    def press() -> None:
        nonlocal before
        page.wait_for_timeout(250)
        before = len(watch.samples)
        page.keyboard.down("ArrowUp")

    drives(page, lambda: watch.now.driving, press, lambda: page.keyboard.up("ArrowUp"), "ArrowUp")
    pin_ns = next(one.time_ns for one in watch.samples[before:] if one.driving)
    page.keyboard.up("ArrowUp")
    stands(watch)
    pressed_ms = float(page.evaluate("window.pressedAt"))
    return pin_ns / 1e6 + wall_ahead_ms() - pressed_ms


def press_to_pin(page: Any, bench: RunningBench, runs: int) -> list[float]:
    """Press forward `runs` times; return ms for each."""
    until(page, "window.fpvcar.state.role === 'driver'")
    with bench.watch() as watch:
        return [press_ms(page, watch) for _ in range(runs)]


def rows(given: Given) -> Iterator[Result]:
    """Measure key press to pin without other load."""
    with given.chromium() as browser, running() as bench, opened(browser, bench.url) as page:
        say(f"control: {given.runs} presses")
        values = press_to_pin(page, bench, given.runs)
        yield row("control", "key press to pin", "ms", values, Aim(median=8, p99=20), "guard off")

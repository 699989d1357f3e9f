"""Latency from a key press in the browser to PWM at the pin."""

from collections.abc import Iterator
from typing import Any

from testkit.browsers.seat import drives, stands, until
from testkit.harness import PinWatch, RunningBench
from testkit.stops.esc_causes import PIGPIOD, EscBench, options

from benchmarks.rig import Settings, opened, running, say, wall_ahead_ms
from benchmarks.rows import Aim, Result, row

PULSE_PERIOD_MS = 20.0
PULSE_NOTE = "the width changes at once here; on a Pi at the next pulse, up to 20 ms later"


def press_ms(page: Any, watch: PinWatch) -> float:
    """Return ms from one key press to PWM at the pin. Waits for the end of a stop beforehand,
    uncounted. `page`: Playwright's, or a compatible one."""
    start = len(watch.samples)

    def press() -> None:
        nonlocal start
        page.wait_for_timeout(250)
        start = len(watch.samples)
        page.keyboard.down("ArrowUp")

    drives(page, lambda: watch.now.driving, press, lambda: page.keyboard.up("ArrowUp"), "ArrowUp")
    pin_ns = next(sample.time_ns for sample in watch.samples[start:] if sample.driving)
    page.keyboard.up("ArrowUp")
    stands(watch)
    pressed_ms = float(page.evaluate("window.pressedAt"))
    return pin_ns / 1e6 + wall_ahead_ms() - pressed_ms


def press_to_pin(page: Any, bench: RunningBench, runs: int) -> list[float]:
    """Press forward `runs` times; return ms for each."""
    until(page, "window.fpvcar.state.role === 'driver'")
    with bench.watch() as watch:
        return [press_ms(page, watch) for _ in range(runs)]


def rows(settings: Settings) -> Iterator[Result]:
    """Measure key press to pin without other load."""
    with settings.chromium() as browser, running() as bench, opened(browser, bench.url) as page:
        say(f"control: {settings.runs} presses")
        values = press_to_pin(page, bench, settings.runs)
        yield row("control", "key press to pin", "ms", values, Aim(median=8, p99=20), "guard off")
    with (
        settings.chromium() as browser,
        running(*options(PIGPIOD), kind=EscBench) as bench,
        opened(browser, bench.url) as page,
    ):
        press_to_pin(page, bench, 1)  # arms the ESC
        say(f"control: {settings.runs} presses with an ESC")
        values = press_to_pin(page, bench, settings.runs)
        aim = Aim(median=PULSE_PERIOD_MS + 5)
        yield row("control", "key press to pulse of an ESC", "ms", values, aim, PULSE_NOTE)

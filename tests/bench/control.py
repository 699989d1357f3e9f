"""From a key press in the browser to PWM at the pin."""

from collections.abc import Iterator
from typing import Any

from tests.bench.rig import Given, opened, running, say, wall_ahead_ms
from tests.bench.rows import Aim, Result, row
from tests.e2e.harness import RunningBench, wait_for
from tests.e2e.seat import until


def press_to_pin(page: Any, bench: RunningBench, runs: int) -> list[float]:
    """Presses forward so often; ms each. `page`: Playwright's, or another's like it."""
    until(page, "window.fpvcar.state.role === 'driver'")
    values = []
    with bench.watch() as watch:
        for _ in range(runs):
            page.wait_for_timeout(350)
            before = len(watch.samples)
            page.keyboard.down("ArrowUp")
            wait_for(lambda: watch.now.driving, "does not drive", every_s=0.001)
            pin_ms = next(
                one.time_ns for one in watch.samples[before:] if one.driving
            ) / 1e6  # fmt: skip
            page.keyboard.up("ArrowUp")
            pressed_ms = page.evaluate("window.pressedAt")
            values.append(pin_ms + wall_ahead_ms() - pressed_ms)
    return values


def rows(given: Given) -> Iterator[Result]:
    """Key press to pin with nothing else going on."""
    with (
        given.chromium() as browser,
        running() as bench,
        opened(browser, bench.url) as page,
    ):
        say(f"control: {given.runs} presses")
        values = press_to_pin(page, bench, given.runs)
        yield row("control", "key press to pin", "ms", values, Aim(median=8, p99=20),
                  "guard off")  # fmt: skip

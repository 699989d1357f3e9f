"""What the browser tests know about the page: a few words, in one place."""

from typing import Any

from playwright.sync_api import Page

from tests.e2e.harness import PinWatch, RunningBench, wait_for


def probe(page: Page, expression: str) -> Any:
    """A part of window.fpvcar, the page's read-only probe."""
    return page.evaluate(f"window.fpvcar && window.fpvcar.{expression}")


def opened(page: Page, url: str) -> Page:
    """The page, connected and with a moving picture."""
    page.goto(url)
    page.wait_for_function(
        "window.fpvcar && window.fpvcar.video.shown > 5 && window.fpvcar.state.role",
        timeout=20_000,
    )
    return page


def at_the_wheel(page: Page, url: str) -> Page:
    """The same, seated, with nothing that holds the car."""
    opened(page, url)
    page.wait_for_function("window.fpvcar.state.role === 'driver'", timeout=15_000)
    go_on(page)
    return page


def go_on(page: Page) -> None:
    """Pushes Go on if it is there, and waits until nothing holds the car."""
    for _ in range(50):
        stop = probe(page, "state.stop")
        if stop is None and probe(page, "state.wheels") == "ok":
            return
        if stop and stop["clears"] == "resume":
            page.locator("#resume").click()
        page.wait_for_timeout(100)
    raise AssertionError(f"still held: {probe(page, 'state')}")


def drives_off(watch: PinWatch, what: str = "the car") -> None:
    """Waits until a bridge is driven."""
    wait_for(lambda: watch.now.driving, f"{what} does not drive", 5.0, every_s=0.001)


def stands(watch: PinWatch, what: str = "the car", timeout_s: float = 10.0) -> None:
    """Waits until no bridge is driven."""
    wait_for(lambda: not watch.now.driving, f"{what} drives on", timeout_s, 0.001)


def event_ns(page: Page, bench: RunningBench, expression: str) -> int:
    """Evaluates; CLOCK_MONOTONIC in ns just before."""
    import time

    now_ns = time.monotonic_ns()
    page.evaluate(expression)
    return now_ns

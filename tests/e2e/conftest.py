"""Bench for each module, with the module's OPTIONS, and a fresh page for each test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from testkit.browsers.chromium import SHELL, chromium
from testkit.driver import Driver, free, make_whole, sit_down, stand_up
from testkit.harness import RunningBench, started
from testkit.network.proxy import Link


@pytest.fixture(scope="package")
def shared_bench(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[tuple[str, ...]], RunningBench]]:
    """A function that returns a running bench with given options: the last one if it has these.

    A bench takes some seconds of a core to start.
    """
    with ExitStack() as stack:
        last: list[tuple[tuple[str, ...], RunningBench]] = []

        def bench(options: tuple[str, ...]) -> RunningBench:
            if [asked for asked, _ in last] != [options]:
                stack.close()
                home = tmp_path_factory.mktemp("bench")
                last[:] = [(options, stack.enter_context(started(home, *options)))]
            return last[0][1]

        yield bench


@pytest.fixture(scope="module")
def bench(
    request: pytest.FixtureRequest, shared_bench: Callable[[tuple[str, ...]], RunningBench]
) -> Iterator[RunningBench]:
    """A running bench with the options of the test's module."""
    running = shared_bench(getattr(request.module, "OPTIONS", ()))
    before = len(running.log())
    yield running
    print(running.log()[before:])


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Playwright for all tests. It keeps an event loop running in this thread: see `apart` in
    harness.py."""
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Browser for all modules: starting and ending one takes two seconds of a core."""
    with chromium(SHELL, playwright) as running:
        yield running


@pytest.fixture(autouse=True)
def closed_pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close the pages that a failed test left: they would slow all later tests."""
    if "browser" not in request.fixturenames:
        yield
        return
    browser: Browser = request.getfixturevalue("browser")
    before = set(browser.contexts)
    yield
    for context in set(browser.contexts) - before:
        context.close()


@pytest.fixture(autouse=True)
def whole(request: pytest.FixtureRequest) -> None:
    """Repair the car and free the seat, whatever state the previous test left."""
    if "bench" in request.fixturenames:
        make_whole(request.getfixturevalue("bench"))


@pytest.fixture
def driver(bench: RunningBench, whole: None) -> Iterator[Driver]:
    """A driver at the wheel without a browser, on a car that may drive."""
    with Driver(bench.port) as seated:
        sit_down(seated)
        free(seated)
        yield seated
        stand_up(seated)


@pytest.fixture
def link(bench: RunningBench) -> Iterator[Link]:
    """The Wi-Fi between a driver and the bench."""
    with Link(bench.port) as made:
        yield made


@pytest.fixture
def page(browser: Browser, bench: RunningBench) -> Iterator[Page]:
    """A page of its own session that has not been opened yet."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    made = context.new_page()
    yield made
    context.close()

"""The page itself: its error messages, access, weight."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, Route
from testkit.browsers.seat import open_menu, opened, until
from testkit.harness import SMALL, RunningBench, started

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
FIRST_SCREEN_BYTES = 90_000
"""Limit with headers, over the network. A slow phone link carries 50,000 a second."""
STATUS = "fetch('/api/status').then((answer) => answer.json())"


def test_status_page_lists_page_reports_and_frames(page: Page, bench: RunningBench) -> None:
    opened(page, bench.url)
    # By either path: on a busy machine a page may have changed it.
    reported = "pages[0]?.report?.path === window.fpvcar.video.path"
    until(page, f"{STATUS}.then(({{pages}}) => {reported})")
    until(page, f"{STATUS}.then(({{video}}) => video[0]?.frames > 10)")
    assert page.evaluate(STATUS)["wheels"] == "ok"


def test_first_screen_fits_its_byte_budget(page: Page, bench: RunningBench) -> None:
    asked: list[str] = []
    came: list[Request] = []
    page.on("request", lambda one: asked.append(one.url))
    page.on("requestfinished", lambda one: came.append(one))
    opened(page, bench.url)
    # Modules of hidden parts come a second later, also where a second is short.
    late = [url for url in asked if url.endswith("/seat/drawer/drawer.js")]
    first = asked[: asked.index(late[0])] if late else asked
    sizes = {one.url: one.sizes() for one in came if one.url in first}
    pages = {
        url: size["responseBodySize"] + size["responseHeadersSize"] for url, size in sizes.items()
    }
    assert 0 < sum(pages.values()) <= FIRST_SCREEN_BYTES, pages
    assert all(url.startswith(bench.url) for url in asked), "nothing from elsewhere"


def test_first_words_need_the_page_alone(browser: Browser, bench: RunningBench) -> None:
    """A slow link has nothing but the page after a second."""
    context = browser.new_context(locale="fi-FI", viewport={"width": 390, "height": 844})
    page = context.new_page()
    sizes: list[int] = []

    def give_the_page(route: Route) -> None:
        if route.request.resource_type == "document":
            answer = route.fetch()
            sizes.append(len(answer.body()))  # not packed
            route.fulfill(response=answer)  # others stay without an answer

    page.route("**", give_the_page)
    page.goto(bench.url, wait_until="commit")
    page.locator("#stop text", has_text="SEIS").wait_for(state="visible", timeout=10_000)
    assert page.locator("#card-title").inner_text() == "Yhdistetään"
    until(page, "performance.getEntriesByName('first-contentful-paint').length === 1")
    stop = page.locator("#stop svg").bounding_box()
    assert stop and stop["width"] >= 64 and stop["x"] + stop["width"] <= 390
    assert page.locator("#gear").is_hidden(), "a control that does nothing yet"
    assert sizes[0] < FIRST_SCREEN_BYTES / 9, "a small part of the first screen"
    context.close()


def test_menu_whose_module_is_late_opens_with_first_push(page: Page, bench: RunningBench) -> None:
    """The module of the menu is refused twice. During that no dead menu is shown, and the push
    counts."""
    asked: list[bool] = []

    def refuse_twice(route: Route) -> None:
        asked.append(page.locator("#menu").is_hidden())
        if len(asked) <= 2:
            route.abort()
        else:
            route.continue_()

    page.route(re.compile(r"/seat/drawer/drawer\.js"), refuse_twice)
    opened(page, bench.url)
    page.locator("#gear").click()
    until(page, "document.body.innerText.includes('menu is still loading')")
    page.locator("#menu").wait_for(state="visible", timeout=10_000)
    assert asked == [True, True, True]
    page.locator("#show-keys").click()
    page.locator("#keys").wait_for(state="visible")
    typing_and_closing_stop_nothing(page)


@pytest.mark.parametrize("late", ["lang/en/seat.json", "seat/main.js"])
def test_pushes_before_the_page_has_its_module_count(
    page: Page, bench: RunningBench, late: str
) -> None:
    """STOP and the menu are shown seconds before the module that listens to them, over a slow
    link."""
    held: list[Route] = []
    page.route(f"**/{late}", lambda one: held.append(one))
    with page.expect_request(f"**/{late}"):
        page.goto(bench.url, wait_until="commit")
    for name in ("#gear", "#stop"):
        page.locator(name).click()
    assert page.evaluate("window.fpvcar") is None
    held[0].continue_()
    page.locator("#menu").wait_for(state="visible")
    until(page, "window.fpvcar.state?.stop?.cause.startsWith('estop')")


def test_finger_on_stop_since_before_the_module_stops(page: Page, bench: RunningBench) -> None:
    held: list[Route] = []
    page.route("**/seat/main.js", lambda one: held.append(one))
    with page.expect_request("**/seat/main.js"):
        page.goto(bench.url, wait_until="commit")
    page.locator("#stop").hover()
    page.mouse.down()
    held[0].continue_()
    until(page, "window.fpvcar?.state?.role")
    assert not stopped(page)
    page.mouse.up()
    until(page, "window.fpvcar.state.stop?.cause.startsWith('estop')")


def typing_and_closing_stop_nothing(page: Page) -> None:
    """Esc closes one panel at a time, with the keys' panel open. A name may have a space and any
    letter. The same keys act once no text field has the focus."""
    page.keyboard.press("Escape")
    page.locator("#keys").wait_for(state="hidden")
    open_menu(page, "drive")
    page.locator("#name").fill("")
    page.keyboard.type("Anna Maria f?")
    assert page.locator("#name").input_value() == "Anna Maria f?"
    assert page.locator("#keys").is_hidden(), "a shortcut of the driver's keys"
    page.keyboard.press("Escape")
    page.locator("#menu").wait_for(state="hidden")
    seq = page.evaluate("window.fpvcar.state.seq")
    until(page, f"window.fpvcar.state.seq > {seq} + 3")
    assert not stopped(page), "typing, or closing a menu, stopped the car"
    page.keyboard.press("Escape")
    until(page, "window.fpvcar.state.stop?.cause.startsWith('estop')")


def stopped(page: Page) -> bool:
    """Return whether a STOP holds the car."""
    stop = page.evaluate("window.fpvcar.state.stop")
    return stop is not None and stop["cause"].startswith("estop")


@pytest.mark.parametrize("name", ["en/seat.json", "hud.js", "seat.css"])
def test_incomplete_page_load_is_retried(page: Page, bench: RunningBench, name: str) -> None:
    """A phone that has just joined the Wi-Fi drops running downloads."""
    dropped: list[str] = []

    def drop_once(route: Route) -> None:
        if dropped:
            route.continue_()
        else:
            dropped.append(route.request.url)
            route.abort("internetdisconnected")

    page.route(re.compile(rf"/{name}"), drop_once)
    page.goto(bench.url)
    page.wait_for_event("framenavigated")
    assert len(dropped) == 1
    until(page, "window.fpvcar?.video.shown > 5")


def test_load_that_loses_all_requests_is_retried(page: Page, bench: RunningBench) -> None:
    """Chromium ends all requests when a network appears or changes."""
    loads: list[str] = []

    def lose_first(route: Route) -> None:
        if route.request.is_navigation_request():
            loads.append(route.request.url)
        if len(loads) == 1 and route.request.resource_type in ("script", "stylesheet"):
            route.abort("internetdisconnected")
        else:
            route.continue_()

    page.route("**", lose_first)
    page.goto(bench.url)
    until(page, "window.fpvcar?.video.shown > 5")
    assert len(loads) == 2


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBench]:
    """A bench whose camera program prints its fault and ends."""
    command = '["sh", "-c", "echo no camera here >&2; exit 3"]'
    home = tmp_path_factory.mktemp("broken")
    with started(home, f"--set=camera.command = {command}") as running:
        yield running


def test_broken_camera_is_explained_and_car_stands(page: Page, broken: RunningBench) -> None:
    page.goto(broken.url)
    until(page, "document.body.innerText.includes('no camera here')")
    with broken.watch() as watch:
        page.keyboard.down("ArrowUp")
        page.wait_for_timeout(500)
        assert not any(sample.driving for sample in watch.samples), "drove blind"


def test_loopback_keeps_codes_but_no_certificate(bench: RunningBench) -> None:
    """On loopback there is no certificate, because no other host can connect."""
    kept = {path.name for path in Path(bench.state).iterdir()}
    assert {"codes.json", "signing.key"} <= kept and "https.key" not in kept

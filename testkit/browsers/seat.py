"""Helpers for the browser tests: the page's probe, the wheel, keys, thumbs and gamepad."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Error, Frame, Page, TimeoutError

from testkit.harness import PinWatch, RunningBench, wait_for
from testkit.network.proxy import Link

GAMEPAD = """
window.pad = {id: 'Test Pad', index: 0, connected: true, mapping: 'standard',
  timestamp: 0, axes: [0, 0, 0, 0],
  buttons: Array.from(
    {length: 17}, () => ({pressed: false, touched: false, value: 0}))};
navigator.getGamepads = () => [window.pad, null, null, null];
window.plug = () => {
  const event = new Event('gamepadconnected');
  event.gamepad = window.pad;
  dispatchEvent(event);
};
window.unplug = () => {
  const event = new Event('gamepaddisconnected');
  event.gamepad = window.pad;
  navigator.getGamepads = () => [null, null, null, null];
  dispatchEvent(event);
};
"""
"""A gamepad that a test can push, plug in and pull: a headless browser has none."""
BROKEN = """(part) => axe.run(part ?? document, {resultTypes: ['violations']}).then(
  ({violations}) => violations.map(({id, nodes}) => `${id}: ${nodes[0].html}`))"""


def violations(page: Page, part: str | None = None) -> list[str]:
    """Return each rule that axe-core finds broken, with the first place.

    Checking a part, a selector, costs less. Animations are off: half faded in elements are pale.
    """
    page.emulate_media(reduced_motion="reduce")
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(Axe().axe_script)
    found: list[str] = page.evaluate(BROKEN, part)
    return found


def probe(page: Page | Frame, expression: str) -> Any:
    """Return a part of window.fpvcar, the page's read-only probe."""
    return page.evaluate(f"window.fpvcar && window.fpvcar.{expression}")


UNTIL = """new Promise((done, failed) => {
  const end = performance.now() + %d;
  const look = async () => {
    const holds = Boolean(await (%s));
    if (holds || performance.now() > end) done(holds);
    else setTimeout(() => look().catch(failed), 20);
  };
  look().catch(failed);
})"""
"""Promise of an expression that becomes true, or is false at the end of so many ms."""


def until(page: Page | Frame, expression: str, timeout_s: float = 20.0) -> None:
    """Wait until an expression is true in the page.

    Playwright's own wait needs eval(), which the page's Content-Security-Policy rightly forbids.
    The page polls: a call for each poll costs a busy machine more. The wait begins again if the
    page reloads itself (a module did not come).
    """
    end_s = time.monotonic() + timeout_s
    while (left_s := end_s - time.monotonic()) > 0.0:
        try:
            if page.evaluate(UNTIL % (left_s * 1000, expression)):
                return
        except Error as fault:
            if "context was destroyed" not in str(fault):
                raise
    raise AssertionError(f"{expression}: not within {timeout_s} s")


def opened(page: Page, url: str) -> Page:
    """Open the page; wait until it is connected, with a moving picture."""
    page.goto(url)
    until(page, "window.fpvcar?.video.shown > 1 && window.fpvcar.state?.role", 60.0)
    return page


def open_menu(page: Page | Frame, tab: str) -> None:
    """Open the menu at a tab: drive, picture, car or grown-ups."""
    if not page.locator("#menu").is_visible():
        page.locator("#gear").click()
    page.locator(f"#tab-{tab}").click()


def grown_up(page: Page, bench: RunningBench) -> None:
    """Open the menu at the grown-ups' tab, and unlock it."""
    code = json.loads((bench.state / "codes.json").read_text())["grown_up"]
    open_menu(page, "grown-ups")
    page.locator("#grown-code").click()
    page.locator("#code").fill(code)
    page.keyboard.press("Enter")
    until(page, "window.fpvcar.state.grown_up")
    page.locator("#guard").wait_for(state="visible")


def at_the_wheel(page: Page, url: str) -> Page:
    """Open the page at the wheel of a car that may drive."""
    opened(page, url)
    until(page, "window.fpvcar.state.role === 'driver'")
    go_on(page)
    return page


def seated_over(page: Page, link: Link) -> Page:
    """Open the page at the wheel, over the link."""
    return at_the_wheel(page, f"http://localhost:{link.port}/")


def comes_back(page: Page) -> None:
    """Wait for a live picture and the wheel, without a reload."""
    until(page, "window.fpvcar.link.kind === 'up' && window.fpvcar.state.role === 'driver'")
    shown = probe(page, "video.shown")
    until(page, f"window.fpvcar.video.shown > {shown} + 10")


def go_on(page: Page | Frame) -> None:
    """Press Resume if it is there, and wait until the car may drive."""
    for _ in range(50):
        stop = probe(page, "state.stop")
        if stop is None and probe(page, "state.wheels") == "ok":
            return
        if stop and stop["clears"] == "resume":
            with suppress(TimeoutError):  # the stop may be over already
                page.locator("#resume").click(timeout=1000)
        page.wait_for_timeout(100)
    raise AssertionError(f"still held: {probe(page, 'state')}")


class Thumbs:
    """Two thumbs on the sticks of a touch screen."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self._touch = context.new_cdp_session(page)
        self._sticks = [_middle(page, "#pad-drive"), _middle(page, "#pad-steer")]

    def push(self) -> None:
        """Push forward, and to the left."""
        (x, y), (u, v) = self._sticks
        self._send("touchStart", (x, y), (u, v))
        self._send("touchMove", (x, y - 45), (u - 45, v))

    def lift(self) -> None:
        """Lift both thumbs off the sticks."""
        self._send("touchEnd")

    def _send(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
        self._touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})


@contextmanager
def touching(context: BrowserContext, page: Page, buttons: Sequence[int]) -> Iterator[None]:
    """Hold fingers on some of the children's buttons."""
    touch = context.new_cdp_session(page)
    points = []
    for number in buttons:
        x, y = _middle(page, f'[data-button="{number}"]')
        points.append({"x": x, "y": y, "id": number})
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points})
    try:
        yield
    finally:
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        touch.detach()


def _middle(page: Page, pad: str) -> tuple[float, float]:
    box = page.locator(pad).bounding_box()
    assert box is not None, f"{pad} is not shown"
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drives(
    page: Page | Frame,
    reached: Callable[[], bool],
    do: Callable[[], object],
    undo: Callable[[], object],
    what: str,
) -> None:
    """Run an action that drives, and wait until the pins have `reached` the state.

    A machine that was busy for a quarter of a second stops the car rightly (blind, silence). As a
    driver would, this undoes the action and tries again.
    """
    for _ in range(6):
        do()
        try:
            wait_for(reached, what, 3.0, 0.001)
            return
        except AssertionError:
            undo()
            go_on(page)
    raise AssertionError(f"{what} does not drive: {probe(page, 'state')}")


def holds(page: Page, watch: PinWatch, key: str, seat: Page | Frame | None = None) -> None:
    """Hold a key down and wait until a bridge is driven. `seat` is the frame of the car's page."""
    drives(
        seat or page,
        lambda: watch.now.driving,
        lambda: page.keyboard.down(key),
        lambda: page.keyboard.up(key),
        key,
    )


def stands(watch: PinWatch, what: str = "the car", timeout_s: float = 10.0) -> None:
    """Wait until no bridge is driven."""
    wait_for(lambda: not watch.now.driving, f"{what} drives on", timeout_s, 0.001)

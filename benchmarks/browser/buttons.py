"""Latency of a button, on the car or on a page: to the LED at the pin, and to every page.

The contact is the emulated chip's, closed from outside; on a page the time stamp of the browser's
own pointer event counts. Pages report their lighting by their clock. All four buttons are pushed in
turn: while one glows or fades, the next is pushed.
"""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack

from playwright.sync_api import Page
from testkit.browsers.seat import until
from testkit.harness import RunningBench, wait_for

from benchmarks.leds import LedWatch
from benchmarks.rig import Settings, running, say, wall_ahead_ms
from benchmarks.rows import Aim, Result, row
from fpvbench import soc as chips
from fpvcar.config import profiles
from fpvcar.runtime import paths

PUSHES = 200
"""Smallest number of pushes: with fewer the p99 is the worst."""
BETWEEN_S = (0.05, 0.12)
NOTE_PUSH = """
addEventListener('pointerdown', (event) => {
  window.pushedAt = performance.timeOrigin + event.timeStamp;
}, true);
"""
TO_LED, TO_PAGES = Aim(p99=20.0), Aim(p99=50.0)


class Rig:
    """Bench with its pages and the watched LEDs."""

    def __init__(self, bench: RunningBench, pages: list[Page]) -> None:
        wired = profiles.load(paths.HARDWARE / "bench.toml").buttons.values()
        self.contacts = [button.button for button in wired if button.button is not None]
        self.leds = [button.led for button in wired if button.led is not None]
        assert len(self.contacts) == len(self.leds) == len(wired)
        self.soc, self.pages = bench.soc, pages
        self.watch = LedWatch(bench.runtime / "soc", self.leds)
        self.dice = random.Random(1)

    def press(self, number: int) -> float:
        """Close a contact; return CLOCK_MONOTONIC in ms just before."""
        now_ms = time.monotonic() * 1000.0
        self.soc.pin[self.contacts[number]].external = 0
        return now_ms

    def let_go(self, number: int) -> None:
        """Open the contact of a button."""
        self.soc.pin[self.contacts[number]].external = chips.FLOATING

    def numbers(self, pushes: int) -> Iterator[int]:
        """Yield the next button's number, once it is dark on the car and on all pages."""
        for count in range(pushes):
            number = count % len(self.leds)
            time.sleep(self.dice.uniform(*BETWEEN_S))
            wait_for(lambda: not self.watch.lit[self.leds[number]], "it glows on", 5.0)  # noqa: B023
            for page in self.pages:
                until(page, f"!(window.fpvcar.lit & {1 << number})")
            yield number

    def led_ms(self, number: int, earlier: int) -> float:
        """Return the time of the LED's next lighting, after `earlier` others."""
        lit_ms = self.watch.lit_ms[self.leds[number]]
        wait_for(lambda: len(lit_ms) > earlier, "no LED", 5.0, 0.001)
        return lit_ms[earlier]


def lit_at_ms(page: Page, number: int, since_ms: float) -> float:
    """Return when the page first showed the button lit after `since_ms`; CLOCK_MONOTONIC, ms."""
    bit, ahead_ms = 1 << number, wall_ahead_ms()
    times_ms: list[float] = []

    def lit() -> bool:
        changes = page.evaluate("window.fpvcar.changes")
        times_ms[:] = [
            at_ms - ahead_ms
            for at_ms, mask in changes
            if int(mask) & bit and at_ms - ahead_ms >= since_ms - 1.0
        ]
        return bool(times_ms)

    wait_for(lit, "the page stays dark", 5.0, 0.005)
    return times_ms[0]


def on_the_car(rig: Rig, pushes: int) -> tuple[list[float], list[float]]:
    """Return ms from the contact to the LED, and to each page."""
    to_led, to_pages = [], []
    for number in rig.numbers(pushes):
        earlier = len(rig.watch.lit_ms[rig.leds[number]])
        pressed_ms = rig.press(number)
        to_led.append(rig.led_ms(number, earlier) - pressed_ms)
        to_pages += [lit_at_ms(page, number, pressed_ms) - pressed_ms for page in rig.pages]
        rig.let_go(number)
    return to_led, to_pages


def on_a_page(rig: Rig, pushes: int) -> tuple[list[float], list[float], list[float]]:
    """Return ms from the pointer to the same page's glow, to the LED, and to the other pages."""
    pusher, watchers = rig.pages[0], rig.pages[1:]
    to_own, to_led, to_others = [], [], []
    cells = [pusher.locator(".cell").nth(n).bounding_box() for n in range(len(rig.leds))]
    for number in rig.numbers(pushes):
        box, earlier = cells[number], len(rig.watch.lit_ms[rig.leds[number]])
        assert box is not None
        pusher.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        pusher.mouse.down()
        lit_ms = rig.led_ms(number, earlier)
        pushed_ms = pusher.evaluate("window.pushedAt") - wall_ahead_ms()
        to_own.append(lit_at_ms(pusher, number, pushed_ms) - pushed_ms)
        to_led.append(lit_ms - pushed_ms)
        to_others += [lit_at_ms(page, number, pushed_ms) - pushed_ms for page in watchers]
        pusher.mouse.up()
    return to_own, to_led, to_others


def rows(settings: Settings) -> Iterator[Result]:
    """Measure with two pages in two contexts of one browser, and the car."""
    pushes = max(PUSHES, settings.runs)
    with ExitStack() as stack:
        browser = stack.enter_context(settings.chromium())
        bench = stack.enter_context(running())
        pages = [_open(browser.new_context().new_page(), bench.url) for _ in range(2)]
        rig = Rig(bench, pages)
        stack.enter_context(rig.watch)
        say(f"buttons: {pushes} pushes on the car")
        led, pages_ms = on_the_car(rig, pushes)
        yield row("buttons", "push on the car to its LED", "ms", led, TO_LED)
        yield row("buttons", "push on the car to every page", "ms", pages_ms, TO_PAGES)
        say(f"buttons: {pushes} pushes on a page")
        glow, led, pages_ms = on_a_page(rig, pushes)
        yield row("buttons", "push on a page to its own glow", "ms", glow, TO_LED)
        yield row("buttons", "push on a page to the LED", "ms", led, TO_LED)
        yield row("buttons", "push on a page to every other", "ms", pages_ms, TO_PAGES)


def _open(page: Page, url: str) -> Page:
    page.add_init_script(NOTE_PUSH)
    page.goto(f"{url}buttons")
    until(page, "window.fpvcar?.link === 'up'", 20.0)
    return page

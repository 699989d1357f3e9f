"""The children's page: two pages and the car's own buttons, all in step."""

import signal
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from testkit.browsers.seat import open_menu, touching, until, violations
from testkit.harness import SMALL, RunningBench, wait_for

from fpvbench import soc as chips
from fpvcar.buttons.game import PATIENCE_S
from fpvcar.config import profiles
from fpvcar.runtime import paths

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
LOOKS = list(profiles.load(paths.HARDWARE / "bench.toml").buttons.values())
WORDS = """
[...document.querySelectorAll('body *')].filter((one) =>
  !one.closest('.unseen, noscript, script') &&
  [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .map((one) => one.outerHTML)
"""
STUBS = """
Object.assign(window, {shaken: [], locks: 0});
const lock = () => ({released: false, release: async () => { window.locks -= 1; }});
Object.defineProperty(navigator, 'vibrate', {value: (ms) => window.shaken.push(ms)});
Object.defineProperty(navigator, 'wakeLock', {value: {
  request: async () => { window.locks += 1; return lock(); },
}});
"""
HIDE = """
Object.defineProperty(document, 'visibilityState', {value: 'hidden'});
document.dispatchEvent(new Event('visibilitychange'));
"""
THREE = """
document.querySelector('.cell:last-child').remove();
document.querySelector('.stage').dataset.count = '3';
"""
SIZES = [(320, 568), (390, 844), (844, 390), (768, 1024), (1280, 800)]


def opened(page: Page, bench: RunningBench, by_menu: bool = False) -> Page:
    """Open the page, in step with the car."""
    if by_menu:
        page.goto(bench.url)
        open_menu(page, "car")
        page.locator('a[href="buttons"]').click()
    else:
        page.goto(f"{bench.url}buttons")
    until(page, "window.fpvcar?.link === 'up' && window.fpvcar.glow !== null")
    return page


@pytest.fixture
def phone(browser: Browser, bench: RunningBench) -> Iterator[BrowserContext]:
    """A small phone, with a touch screen."""
    context = browser.new_context(
        viewport={"width": 320, "height": 568}, has_touch=True, is_mobile=True
    )
    yield context
    context.close()


def press(bench: RunningBench, number: int, down: bool = True) -> None:
    """Close a contact of the car from outside, or open it."""
    gpio = LOOKS[number].button
    assert gpio is not None
    bench.soc.pin[gpio].external = 0 if down else chips.FLOATING


def bright(bench: RunningBench, number: int) -> float:
    gpio = LOOKS[number].led
    assert gpio is not None
    return float(bench.soc.pin[gpio].duty())


def all_show(pages: list[Page], lit: int) -> None:
    for page in pages:
        until(page, f"window.fpvcar.lit === {lit}")


@pytest.mark.smoke
def test_car_and_pages_are_in_step_and_nothing_drives(
    phone: BrowserContext, page: Page, bench: RunningBench
) -> None:
    sockets: list[str] = []
    page.on("websocket", lambda one: sockets.append(one.url))
    one, other = opened(phone.new_page(), bench), opened(page, bench)
    with bench.watch() as watch:
        for number in (0, 1, 2):  # one or two for two seconds would begin a game
            press(bench, number)
        all_show([one, other], 0b0111)
        wait_for(lambda: bright(bench, 2) == 1.0, "no LED")
        for number in (0, 1, 2):
            press(bench, number, down=False)
        all_show([one, other], 0)
        wait_for(lambda: bright(bench, 2) == 0.0, "it glows on")
        with touching(phone, one, (0, 3)):
            all_show([one, other], 0b1001)
            wait_for(lambda: bright(bench, 0) == 1.0, "no LED")
            wait_for(lambda: 0.7 < bright(bench, 3) < 0.9, "not its brightness")
        all_show([one, other], 0)
        other.keyboard.down("Digit2")
        all_show([one, other], 0b0010)
        other.keyboard.up("Digit2")
        all_show([one, other], 0)
        for key in ("ArrowUp", "w", "Space", "Enter"):
            other.keyboard.press(key)
        other.locator("#rainbow").click()
        until(one, "window.fpvcar.mode === 'rainbow'")
        one.keyboard.press("Digit1")
        until(other, "window.fpvcar.mode === 'free'")
        assert not any(sample.driving for sample in watch.samples)
    assert sockets == [f"ws://localhost:{bench.port}/ws/buttons"]


def test_push_glows_before_the_car_answers(page: Page, bench: RunningBench) -> None:
    """While the car does not answer, the page is grey and works as a toy; then it comes back by
    itself."""
    opened(page, bench, by_menu=True)
    bench.kill("run", signal.SIGSTOP)
    try:
        page.keyboard.down("Digit1")
        assert page.evaluate("window.fpvcar.lit") == 1
        page.keyboard.up("Digit1")
        until(page, "document.body.dataset.link === 'none'", 4.0)
        page.locator('[data-button="3"]').hover()
        page.mouse.down()
        assert page.evaluate("window.fpvcar.lit") == 0b1000, "a toy by itself"
        page.mouse.up()
    finally:
        bench.kill("run", signal.SIGCONT)
    until(page, "document.body.dataset.link === 'up'")
    page.keyboard.down("Digit4")
    wait_for(lambda: bright(bench, 3) > 0.0, "it is back, and the LED is dark")
    page.keyboard.up("Digit4")


def test_page_vibrates_for_own_pushes_and_keeps_screen_awake(
    page: Page, bench: RunningBench
) -> None:
    page.add_init_script(STUBS)
    opened(page, bench)
    page.keyboard.down("Digit1")
    page.keyboard.up("Digit1")
    assert page.evaluate("window.shaken") == [25]
    press(bench, 1)
    until(page, "window.fpvcar.lit & 2")
    press(bench, 1, down=False)
    assert page.evaluate("window.shaken") == [25], "of others' pushes it glows only"
    until(page, "window.locks === 1")
    page.evaluate(HIDE)
    until(page, "window.locks === 0")


def test_page_fills_screens_of_all_sizes_and_passes_axe(
    browser: Browser, bench: RunningBench
) -> None:
    context = browser.new_context(has_touch=True, is_mobile=True)
    page = opened(context.new_page(), bench)
    root = "document.documentElement"
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.touchscreen.tap(width / 2, height / 2)
        assert page.evaluate(f"{root}.scrollWidth <= {width}")
        assert page.evaluate(f"{root}.scrollHeight <= {height}")
        boxes = [one.bounding_box() for one in page.locator(".big").all()]
        assert len(boxes) == 4
        for box in boxes:
            assert box is not None and box["width"] == pytest.approx(box["height"])
            assert box["width"] >= 0.36 * min(width, height), "too small for a child"
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
            assert box["y"] >= 0 and box["y"] + box["height"] <= height
        for tool in page.locator(".tools > *").all():
            box = tool.bounding_box()
            assert box is not None and box["width"] >= 48 and box["height"] >= 48
            assert box["x"] + box["width"] <= width
            assert box["y"] + box["height"] <= height
    assert page.evaluate("visualViewport.scale") == 1
    assert violations(page) == [], "free"
    page.locator("#game").click()
    until(page, "window.fpvcar.mode === 'turn'")
    assert violations(page) == [], "in the game"
    assert page.evaluate(WORDS) == [], "there is nothing to read"
    # Where axe took longer than the game's patience, the game has ended by itself, and this push
    # begins another one that stays unplayed.
    page.locator("#game").click()
    until(page, "window.fpvcar.mode === 'free'", 2.0 * PATIENCE_S)
    page.evaluate(THREE)
    page.set_viewport_size({"width": 844, "height": 390})
    boxes = [one.bounding_box() for one in page.locator(".big").all()]
    assert len(boxes) == 3 and len({box and round(box["y"]) for box in boxes}) == 1, "one row"
    context.close()


def test_long_push_returns_to_the_seat(page: Page, bench: RunningBench) -> None:
    opened(page, bench)
    back = page.locator("#seat")
    assert "hold for a second" in (back.get_attribute("aria-label") or "")
    back.click()
    back.dispatch_event("pointerdown")
    back.dispatch_event("pointerup")
    page.wait_for_timeout(1200)
    assert page.url.endswith("/buttons"), "a short push is a child's"
    back.hover()
    page.mouse.down()
    page.wait_for_url(bench.url, timeout=5_000)
    page.mouse.up()


def test_memory_game_runs_on_the_car_without_a_page(bench: RunningBench) -> None:
    """Long push, watch the LEDs, repeat; no page is open."""
    press(bench, 0)
    wait_for(lambda: bright(bench, 0) == 1.0, "no LED")
    wait_for(lambda: bright(bench, 0) == 0.0, "no game", 4.0)
    press(bench, 0, down=False)
    pattern = shown(bench, 1)
    time.sleep(0.3)
    tap(bench, pattern[0])
    wait_for(
        lambda: all(bright(bench, each) for each in range(len(LOOKS))),
        f"no cheer after {pattern}",
        3.0,
    )
    wait_for(lambda: not any(bright(bench, each) for each in range(4)), "glows")
    pattern = shown(bench, 2)
    time.sleep(0.3)
    tap(bench, (pattern[0] + 1) % 4)
    wait_for(lambda: bright(bench, pattern[0]) > 0.0, "what was right does not blink")


def shown(bench: RunningBench, length: int) -> list[int]:
    """Return the pattern shown by the LEDs; fades are dimmer."""
    found: list[int] = []
    before: list[int] = []

    def whole() -> bool:
        now = [n for n in range(4) if bright(bench, n) >= 0.9 * LOOKS[n].brightness]
        if now and not before:
            found.append(now[0])
        before[:] = now
        return len(found) == length and not now

    wait_for(whole, f"no pattern of {length}", 8.0, 0.005)
    return found


def tap(bench: RunningBench, number: int) -> None:
    """Push a button of the car for as long as a finger does."""
    press(bench, number)
    time.sleep(0.12)
    press(bench, number, down=False)
    time.sleep(0.12)

"""Takes the README's pictures anew: `make pictures`. A real bench, a real browser."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser
from tests.e2e.conftest import chromium
from tests.e2e.harness import RunningBench
from tests.e2e.seat import Thumbs, at_the_wheel, go_on, touching, until

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZES = {
    "seat-desktop": (1280, 720, False),
    "seat-phone-landscape": (844, 390, True),
    "seat-phone-portrait": (390, 844, True),
}
DRIVES = """document.body.dataset.situation === 'driving' &&
  document.body.dataset.picture === 'live' &&
  document.getElementById('toasts').childElementCount === 0"""
BUTTONS = "buttons-phone"
RECORDINGS = "recordings"


def take(browser: Browser, home: Path, name: str) -> None:
    """Drives a little way into the room, and keeps what the page then shows."""
    width, height, phone = SIZES[name]
    bench = RunningBench(home).wait_ready()
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=phone, is_mobile=phone,
        device_scale_factor=2 if phone else 1,
    )  # fmt: skip
    page = at_the_wheel(context.new_page(), bench.url)
    until(page, "document.getElementById('intro-ok') !== null")
    page.locator("#intro-ok").click()
    thumbs = Thumbs(context, page) if phone else None
    for _ in range(20):
        if thumbs is not None:
            thumbs.push()
        else:
            page.keyboard.down("ArrowUp")
            page.keyboard.down("ArrowLeft")
        page.wait_for_timeout(400)
        fine = bool(page.evaluate(DRIVES))
        page.screenshot(path=TARGET / f"{name}.png")
        fine = fine and bool(page.evaluate(DRIVES))
        if thumbs is not None:
            thumbs.lift()
        else:
            page.keyboard.up("ArrowUp")
            page.keyboard.up("ArrowLeft")
        if fine:
            break
        go_on(page)  # a machine that was busy has stopped the car
    if name == "seat-phone-portrait":
        page.locator("#stop").click()
        page.wait_for_timeout(800)
        page.screenshot(path=TARGET / "stopped-phone.png")
    context.close()
    bench.stop()


def take_buttons(browser: Browser, home: Path) -> None:
    """Two fingers on a phone."""
    bench = RunningBench(home).wait_ready()
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
        device_scale_factor=2,
    )  # fmt: skip
    page = context.new_page()
    page.goto(f"{bench.url}buttons")
    until(page, "window.fpvcar?.link === 'up'")
    with touching(context, page, (0, 3)):
        page.wait_for_timeout(500)
        page.screenshot(path=TARGET / f"{BUTTONS}.png")
    context.close()
    bench.stop()


def take_recordings(browser: Browser, home: Path) -> None:
    """A drive that has just been driven."""
    bench = RunningBench(home, "--set=recording.segment_s = 5").wait_ready()
    context = browser.new_context(viewport={"width": 1280, "height": 1180})
    page = at_the_wheel(context.new_page(), bench.url)
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight") * 2:
        page.keyboard.down(key)
        page.wait_for_timeout(700)
        page.keyboard.up(key)
    page.wait_for_timeout(6000)
    page.goto(f"{bench.url}recordings")
    until(page, "document.querySelector('#list canvas[data-drawn]') !== null")
    page.locator("#list a").first.click()
    until(page, "window.recordings.lines.length >= 10")
    at_s = int(float(page.locator("#scrub").get_attribute("max") or "0")) - 8
    page.locator("#scrub").fill(str(at_s))
    until(page, f"Math.abs(window.recordings.shownS - {at_s}) < 0.2")
    page.screenshot(path=TARGET / f"{RECORDINGS}.png")
    context.close()
    bench.stop()


def main() -> int:
    """Writes docs/pictures/*.png."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        for name in SIZES:
            own = Path(home) / name
            own.mkdir()
            take(browser, own, name)
            print(f"docs/pictures/{name}.png")
        for name, taken in ((BUTTONS, take_buttons), (RECORDINGS, take_recordings)):
            own = Path(home) / name
            own.mkdir()
            taken(browser, own)
            print(f"docs/pictures/{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())

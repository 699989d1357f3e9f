"""Takes the README's pictures anew: `make pictures`. A real bench, a real browser."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser
from tests.e2e.conftest import chromium
from tests.e2e.harness import RunningBench
from tests.e2e.seat import Thumbs, at_the_wheel, touching, until

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZES = {
    "seat-desktop": (1280, 720, False),
    "seat-phone-landscape": (844, 390, True),
    "seat-phone-portrait": (390, 844, True),
}
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
    thumbs = Thumbs(context, page) if phone else None
    if thumbs is not None:
        thumbs.push()
    else:
        page.keyboard.down("ArrowUp")
        page.keyboard.down("ArrowLeft")
    page.wait_for_timeout(700 if phone else 400)
    page.screenshot(path=TARGET / f"{name}.png")
    if thumbs is not None:
        thumbs.lift()
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

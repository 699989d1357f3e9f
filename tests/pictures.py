"""Takes the README's pictures anew: `make pictures`. A real bench, a real browser."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.e2e.conftest import CHROMIUM, FLAGS
from tests.e2e.harness import RunningBench
from tests.e2e.seat import until

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZES = {
    "seat-desktop": (1280, 720, False),
    "seat-phone-landscape": (844, 390, True),
    "seat-phone-portrait": (390, 844, True),
}


def take(browser: Browser, bench: RunningBench, name: str) -> None:
    """Drives a little, and keeps what the page then shows."""
    width, height, phone = SIZES[name]
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=phone, is_mobile=phone,
        device_scale_factor=2 if phone else 1,
    )  # fmt: skip
    page = context.new_page()
    page.goto(bench.url)
    until(page, "window.fpvcar && window.fpvcar.video.shown > 30")
    page.keyboard.down("ArrowUp")
    page.keyboard.down("ArrowLeft")
    page.wait_for_timeout(900)
    page.screenshot(path=TARGET / f"{name}.png")
    page.keyboard.up("ArrowUp")
    page.keyboard.up("ArrowLeft")
    page.wait_for_timeout(300)
    if name == "seat-phone-portrait":
        page.locator("#stop").click()
        page.wait_for_timeout(500)
        page.screenshot(path=TARGET / "stopped-phone.png")
        page.locator("#go-on").click()
    context.close()


def main() -> int:
    """Writes docs/pictures/*.png."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        bench = RunningBench(Path(home)).wait_ready()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            for name in SIZES:
                take(browser, bench, name)
                print(f"docs/pictures/{name}.png")
        finally:
            browser.close()
            bench.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

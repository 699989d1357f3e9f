"""Takes the README's pictures anew: `make pictures`. A real bench, a real browser."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.e2e.conftest import chromium
from tests.e2e.harness import RunningBench
from tests.e2e.seat import Thumbs, at_the_wheel

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZES = {
    "seat-desktop": (1280, 720, False),
    "seat-phone-landscape": (844, 390, True),
    "seat-phone-portrait": (390, 844, True),
}


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


def main() -> int:
    """Writes docs/pictures/*.png."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        for name in SIZES:
            own = Path(home) / name
            own.mkdir()
            take(browser, own, name)
            print(f"docs/pictures/{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Screenshots of each state of the driver's seat at each size, for inspection.

    python -m tools.screenshots /tmp/seat [--light] [--only stopped,menu]
    python -m tools.screenshots build/contact --sheet --language de [--sizes 320x568]

A contact sheet has the states of all pages: a row for each size, a column for each state. The
states come from a simulated car; the room is the bench's.
"""

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import av
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page
from testkit.browsers.chromium import chromium
from testkit.browsers.layout import faults
from testkit.browsers.played_answers import PEOPLE, PlayedAnswers
from testkit.browsers.played_car import SECURE, VECTORS, play
from testkit.browsers.seat_states import GROWN_UP, KEYS, LOOKS, TOUCH, Look, show

from fpvcar.video.programs.encoder import Encoder

SETTLE_MS = 250


SHEET_SIZES = {
    "320x568": (320, 568),
    "390x844": (390, 844),
    "844x390": (844, 390),
    "768x1024": (768, 1024),
    "1280x720": (1280, 720),
    "1920x1080": (1920, 1080),
}
TOUCH_WIDTH = 1024
"""Widest screen for fingers; wider ones have keys."""
CELL = 300
"""Longest side of a picture in a sheet of several sizes, in pixels."""
REPEAT = """(messages) => setInterval(() => {
  for (const socket of played.sockets) for (const message of messages) socket.hear(message);
}, 300)"""
"""Sends the messages again and again: a page drops a silent link."""


def room() -> list[bytes]:
    """Return a second of video of the bench's room, from the car's start."""
    os.environ["MUJOCO_GL"] = "egl"
    import mujoco

    from fpvbench.world import looks

    model = looks.build(1, 640, 480)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = mujoco.Renderer(model, 480, 640)
    renderer.update_scene(data, "driver")
    pixels = np.ascontiguousarray(renderer.render())
    renderer.close()
    encoder = Encoder(640, 480, 30.0, 4_000_000)
    return [
        encoder.encode(
            av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p"),
            key=number == 0,
        )[0]
        for number in range(30)
    ]


@contextmanager
def seat(
    browser: Browser, film: list[bytes], touch: bool, scheme: str, language: str = "en"
) -> Iterator[Page]:
    """Open the page for touch or for keys."""
    context = browser.new_context(
        viewport={"width": 800, "height": 600},
        has_touch=touch,
        is_mobile=touch,
        color_scheme="light" if scheme == "light" else "dark",
        locale=language,
    )
    yield play(context, film)
    context.close()


def menu(*push: str, shows: str = "#menu") -> Look:
    """Return the state of the menu after a grown-up's pushes."""
    return Look(GROWN_UP, f"document.querySelector('{shows}') !== null", push=("#gear", *push))


SHOWN = "driving stopped watching asked naming code-asked-stopped intercom two-cameras".split()
SEAT = {
    **{name: LOOKS[name] for name in SHOWN},
    **{f"menu-{tab}": menu(f"#tab-{tab}") for tab in ("drive", "picture", "car", "grown-ups")},
    "calibration": menu("#tab-car", "#calibrate", shows="[data-testid=calibration-undo]"),
    "doctor": menu("#tab-car", "#look-for-faults", shows=".finding"),
}
PAGES = {
    "recordings": ("recordings.html", "#list a"),
    "player": ("recordings.html", "#list a", "#plots svg"),
    "buttons": ("buttons.html", "[data-button]"),
}
"""Other pages of a sheet: the file, and elements to wait for; all but the last are clicked."""


def opened(page: Page, name: str) -> None:
    """Open a page in a state of SEAT or PAGES."""
    if name in SEAT:
        show(page, SEAT[name])
        page.evaluate(REPEAT, [{"kind": "people", "people": PEOPLE}])
        return
    file, *clicks, last = PAGES[name]
    page.goto(f"{SECURE}{file}")
    if name == "buttons":
        vectors = json.loads(VECTORS.with_name("buttons_down.json").read_text())["good"]
        page.evaluate(REPEAT, [vectors[0]["fields"], vectors[2]["fields"]])
    for selector in clicks:
        page.locator(selector).first.click()
    page.locator(last).first.wait_for()
    page.wait_for_timeout(2 * SETTLE_MS)  # the buttons' link comes up


def contact(page: Page, names: list[str], sizes: Mapping[str, tuple[int, int]]) -> Image.Image:
    """Return the states of one page at these sizes, a row each; report overlaps in the seat."""
    PlayedAnswers(page)
    rows: list[list[Image.Image]] = [[] for _ in sizes]
    for name in names:
        opened(page, name)
        for row, (size, (width, height)) in zip(rows, sizes.items(), strict=True):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(SETTLE_MS)
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            share = CELL / max(width, height) if len(sizes) > 1 else 1.0
            row.append(picture.resize((round(width * share), round(height * share))))
            if name in SEAT:
                for fault in faults(page):
                    print(f"{name} at {size}: {fault}")
    return stacked([stacked(row, across=True) for row in rows])


def stacked(pictures: list[Image.Image], across: bool = False) -> Image.Image:
    """Return the pictures in a row or a column, with a gap between."""
    axis, gap = (0, 8) if across else (1, 8)
    ends = list(accumulate((picture.size[axis] + gap for picture in pictures), initial=0))
    most = max(picture.size[1 - axis] for picture in pictures)
    whole = Image.new("RGB", (ends[-1], most) if across else (most, ends[-1]), "magenta")
    for picture, end in zip(pictures, ends, strict=False):
        whole.paste(picture, (end, 0) if across else (0, end))
    return whole


def sheets(browser: Browser, film: list[bytes], options: argparse.Namespace) -> None:
    """Write one sheet for each colour scheme, such as TARGET/de-dark.png."""
    names = options.only.split(",") if options.only else [*SEAT, *PAGES]
    chosen = options.sizes.split(",") if options.sizes else list(SHEET_SIZES)
    for scheme in ("dark", "light"):
        parts = []
        for touch in (True, False):
            sizes = {
                size: SHEET_SIZES[size]
                for size in chosen
                if (SHEET_SIZES[size][0] <= TOUCH_WIDTH) is touch
            }
            if sizes:
                with seat(browser, film, touch, scheme, options.language) as page:
                    parts.append(contact(page, names, sizes))
        path = options.target / f"{options.language}-{scheme}.png"
        stacked(parts).save(path)
        print(path)


def main() -> int:
    """Write TARGET/STATE-SIZE.png, and report overlapping elements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", type=Path, help="the folder for the pictures")
    parser.add_argument("--only", help="states, with commas between", default="")
    parser.add_argument("--light", action="store_true", help="the light scheme")
    parser.add_argument("--sheet", action="store_true", help="contact sheets, dark and light")
    parser.add_argument("--language", default="en", help="the sheet's, as in web/lang")
    parser.add_argument("--sizes", default="", help=f"the sheet's: {', '.join(SHEET_SIZES)}")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(LOOKS)
    options.target.mkdir(parents=True, exist_ok=True)
    film = room()
    with chromium() as browser:
        if options.sheet:
            sheets(browser, film, options)
            return 0
        for sizes, touch in ((TOUCH, True), (KEYS, False)):
            with seat(browser, film, touch, "light" if options.light else "dark") as page:
                for name in names:
                    show(page, LOOKS[name])
                    for size, (width, height) in sizes.items():
                        page.set_viewport_size({"width": width, "height": height})
                        page.wait_for_timeout(SETTLE_MS)
                        page.screenshot(path=options.target / f"{name}-{size}.png")
                        for fault in faults(page):
                            print(f"{name} at {size}: {fault}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Screenshots of each state of the driver's seat at each size, for inspection.

    python -m tools.screenshots /tmp/seat [--light] [--only stopped,menu]

The states come from a simulated car; the room is the bench's.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import av
import numpy as np
from playwright.sync_api import Browser, Page
from tests.e2e.browser.layout import faults
from tests.e2e.browser.seat_states import KEYS, LOOKS, TOUCH, show
from tests.e2e.conftest import chromium
from tests.support.played_car import play

from fpvcar.video.programs.encoder import Encoder

SETTLE_MS = 250


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
def seat(browser: Browser, film: list[bytes], touch: bool, scheme: str) -> Iterator[Page]:
    """Open the page for touch or for keys."""
    context = browser.new_context(
        viewport={"width": 800, "height": 600},
        has_touch=touch,
        is_mobile=touch,
        color_scheme="light" if scheme == "light" else "dark",
    )
    yield play(context, film)
    context.close()


def main() -> int:
    """Write TARGET/STATE-SIZE.png, and report overlapping elements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", type=Path, help="the folder for the pictures")
    parser.add_argument("--only", help="states, with commas between", default="")
    parser.add_argument("--light", action="store_true", help="the light scheme")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(LOOKS)
    options.target.mkdir(parents=True, exist_ok=True)
    film = room()
    with chromium() as browser:
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

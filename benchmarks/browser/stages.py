"""Stages of a picture's way to the glass: camera, car, browser's network, decoder, canvas, paint.

The camera's stage is measured at its pipe, without a car; the car's by a client without a browser.
All other stages are noted by stages.js in the page, picture by picture.
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from testkit.browsers.seat import until
from testkit.cameras.camera import Camera
from testkit.driver import open_socket
from testkit.harness import RunningBench

from benchmarks.browser.video import FPS, source
from benchmarks.rig import Settings, running, say, wall_ahead_ms
from benchmarks.rows import Result, row

SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
SIZES = ((640, 480), (1280, 720))
PAGE = ("received", "decoded", "drawn", "painted")
NAMES = ("browser's network", "decoder", "drawing", "wait for the paint")
SETTLED_S = 2.0


def camera_ms(seconds: float, width: int, height: int) -> list[float]:
    """Return the times from capture to the end of the record in the camera's pipe."""
    size = (f"--width={width}", f"--height={height}", f"--fps={FPS}")
    camera, taken_ms = Camera("--source=strip", *size), []
    try:
        until_s = time.monotonic() + SETTLED_S + seconds
        while (now_s := time.monotonic()) < until_s:
            captured_us = camera.record().capture_us
            if until_s - now_s < seconds:
                taken_ms.append(time.monotonic_ns() / 1e6 - captured_us / 1e3)
    finally:
        camera.close()
    return taken_ms


def received_ms(bench: RunningBench, seconds: float) -> dict[int, float]:
    """Return the monotonic time at which a client without a browser has each picture."""
    times: dict[int, float] = {}
    with open_socket(bench.port, "/ws/video?id=stages") as socket:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            message = socket.recv(5.0)
            if isinstance(message, bytes):
                captured_us = int.from_bytes(message[8:16], "little")
                times[captured_us] = time.monotonic_ns() / 1e6
    return times


def rows(settings: Settings) -> Iterator[Result]:
    """Measure each stage; the sum of medians is about the median of the path."""
    seconds = settings.seconds / 2
    for width, height in SIZES:
        name = f"stages {width}x{height}@{FPS}"
        say(f"video: {name}, {2 * seconds:.0f} s")
        camera = camera_ms(seconds, width, height)
        yield row("video", f"{name}: camera and encoder", "ms", camera)
        with running(*source("strip", FPS, width, height)) as bench, settings.chromium() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.add_init_script(SCRIPT)
            page.goto(bench.url)
            until(page, "window.fpvcar?.video.shown > 10", 20.0)
            client = received_ms(bench, seconds)
            seen = page.evaluate("[...window.stages]")
        ahead_ms = wall_ahead_ms()
        whole = [
            (us, [times[stage] - ahead_ms for stage in PAGE])
            for us, times in seen
            if us in client and all(stage in times for stage in PAGE)
        ]
        yield row(
            "video",
            f"{name}: pipe, car and socket",
            "ms",
            [client[us] - us / 1e3 - statistics.median(camera) for us, _ in whole],
        )
        for at, stage in enumerate(NAMES):
            spent = [ms[at] - (ms[at - 1] if at else client[us]) for us, ms in whole]
            yield row("video", f"{name}: {stage}", "ms", spent)

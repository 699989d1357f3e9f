"""Capture to glass: read off the page, before every paint.

The camera paints the car's clock into each picture just before its encoder
(fpvcar.bench.camera_strip); a script in the page reads it back.
"""

from collections.abc import Iterator

from playwright.sync_api import Page

from tests.bench.rig import Given, opened, running, wall_ahead_ms
from tests.bench.rows import Aim, Result, row

READ_STRIP = """
() => {
  const cells = 40, row = 8;
  const canvas = document.createElement('canvas');
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  window.stripSamples = [];
  let last = -1;
  const look = () => {
    requestAnimationFrame(look);
    const mse = window.fpvcar.video.path === 'mse';
    const source = document.querySelector(mse ? '#picture-mse' : '#picture');
    const width = source.videoWidth || source.width;
    if (!width) return;
    canvas.width = width; canvas.height = 1;
    pen.drawImage(source, 0, row, width, 1, 0, 0, width, 1);
    const line = pen.getImageData(0, 0, width, 1).data;
    const cell = Math.floor(width / cells);
    let bits = 0n;
    for (let i = 0; i < cells; i++)
      bits = bits << 1n | (line[4 * (i * cell + (cell >> 1))] > 128 ? 1n : 0n);
    const clock = Number(bits >> 4n & 0xffffffffn);
    let check = 0;
    for (let i = 0; i < 8; i++) check ^= Number(BigInt(clock) >> BigInt(4 * i) & 15n);
    if (Number(bits & 15n) !== check || Number(bits >> 36n) !== 10) return;
    if (clock === last) return;
    last = clock;
    window.stripSamples.push([clock, performance.timeOrigin + performance.now()]);
  };
  look();
}
"""


def measure(page: Page, seconds: float) -> list[float]:
    """Ages of the pictures as they are painted, ms."""
    page.evaluate(READ_STRIP)
    page.wait_for_timeout(seconds * 1000)
    ahead_ms = wall_ahead_ms()
    return [
        (shown - ahead_ms - clock + 2**31) % 2**32 - 2**31
        for clock, shown in page.evaluate("window.stripSamples")[5:]
    ]


def rows(given: Given) -> Iterator[Result]:
    """Path latency: both ways to the glass, 640x480 at 29.9 frames a second."""
    source = ('--set=camera.source = "strip"', "--set=camera.fps = 29.9")
    aims = {"webcodecs": Aim(median=13, p99=24), "mse": Aim(median=28, p99=45)}
    with given.chromium() as browser, running(*source) as bench:
        for path, aim in aims.items():
            with opened(browser, f"{bench.url}?path={path}") as page:
                values = measure(page, given.seconds)
            yield row("video", f"path 640x480@29.9, {path}", "ms", values, aim)

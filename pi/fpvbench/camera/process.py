"""Process of the bench camera: encoded pictures of the emulated world on stdout.

Its pipes are those of every camera process: video/process.py. A frame is taken only
after the reader has emptied the pipe. One thread does everything: input that arrives on
stdin during rendering counts for that frame.
"""

import argparse
import math
import signal
import sys
import time
from pathlib import Path
from typing import get_args

from fpvbench.camera import strip
from fpvbench.camera.picture import NoPicture, Room, Source, Strip, WithLed
from fpvbench.soc import attach
from fpvcar.config import Flip
from fpvcar.video.image_settings import ImageSettings
from fpvcar.video.process import BITRATES, MISSING, Control, Pipes, report
from fpvcar.video.programs.encoder import Encoder
from fpvcar.video.programs.software_filter import SoftwareFilter
from fpvcar.wire.camera import pack_record

NO_EGL = MISSING
"""Exit code for a missing EGL library."""


def run(
    source: Source,
    image_filter: SoftwareFilter,
    encoder: Encoder,
    pipes: Pipes,
    control: Control,
    fps: float,
    gop_s: float,
) -> None:
    """Produce frames by the clock until a pipe ends.

    Frame times that have passed, or find the pipe not empty, are skipped. The GOP is
    counted in seconds, so that skipped frames do not lengthen it.
    """
    due_s, key_s = time.monotonic(), -math.inf
    while not pipes.ended:
        pipes.listen(due_s - time.monotonic())
        period_s = 1.0 / min(fps, control.fps or fps)
        late = max(math.floor((time.monotonic() - due_s) / period_s), 0)
        due_s += (late + 1) * period_s
        if pipes.ended or not pipes.is_drained():
            continue
        captured_us, picture = source.take()
        pipes.listen(0.0)
        if control.bitrate is not None:
            encoder.reopen(control.bitrate)
            control.bitrate = None
        if control.image is not None:
            image_filter.set_image(control.image)
            control.image = None
        now_s = time.monotonic()
        key_due = control.key or now_s >= key_s + gop_s
        unit, key = encoder.encode(image_filter.apply(picture), key_due)
        if key:
            control.key, key_s = False, now_s - period_s / 2
        pipes.write(pack_record(key, captured_us, unit))


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fpvcar camera bench")
    parser.add_argument("--soc", type=Path, help="the bench's shared file")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--fps", type=float, default=30.0)
    parser.add_argument("--bitrate", type=int, default=2_000_000)
    parser.add_argument("--gop-s", type=float, default=1.0)
    parser.add_argument(
        "--source",
        choices=("world", "strip", "stamped"),
        default="world",
        help="the room, a strip with the clock, or the room with the strip above it",
    )
    parser.add_argument("--view", choices=("driver", "rear"), default="driver", help="of the room")
    parser.add_argument("--led", type=int, metavar="GPIO", help="before the lens")
    parser.add_argument("--flip", choices=get_args(Flip), default="none")
    parser.add_argument("--brightness", type=float, default=0.0)
    parser.add_argument("--night", action="store_true")
    options = parser.parse_args(argv)
    least = 64 if options.source == "world" else strip.WIDTH_MIN
    for name, low, high in (
        ("width", least, 1920),
        ("height", 64, 1080),
        ("fps", 1, 120),
        ("bitrate", *BITRATES),
        ("gop_s", 0.0, 1),
        ("brightness", -1.0, 1.0),
    ):
        value = getattr(options, name)
        if not low <= value <= high:
            parser.error(f"--{name.replace('_', '-')} {value}: expected {low} to {high}")
    if options.width % 2 or options.height % 2:
        parser.error(f"{options.width}x{options.height}: expected even numbers")
    if options.soc is None and (options.source != "strip" or options.led is not None):
        parser.error("--soc is needed to render the world")
    return options


def _source(options: argparse.Namespace) -> Source:
    size, source = (options.width, options.height), options.source
    if options.soc is None:
        return Strip(*size)
    soc = attach(options.soc)
    if source == "strip":
        bare: Source = Strip(*size)
    else:
        bare = Room(soc, *size, source == "stamped", options.view)
    return bare if options.led is None else WithLed(bare, soc, options.led, size)


def main(argv: list[str] | None = None) -> int:
    """Run the process. Returns 0 when a pipe ended, 2 for unreadable input, 3 without EGL."""
    options = _options(argv)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        source = _source(options)
    except NoPicture as fault:
        report(str(fault))
        return NO_EGL
    except (OSError, ValueError) as fault:
        report(str(fault))
        return 2
    size, control = (options.width, options.height), Control()
    encoder = Encoder(*size, options.fps, options.bitrate)
    pipes = Pipes(sys.stdin.fileno(), sys.stdout.fileno(), control)
    report(f"{options.source} {size[0]}x{size[1]} at {options.fps:g} fps")
    image_filter = SoftwareFilter(
        options.flip, ImageSettings("normal", options.brightness, options.night)
    )
    run(source, image_filter, encoder, pipes, control, options.fps, options.gop_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())

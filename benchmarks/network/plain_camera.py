"""Camera program without control requests: H.264 (Annex B) on stdout.

    python benchmarks/network/plain_camera.py --width=640 --height=480 --fps=29.9 --gop-s=1

The picture is the strip with the clock (fpvbench.camera.picture.Strip), with the encoder of the
bench's camera. The program blocks on a slow reader, like most camera programs.
"""

import argparse
import sys
import time

from fpvbench.camera.picture import Strip
from fpvcar.video.programs.encoder import Encoder

BITRATE = 2_000_000


def main() -> None:
    """Write pictures by the clock until stdout is closed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--fps", type=float, default=29.9)
    parser.add_argument("--gop-s", type=float, default=1.0)
    options = parser.parse_args()
    size = (options.width, options.height)
    source, encoder = Strip(*size), Encoder(*size, options.fps, BITRATE)
    period_s, due_s, key_s = 1.0 / options.fps, time.monotonic(), 0.0
    while True:
        time.sleep(max(due_s - time.monotonic(), 0.0))
        due_s = max(due_s + period_s, time.monotonic())
        key = due_s >= key_s + options.gop_s
        key_s = due_s if key else key_s
        unit, _ = encoder.encode(source.take()[1], key)
        sys.stdout.buffer.write(unit)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)

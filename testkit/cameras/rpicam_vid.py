"""Stand-in for rpicam-vid, after its sources of 2026-07. Run as a module without --output it is
`fpvcar camera rpicam`, with that stand-in on its PATH.

Each buffer is one datagram, split at 65,507 bytes; on a Pi 5 libav sends, in pieces of pkt_size,
1472 unless the address has another value. After it comes the frame's metadata, line by line. It
takes no request. The environment: RPICAM_BOARD ("zero", "pi5"), RPICAM_OLD (no --low-latency and no
libav), RPICAM_NONE (no camera), RPICAM_MISSING, RPICAM_HANG_AFTER, RPICAM_DIE_AFTER,
RPICAM_SETS_APART, RPICAM_NOISE (of a pixel: units of many datagrams), RPICAM_SKIP (a datagram that
is lost), RPICAM_LOG (a file for its arguments), RPICAM_SENSOR.
"""

import argparse
import os
import re
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import av
import numpy as np

from fpvcar.video import h264
from fpvcar.video.programs.encoder import Encoder
from testkit.cameras.sensor_listings import listing

HARDWARE_MOST, LIBAV_USUAL = 65_507, 1472
LEVEL = 100
VALUES = (
    "timeout width height framerate bitrate intra codec profile denoise buffer-count "
    "exposure brightness libav-format libav-video-codec verbose metadata metadata-format camera "
    "output mode"
).split()
FLAGS = ["list-cameras", "nopreview", "inline", "flush", "hflip", "vflip"]
ENV = os.environ
MODULE = "testkit.cameras.rpicam_vid"


def fail(words: str) -> NoReturn:
    """Fail like LOG_ERROR in its main."""
    print(f"ERROR: *** {words} ***", file=sys.stderr, flush=True)
    sys.exit(255)


class Parser(argparse.ArgumentParser):
    """Parser that reports unknown options in the words of boost."""

    def error(self, message: str) -> NoReturn:
        unknown = message.rpartition(" ")[2]
        fail(f"unrecognised option '{unknown}'")


class Sender:
    """Counterpart of NetOutput, or of libav's udp protocol."""

    def __init__(self, address: str) -> None:
        match = re.match(r"udp://(\d+\.\d+\.\d+\.\d+):(\d+)", address)
        if match is None:
            fail(f"bad network address {address}")
        self._to = (match[1], int(match[2]))
        self._most = HARDWARE_MOST
        if ENV.get("RPICAM_BOARD") == "pi5":
            size = re.search(r"[?&]pkt_size=(\d+)", address)
            self._most = int(size[1]) if size else LIBAV_USUAL
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._count = 0
        self._skip = int(ENV.get("RPICAM_SKIP", "-1"))

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), self._most):
            self._count += 1
            if self._count != self._skip:
                self._socket.sendto(data[at : at + self._most], self._to)


def film(options: argparse.Namespace) -> None:
    """Send frames by the clock, until a signal."""
    width, height = int(options.width), int(options.height)
    fps, bitrate = float(options.framerate), int(options.bitrate)
    encoder, sender = Encoder(width, height, fps, bitrate), Sender(options.output)
    metadata = open(options.metadata, "w", buffering=1)
    random = np.random.default_rng(1)
    noise = int(ENV.get("RPICAM_NOISE", "0"))
    for count in range(1 << 30):
        if count == int(ENV.get("RPICAM_DIE_AFTER", "-1")):
            fail("failed to queue request")
        if count == int(ENV.get("RPICAM_HANG_AFTER", "-1")):
            print("Camera frontend has timed out!", file=sys.stderr, flush=True)
            time.sleep(3600)
        time.sleep(1.0 / fps)
        stamp_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        planes = np.full((height * 3 // 2, width), 128, np.uint8)
        planes[:height] = LEVEL + 100 * float(options.brightness)
        planes[: height // 4, : width // 4] = 235
        if noise:
            planes[:height] += random.integers(0, noise, (height, width), np.uint8)
        rows = slice(None, None, -1 if options.vflip else 1)
        columns = slice(None, None, -1 if options.hflip else 1)
        planes[:height] = planes[:height][rows, columns]
        picture = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        unit, key = encoder.encode(picture, count % int(options.intra) == 0)
        if key and ENV.get("RPICAM_SETS_APART"):
            nals = [b"\0\0\0\1" + nal for nal in h264.nal_units(unit)]
            sender.send(b"".join(nals[:2]))
            metadata.write("SensorTimestamp=1\n\n")
            unit = b"".join(nals[2:])
        sender.send(unit)
        metadata.write(f"ExposureTime=8000\nSensorTimestamp={stamp_ns}\nLux=100\n\n")


def main() -> None:
    parser = Parser(add_help=False, allow_abbrev=False)
    old = bool(ENV.get("RPICAM_OLD"))
    for name in [name for name in VALUES if not (old and name in ("libav-video-codec", "mode"))]:
        parser.add_argument(f"--{name}")
    for name in FLAGS if old else [*FLAGS, "low-latency"]:
        parser.add_argument(f"--{name}", action="store_true")
    if "--help" in sys.argv:
        print("Valid options are:")
        for action in parser._actions:
            print(f"  {action.option_strings[0]} arg")
        return
    options = parser.parse_args()
    if "RPICAM_LOG" in ENV:
        Path(ENV["RPICAM_LOG"]).open("a").write(" ".join(sys.argv[1:]) + "\n")
    if options.list_cameras:
        none = bool(ENV.get("RPICAM_NONE"))
        print("No cameras available!" if none else listing(ENV.get("RPICAM_SENSOR", "imx219")))
        return
    if ENV.get("RPICAM_NONE"):
        fail("no cameras available")
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    film(options)


if __name__ == "__main__":
    if any(word.startswith(("--output", "--help", "--list-cameras")) for word in sys.argv):
        main()
        sys.exit(0)
    from fpvcar.video.programs import rpicam

    with tempfile.TemporaryDirectory() as folder:
        if not ENV.get("RPICAM_MISSING"):
            stand_in = Path(folder) / "rpicam-vid"
            stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} -m {MODULE} "$@"\n')
            stand_in.chmod(0o755)
        ENV["PATH"] = f"{folder}:{ENV['PATH']}"
        sys.exit(rpicam.main())

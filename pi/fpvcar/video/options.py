"""Options of `fpvcar camera ...`: the profile's `[camera]` as words, and back.

`run` writes them and the camera's process reads them; a person may type them, too.
"""

import argparse
import math
import os
from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from fpvcar.config import Camera, Exposure, Flip, View

FORMATS = ("auto", "h264", "yuyv", "mjpeg")
KEYS = (
    "device",
    "format",
    "width",
    "height",
    "fps",
    "view",
    "bitrate",
    "gop_s",
    "flip",
    "exposure",
    "brightness",
    "night",
)
REAL_KEYS = ("device", "format", "view", "exposure")
BENCH_KEYS = tuple(key for key in KEYS if key not in REAL_KEYS)
USUAL = Camera()
UNASKED_GOP_S = 0.5
"""Longest GOP of an encoder that may not answer requests for key frames: a viewer that lost a
unit sees a still picture until the next one."""

SOFTWARE_MOST = {1: (320 * 240, 10.0), 4: (640 * 480, 20.0)}
"""Number of cores -> pixels and frames per second of libx264 that leave room for the car. Estimates
(docs/reference/wiring.md): 22 % of a Zero W's only core, and 40 % of one of a Zero 2 W's four."""


def arguments_of(camera: Camera, keys: Sequence[str] = KEYS) -> list[str]:
    """Return the settings that differ from the defaults, as words of a command line."""
    arguments = []
    for key in keys:
        value = getattr(camera, key)
        if value != getattr(USUAL, key):
            option = f"--{key.replace('_', '-')}"
            arguments.append(option if value is True else f"{option}={value}")
    return arguments


def unasked_gop(gop_s: float, fps: float) -> int:
    """Return the GOP in frames of an encoder that may not answer requests for key frames."""
    return max(round(min(gop_s, UNASKED_GOP_S) * fps), 1)


def parser(prog: str, about: str) -> argparse.ArgumentParser:
    """Return a parser with the options of all real cameras."""
    parser = argparse.ArgumentParser(
        f"fpvcar camera {prog}",
        description=f"{about} Access units go to stdout, each with its time; stdin "
        'takes "key", "bitrate N" and "look EXPOSURE BRIGHTNESS NIGHT"; it ends with '
        "stdin.",
    )
    parser.add_argument("--device", default="", help="/dev/videoN of a webcam; 0 or 1 of a Pi's")
    parser.add_argument("--format", choices=FORMATS, default="auto", help="of a webcam")
    parser.add_argument("--width", type=int, default=USUAL.width)
    parser.add_argument("--height", type=int, default=USUAL.height)
    parser.add_argument("--fps", type=float, default=USUAL.fps)
    parser.add_argument(
        "--view",
        choices=get_args(View),
        default=USUAL.view,
        help="whole: widest view; fast: the rate comes first; of a Pi's camera",
    )
    parser.add_argument("--bitrate", type=int, default=USUAL.bitrate, help="bit/s")
    parser.add_argument("--gop-s", type=float, default=USUAL.gop_s, help="between two key frames")
    parser.add_argument(
        "--flip",
        choices=get_args(Flip),
        default=USUAL.flip,
        help="both: for a camera mounted upside down",
    )
    parser.add_argument(
        "--exposure",
        choices=get_args(Exposure),
        default=USUAL.exposure,
        help="sport: short, so that motion is sharp; of a Pi's camera",
    )
    parser.add_argument("--brightness", type=float, default=0.0, help="-1 to 1")
    parser.add_argument("--night", action="store_true", help="expose up to 0.1 s")
    return parser


def parse_pi(prog: str, about: str, argv: list[str] | None) -> tuple[Camera, bool]:
    """Parse the options of a Pi's own camera; return whether libx264 encodes, too.

    Exits with 2 for invalid values.
    """
    words = parser(prog, about)
    words.add_argument(
        "--software", action="store_true", help="encode by libx264, at a size for this processor"
    )
    config, software = parse(words, argv), bool(words.parse_args(argv).software)
    if config.device and not config.device.isdigit():
        words.error(f"--device {config.device}: expected 0 or 1, the Pi's camera")
    return (within_software(config, os.cpu_count() or 1) if software else config), software


def within_software(config: Camera, cores: int) -> Camera:
    """Return the settings with a size and rate that libx264 on so many cores can carry."""
    pixels, fps = SOFTWARE_MOST[1 if cores == 1 else 4]
    scale = min(math.sqrt(pixels / (config.width * config.height)), 1.0)
    width, height = (max(2 * round(side * scale / 2), 64) for side in (config.width, config.height))
    return msgspec.structs.replace(config, width=width, height=height, fps=min(config.fps, fps))


def parse(parser: argparse.ArgumentParser, argv: list[str] | None) -> Camera:
    """Parse the options of a camera; exits with 2 for invalid values."""
    values: dict[str, Any] = vars(parser.parse_args(argv))
    try:
        return msgspec.convert({key: values[key] for key in KEYS}, Camera)
    except msgspec.ValidationError as fault:
        reason, _, key = str(fault).partition(" - at `$.")
        key = key.rstrip("`")
        parser.error(f"--{key.replace('_', '-')} {values.get(key)}: {reason}")

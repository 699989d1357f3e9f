"""H.264 for tests: real x264 streams by PyAV, made once; and a camera that records requests."""

import functools
from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np

START = b"\0\0\0\1"


@functools.cache
def encode(
    frames: int = 12,
    slices: int = 1,
    aud: bool = False,
    gop: int = 5,
    repeat_headers: bool = True,
    width: int = 160,
    height: int = 128,
    noise: int = 255,
    refresh: bool = False,
    b_frames: int = 0,
    pixels: str = "yuv420p",
    interlaced: bool = False,
) -> tuple[bytes, ...]:
    """Return access units of a moving picture: constrained baseline, unless `b_frames`, `pixels` or
    `interlaced` need another profile.

    `refresh`: after the first picture intra refresh replaces IDR pictures.

    `noise` is the noise of a pixel, 1 to 255. A large picture with much of it takes megabytes.
    """
    codec = av.CodecContext.create("libx264", "w")
    assert isinstance(codec, av.VideoCodecContext)
    codec.width, codec.height, codec.pix_fmt = width, height, pixels
    codec.framerate = Fraction(30)
    parameters = f"slices={slices}:aud={int(aud)}:scenecut=0:keyint={gop}"
    parameters += f":intra-refresh={int(refresh)}:bframes={b_frames}:b-adapt=0"
    parameters += ":tff=1" if interlaced else ""
    other = b_frames or interlaced or pixels != "yuv420p"
    if not repeat_headers:
        codec.flags |= 1 << 22  # AV_CODEC_FLAG_GLOBAL_HEADER
    codec.options = {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "profile": "high422" if other else "baseline",
        "threads": str(slices),
        "x264-params": parameters,
    }
    units: list[bytes] = []
    for number in range(frames):
        picture = np.random.default_rng(number).integers(
            0, noise, (height * 3 // 2, width), np.uint8
        )
        picture[: height // 2] = number * 9 % 255
        frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
        units += [bytes(packet) for packet in codec.encode(frame)]
    units += [bytes(packet) for packet in codec.encode(None)]
    return tuple(units)


def decode(units: Sequence[bytes]) -> int:
    """Count the pictures that a decoder gets out of access units, one at a time."""
    codec = av.CodecContext.create("h264", "r")
    assert isinstance(codec, av.VideoCodecContext)
    codec.thread_count = 1
    pictures = sum(len(codec.decode(av.Packet(unit))) for unit in units)
    return pictures + len(codec.decode(None))


class PlayedCamera:
    """Camera with a clock, that records its requests; it `obeys`, or refuses all: a plain
    program, or none."""

    def __init__(self, obeys: bool = True) -> None:
        self.obeys, self.now_s = obeys, 0.0
        self.keys: list[float] = []
        self.bitrates: list[int] = []
        self.rates: list[int] = []

    def request_key(self) -> bool:
        self.keys.append(self.now_s)
        return self.obeys

    def set_bitrate(self, bitrate: int) -> bool:
        self.bitrates.append(bitrate)
        return self.obeys

    def set_fps(self, most: int) -> bool:
        self.rates.append(most)
        return self.obeys

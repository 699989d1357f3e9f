"""Depth pictures (Z16): distance of the nearest obstacle, and a small picture. Pure.

Each pixel is the distance straight ahead in mm, 0 for an unmeasured one. Only every n-th pixel of a
frame is used. Pixels are not averaged, because means invent distances between near and far. No
numpy: this runs on a Pi Zero.
"""

import array
import colorsys
import math
import struct
import zlib
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

WIDE = 80
"""Approximate number of columns of the small picture."""
FAR_MM = 4000
BAND = (0.2, 0.5)
"""Rows searched for the nearest obstacle, for a camera that looks straight ahead: below the
middle the floor is nearer than any wall."""
NOISE_SHARE = 0.005
"""Share of the pixels that may be nearer than the result, as noise."""
WAY_MM = 150.0
"""Half the width of the car's path: the car passes obstacles further aside."""
D435 = math.tan(math.radians(87.0 / 2))
SEEING_SHARE, WAY_SHARE = 0.1, 0.3
"""Least shares of measured pixels in the band, and in the car's path within it. Below these the
camera counts as blind and no direction as free, because objects that are too near, black or
shiny give no measurement."""
WAY_FROM_MM = 1000
PNG = b"\x89PNG\r\n\x1a\n"


class DepthImage(NamedTuple):
    """Decimated frame, with rows from the top."""

    pixels: Sequence[int]
    width: int
    height: int


def decimated(frame: memoryview, width: int, height: int, line_b: int) -> DepthImage:
    """Decimate a frame. Raises ValueError for a frame that is cut."""
    if len(frame) < line_b * height or line_b < 2 * width or line_b % 2:
        limit = f"{height} rows of {line_b} bytes for {width} pixels"
        raise ValueError(f"depth frame of {len(frame)} bytes: expected {limit}")
    step, pitch = max(1, width // WIDE), line_b // 2
    offset = step // 2
    values = frame[: line_b * height].cast("H")  # our machines are little-endian, too
    pixels = array.array("H")
    for row in range(offset, height, step):
        pixels.extend(values[row * pitch + offset : row * pitch + width : step])
    columns = len(range(offset, width, step))
    return DepthImage(pixels, columns, len(pixels) // columns)


def nearest_m(image: DepthImage, across: float = D435) -> float:
    """Return the distance of the nearest obstacle in the car's path; infinity: clear for 4 m,
    NaN: blind.

    `across` is the tangent of half the picture's horizontal angle.
    """
    top, bottom = (int(share * image.height) for share in BAND)
    band = image.pixels[top * image.width : max(bottom, top + 1) * image.width]
    if sum(pixel > 0 for pixel in band) < max(1, SEEING_SHARE * len(band)):
        return math.nan
    # A pixel of column c that is nearer than reach[c] stands less than WAY_MM aside.
    middle = (image.width - 1) / 2.0 or 1.0
    reach = [
        WAY_MM / max(across * abs(column - middle) / middle, WAY_MM / FAR_MM)
        for column in range(image.width)
    ]
    pairs = list(zip(band, cycle(reach), strict=False))
    way = [mm > 0 for mm, far in pairs if far >= WAY_FROM_MM]
    if sum(way) < WAY_SHARE * len(way):
        return math.nan
    ahead = sorted(mm for mm, far in pairs if 0 < mm < far)
    noise = int(NOISE_SHARE * len(band))
    return ahead[noise] / 1000.0 if len(ahead) > noise else math.inf


def _palette() -> bytes:
    """Return a palette from red (near) to blue (far); 0 is black, for unmeasured pixels."""
    colours = [b"\0\0\0"]
    for index in range(255):
        hue = 0.66 * index / 254
        rgb = colorsys.hsv_to_rgb(hue, 1.0, 1.0)
        colours.append(bytes(round(255 * channel) for channel in rgb))
    return b"".join(colours)


def png(image: DepthImage) -> bytes:
    """Encode the small picture, one byte a pixel with a palette (PNG, 11.2)."""
    rows = bytearray()
    for row in range(image.height):
        line = image.pixels[row * image.width : (row + 1) * image.width]
        rows.append(0)  # no filter
        rows += bytes(1 + min(254, mm * 254 // FAR_MM) if mm else 0 for mm in line)
    head = struct.pack(">IIBBBBB", image.width, image.height, 8, 3, 0, 0, 0)
    return PNG + b"".join(
        (
            _chunk(b"IHDR", head),
            _chunk(b"PLTE", PALETTE),
            _chunk(b"IDAT", zlib.compress(rows, 1)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


PALETTE = _palette()

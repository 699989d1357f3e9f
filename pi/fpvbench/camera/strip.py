"""Machine-readable clock in the picture, to measure latency to the screen. Pure.

    row 0..15, left to right, 40 cells of width // 40 pixels each, white = 1:
    | 1 0 1 0 | CLOCK_MONOTONIC in ms, 32 bits, highest first | xor of its 8 nibbles |

A cell is read at its middle (luma above 128 is white). The time is the record's capture time: for a
strip its painting just before the encoder, for the room the copy of the world.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CELLS = 40
ROWS = 16
WIDTH_MIN = 320
SYNC = 0b1010


def pattern(clock_ms: int) -> int:
    """Return the 40 bits of a time; the first cell is the highest bit."""
    clock = clock_ms & 0xFFFFFFFF
    check = 0
    for nibble in range(8):
        check ^= clock >> 4 * nibble & 15
    return SYNC << 36 | clock << 4 | check


def paint(picture: NDArray[np.uint8], clock_ms: int, black: int, white: int) -> None:
    """Paint into the first rows: luma (rows, width) or RGB (rows, width, 3)."""
    cell = picture.shape[1] // CELLS
    bits = pattern(clock_ms)
    for index in range(CELLS):
        lit = bits >> (CELLS - 1 - index) & 1
        picture[:ROWS, index * cell : (index + 1) * cell] = white if lit else black


def read(luma: NDArray[Any]) -> int | None:
    """Return the time in ms, modulo 2**32, from a picture's luma; None without a clock."""
    cell = luma.shape[1] // CELLS
    bits = 0
    for index in range(CELLS):
        bits = bits << 1 | int(luma[ROWS // 2, index * cell + cell // 2] > 128)
    clock_ms = bits >> 4 & 0xFFFFFFFF
    return clock_ms if pattern(clock_ms) == bits else None

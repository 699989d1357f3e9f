"""Finds the LED in the picture and detects whether it is lit. Pure.

A picture is a row of cells, left to right and top to bottom: the mean brightness of
each, 0 to 255, as computed by the page web/hil/main.js and by `of_luma`.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from fpvcar.hil.rig import CheckFailed

COLUMNS, ROWS = 16, 12
LEAST = 24.0
"""Least change of a cell; noise and automatic exposure stay below it on average."""
Cells = Sequence[float]


class LedCell(NamedTuple):
    """Cell that shows the LED best, and the brightness half way between dark and lit."""

    cell: int
    bright: float

    def lit(self, cells: Cells) -> bool:
        """Return True if the LED is lit in this picture."""
        return cells[self.cell] > self.bright


def find(dark: Iterable[Cells], lit: Iterable[Cells]) -> LedCell:
    """Find the cell that best separates pictures of the dark and the lit LED. Raises
    CheckFailed if no cell does."""
    before, after = (
        [fmean(cell) for cell in zip(*pictures, strict=True)] for pictures in (dark, lit)
    )
    gains = [bright - dim for bright, dim in zip(after, before, strict=True)]
    cell = max(range(len(gains)), key=gains.__getitem__)
    if gains[cell] < LEAST:
        raise CheckFailed(
            f"with the LED lit no part of the picture is {LEAST:g} of 255 brighter, "
            f"at most {gains[cell]:.0f}: place the LED (rig.led) before the lens"
        )
    return LedCell(cell, (before[cell] + after[cell]) / 2.0)


def of_luma(luma: Any) -> Cells:
    """Return the cells of a picture's luma plane (rows of bytes, a numpy array)."""
    height, width = luma.shape[0] // ROWS, luma.shape[1] // COLUMNS
    whole = luma[: ROWS * height, : COLUMNS * width]
    cells = whole.reshape(ROWS, height, COLUMNS, width).mean((1, 3)).ravel()
    return [float(cell) for cell in cells]

"""Where in the picture an LED shines, and when it is lit there. Pure.

A picture is a row of cells, left to right, from above: the mean brightness of each,
0 to 255, as the page web/hil/main.js and `of_luma` here make them.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from fpvcar.hil.rig import Failed

COLUMNS, ROWS = 16, 12
LEAST = 24.0
"""Noise and automatic exposure move a cell by less, on average."""
Cells = Sequence[float]


class Spot(NamedTuple):
    """The cell that shows the LED best, and its brightness half way."""

    cell: int
    bright: float

    def lit(self, cells: Cells) -> bool:
        """Is the LED lit in this picture?"""
        return cells[self.cell] > self.bright


def find(dark: Iterable[Cells], lit: Iterable[Cells]) -> Spot:
    """By pictures of the dark LED and of the lit one. Raises Failed where no cell
    tells them apart."""
    before, after = ([fmean(one) for one in zip(*shown, strict=True)]
                     for shown in (dark, lit))  # fmt: skip
    gains = [one - other for one, other in zip(after, before, strict=True)]
    cell = max(range(len(gains)), key=gains.__getitem__)
    if gains[cell] < LEAST:
        raise Failed(
            f"with the LED lit no part of the picture is {LEAST:g} of 255 brighter, "
            f"at most {gains[cell]:.0f}: put the LED (rig.led) before the lens"
        )
    return Spot(cell, (before[cell] + after[cell]) / 2.0)


def of_luma(luma: Any) -> Cells:
    """A picture's luma, rows of bytes (a numpy array), as cells."""
    height, width = luma.shape[0] // ROWS, luma.shape[1] // COLUMNS
    whole = luma[: ROWS * height, : COLUMNS * width]
    cells = whole.reshape(ROWS, height, COLUMNS, width).mean((1, 3)).ravel()
    return [float(one) for one in cells]

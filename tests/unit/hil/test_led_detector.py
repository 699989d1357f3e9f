"""Locating an LED in a picture; a spot that does not shine is refused."""

import random

import numpy as np
import pytest

from fpvcar.hil import led_detector
from fpvcar.hil.rig import CheckFailed

CELLS = led_detector.COLUMNS * led_detector.ROWS
LED = 5 * led_detector.COLUMNS + 7


def pictures(lit: bool, led: float, noise: float = 10.0, seed: int = 1) -> list[list[float]]:
    """Return five pictures of a grey room that flickers, with an LED that adds `led`."""
    dice = random.Random(seed + lit)
    made = [[100.0 + dice.gauss(0.0, noise) for _ in range(CELLS)] for _ in range(5)]
    for one in made:
        one[LED] += led * lit
    return made


@pytest.mark.parametrize("led", [60.0, 150.0])
def test_brightest_change_is_the_led(led: float) -> None:
    found = led_detector.find(pictures(False, led), pictures(True, led))
    assert found.cell == LED
    assert all(map(found.lit, pictures(True, led, seed=5)))
    assert not any(map(found.lit, pictures(False, led, seed=5)))


def test_invisible_led_gives_no_spot() -> None:
    with pytest.raises(CheckFailed, match="24 of 255 brighter, at most .*before the lens"):
        led_detector.find(pictures(False, 0.0), pictures(True, 0.0))
    with pytest.raises(CheckFailed, match="place the LED"):  # the LED makes the picture darker
        led_detector.find(pictures(False, -60.0), pictures(True, -60.0))


def test_cells_are_means_row_by_row() -> None:
    luma = np.zeros((led_detector.ROWS * 10 + 3, led_detector.COLUMNS * 10 + 7), dtype=np.uint8)
    luma[10:15, 20:30] = 200
    cells = led_detector.of_luma(luma)
    assert len(cells) == CELLS
    assert {at for at, one in enumerate(cells) if one} == {led_detector.COLUMNS + 2}
    assert cells[led_detector.COLUMNS + 2] == 100.0

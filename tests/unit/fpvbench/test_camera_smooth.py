"""Antialiasing of the bench camera, against edges of known true area."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fpvbench.camera.smooth import EDGE, Smoother

Luma = NDArray[np.uint8]
WIDTH, HEIGHT = 96, 64
FINE = 16


def half_plane(slope: float, upright: bool, fine: int) -> NDArray[np.float64]:
    """Return a dark and a light half, sampled by fine x fine points in each pixel."""
    y, x = np.mgrid[0 : HEIGHT * fine, 0 : WIDTH * fine] / fine
    x, y = x - WIDTH / 2 + 0.5 / fine, y - HEIGHT / 2 + 0.5 / fine
    light = (x > slope * y + 0.3) if upright else (y > slope * x + 0.3)
    levels = np.where(light, 200.0, 40.0)
    seen: NDArray[np.float64] = levels.reshape(HEIGHT, fine, WIDTH, fine).mean((1, 3))
    return seen


def smoothed(picture: NDArray[np.float64], line: int = WIDTH) -> Luma:
    luma = np.full((HEIGHT, line), 255, dtype=np.uint8)
    luma[:, :WIDTH] = picture
    before = luma[:, WIDTH:].copy()
    Smoother(HEIGHT, line, WIDTH).smooth(luma.reshape(-1))
    assert (luma[:, WIDTH:] == before).all()
    return luma[:, :WIDTH]


@pytest.mark.parametrize("line", [WIDTH, WIDTH + 32])
@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("slope", [0.04, 0.11, 0.26, 0.4, -0.07, -0.33])
def test_steps_are_smoothed_toward_the_true_area(slope: float, upright: bool, line: int) -> None:
    stepped, true = (half_plane(slope, upright, fine) for fine in (1, FINE))
    inner = (slice(8, -8), slice(8, -8))
    worst_before = np.abs(stepped - true)[inner].sum()
    left = np.abs(smoothed(stepped, line) - true)[inner].sum()
    assert left < 0.5 * worst_before


def test_picture_without_steps_is_unchanged() -> None:
    picture = np.full((HEIGHT, WIDTH), 60.0)
    picture[20:40, 30:70] = 180.0
    assert (smoothed(picture) == picture).all()
    faint = np.full((HEIGHT, WIDTH), 60.0) + half_plane(0.1, False, 1) / 160 * EDGE / 2
    assert (smoothed(faint) == faint.astype(np.uint8)).all()


def test_black_beside_white_is_an_edge() -> None:
    stepped = (half_plane(0.1, False, 1) - 40) / 160 * (235 - 16) + 16
    assert (smoothed(stepped) != stepped).any()


def test_noise_stays_within_its_neighbours() -> None:
    random = np.random.default_rng(1)
    noise = random.integers(16, 236, (HEIGHT, WIDTH)).astype(np.float64)
    after = smoothed(noise)
    assert after.min() >= 16 and after.max() <= 235
    assert (after[0] == noise[0]).all() and (after[-1] == noise[-1]).all()

"""Depth image: range of the nearest obstacle in the way; the small picture."""

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from numpy.typing import NDArray
from PIL import Image

from fpvcar.depth import image as depth_image
from fpvcar.depth.image import FAR_MM, DepthImage, decimated, nearest_m

SIZE = 480, 270


def frame_of(mm: int) -> NDArray[np.uint16]:
    return np.full((SIZE[1], SIZE[0]), mm, dtype=np.uint16)


def range_of(frame: NDArray[np.uint16]) -> float:
    height, width = frame.shape
    view = memoryview(frame.tobytes())
    return nearest_m(decimated(view, width, height, 2 * width))


def test_flat_wall_gives_its_range() -> None:
    assert range_of(frame_of(1234)) == 1.234


def test_empty_view_is_infinite_and_unmeasured_view_is_nan() -> None:
    assert range_of(frame_of(FAR_MM)) == math.inf
    assert math.isnan(range_of(frame_of(0)))


def test_box_is_nearest_and_speck_is_ignored() -> None:
    frame = frame_of(3000)
    frame[100:140, 220:260] = 700
    assert range_of(frame) == 0.7
    frame = frame_of(3000)
    frame[100:112, 236:248] = 100  # four pixels of the sampled ones
    assert range_of(frame) == 3.0


def test_obstacle_beside_the_way_is_ignored() -> None:
    """Box of 0.2 m, half a metre ahead, from the edge of the way outwards."""
    for aside_m, expected in ((0.0, 0.5), (0.12, 0.5), (0.16, math.inf), (0.3, math.inf)):
        frame = frame_of(65535)
        for side in (-1, 1):
            edges = sorted(side * one / 0.5 / depth_image.D435 for one in (aside_m, 0.2 + aside_m))
            left, right = (round(240 + 240 * edge) for edge in edges)
            frame[60:130, max(left, 0) : right] = 500
        assert range_of(frame) == expected, aside_m


def test_floor_before_the_car_is_ignored() -> None:
    frame = frame_of(3000)
    frame[136:] = 250
    assert range_of(frame) == 3.0


def test_unmeasured_pixels_hide_no_obstacle() -> None:
    frame = frame_of(0)
    frame[60:100] = 900
    assert range_of(frame) == 0.9
    frame = frame_of(0)
    frame[80:84] = 900
    assert math.isnan(range_of(frame)), "too little is measured"


def test_unmeasurable_surface_in_the_way_gives_nan() -> None:
    """A surface nearer than the D435's least range, black or shiny: zeros, and a room on both
    sides."""
    frame = frame_of(3000)
    frame[:, 200:280] = 0
    assert math.isnan(range_of(frame))
    frame[60:100, 200:280] = 800
    assert range_of(frame) == 0.8, "half of it is measured"
    frame = frame_of(3000)
    frame[:, :200] = frame[:, 280:] = 0
    assert range_of(frame) == 3.0, "a corridor of black walls"


@settings(max_examples=40)
@given(some.integers(1, 200), some.integers(1, 150), some.integers(0, 9))
def test_decimation_handles_any_size_and_padding(width: int, height: int, pad: int) -> None:
    frame = np.zeros((height, width + pad), dtype="<u2")
    frame[:, :width] = np.arange(width) + 1
    frame[:, width:] = 7  # padding is ignored
    small = decimated(memoryview(frame.tobytes()), width, height, 2 * (width + pad))
    step = max(1, width // depth_image.WIDE)
    expected = frame[step // 2 :: step, step // 2 : width : step]
    assert (small.height, small.width) == expected.shape
    assert list(small.pixels) == expected.reshape(-1).tolist()


@pytest.mark.parametrize(("size", "line_b"), [(100, 20), (199, 20), (200, 18), (210, 21)])
def test_truncated_frame_is_refused(size: int, line_b: int) -> None:
    with pytest.raises(ValueError, match=f"depth frame of {size} bytes"):
        decimated(memoryview(bytes(size)), 10, 10, line_b)


def test_small_picture_is_a_png_with_depth_colours() -> None:
    pixels = [0, 1, FAR_MM // 2, FAR_MM - 1, FAR_MM, 65535]
    shown = Image.open(io.BytesIO(depth_image.png(DepthImage(pixels, 3, 2))))
    assert shown.size == (3, 2)
    colours = [shown.convert("RGB").getpixel((i % 3, i // 3)) for i in range(6)]
    assert colours[0] == (0, 0, 0)
    assert colours[1] == (255, 0, 0), "near is red"
    assert colours[4] == colours[5], "far is far"
    red, green, blue = colours[5]  # type: ignore[misc]
    assert blue > 200 and red < 20


def test_small_picture_stays_below_8000_bytes() -> None:
    chance = np.random.default_rng(1)
    frame = chance.integers(0, 5000, (270, 480)).astype("<u2")
    small = decimated(memoryview(frame.tobytes()), *SIZE, 960)
    assert len(depth_image.png(small)) < 8000

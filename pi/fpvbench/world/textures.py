"""Surfaces of the bench room, painted with numpy: planks, plaster, cardboard.

Every function returns an RGB picture, uint8, row 0 first, determined by the random
generator argument.
"""

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
Plane = NDArray[np.float64]
Color = tuple[float, float, float]

CARDBOARD: Color = (158, 116, 74)
KRAFT: Color = (190, 148, 100)
TAPE: Color = (186, 166, 120)
OAK: Color = (176, 128, 78)
WALNUT: Color = (124, 84, 56)
COVERS = np.array(
    [
        (150, 52, 44),
        (44, 84, 112),
        (202, 176, 120),
        (62, 104, 78),
        (96, 70, 104),
        (212, 206, 192),
        (188, 118, 52),
        (52, 56, 66),
    ],
    dtype=float,
)
RUG = np.array(
    [(60, 76, 104), (214, 204, 182), (60, 76, 104), (164, 70, 58), (172, 84, 70)], dtype=np.uint8
)
"""Colours from the rim to the middle, 5 cm each."""


def _noise(random: np.random.Generator, height: int, width: int) -> Plane:
    """Return noise with deviation 1, without spatial structure."""
    return random.standard_normal((height, width))


def _stretch(plane: Plane, down: int, along: int) -> Plane:
    """Enlarge a coarse plane by linear interpolation."""
    for axis, times in ((0, down), (1, along)):
        if times > 1:
            at = np.arange(plane.shape[axis] * times) / times
            low = at.astype(int)
            high = np.minimum(low + 1, plane.shape[axis] - 1)
            share = (at - low).reshape((-1, 1) if axis == 0 else (1, -1))
            first, second = plane.take(low, axis), plane.take(high, axis)
            plane = first * (1 - share) + second * share
    return plane


def _tinted(shade: Plane, color: Color | Picture) -> Picture:
    """Multiply `color`, a single one or one per pixel, by `shade` (1 keeps it)."""
    rgb = shade[..., None] * np.array(color)
    picture: Picture = np.clip(rgb, 0, 255).astype(np.uint8)
    return picture


def planks(
    random: np.random.Generator, height: int, width: int, per_m: float
) -> tuple[Plane, Picture]:
    """Return the shade of a floor of planks along the width, and its colours."""
    board = round(0.125 * per_m)
    shade = np.empty((height, width))
    first = board // 2  # no seam runs down the middle of the room
    for top in (0, *range(first, height, board)):
        rows = min(board if top else first, height - top)
        grain = _stretch(_noise(random, rows, width // 32 + 1), 1, 32)[:, :width]
        fine = _stretch(_noise(random, rows, width // 8 + 1), 1, 8)[:, :width]
        slow = _stretch(_noise(random, rows // 8 + 1, width // 128 + 1), 8, 128)
        shade[top : top + rows] = 1 + 0.055 * grain + 0.03 * fine + 0.05 * slow[:rows, :width]
        start = -round(random.uniform(0, 1.1) * per_m)
        while start < width:
            end = start + round(random.uniform(0.8, 1.2) * per_m)
            piece = slice(max(start, 0), max(end, 0))
            shade[top : top + rows, piece] *= 1 + 0.11 * random.uniform(-1, 1)
            shade[top : top + rows, max(end - 2, 0) : max(end, 0)] *= 0.55
            start = end
        shade[top : top + 2] *= 0.5
    return shade, np.full((height, width, 3), OAK, dtype=np.uint8)


def shadow(shade: Plane, per_m: float, center: Color, half: tuple[float, float]) -> None:
    """Darken the floor softly around a box, as under diffuse light.

    center: x, y in metres from the picture's middle (y up), yaw in radians.
    """
    reach = 0.16
    x, y, yaw = center
    height, width = shade.shape
    span = int((np.hypot(*half) + reach) * per_m) + 1
    column, row = int(width / 2 + x * per_m), int(height / 2 - y * per_m)
    left, right = max(column - span, 0), min(column + span, width)
    top, bottom = max(row - span, 0), min(row + span, height)
    if left >= right or top >= bottom:
        return
    across = (np.arange(left, right) - width / 2)[None, :] / per_m - x
    up = (height / 2 - np.arange(top, bottom))[:, None] / per_m - y
    along = np.abs(across * np.cos(yaw) + up * np.sin(yaw)) - half[0]
    aside = np.abs(-across * np.sin(yaw) + up * np.cos(yaw)) - half[1]
    away = np.hypot(np.maximum(along, 0), np.maximum(aside, 0))
    depth = np.clip(1 - away / reach, 0, 1)
    shade[top:bottom, left:right] *= 1 - 0.62 * depth**2


def edge_shadow(shade: Plane, per_m: float) -> None:
    """Darken the floor along the four walls."""
    height, width = shade.shape
    x, y = np.arange(width), np.arange(height)
    away = np.minimum(np.minimum(x, width - 1 - x)[None, :], np.minimum(y, height - 1 - y)[:, None])
    shade *= 1 - 0.45 * np.clip(1 - away / (0.3 * per_m), 0, 1) ** 2


def floor(shade: Plane, colors: Picture) -> Picture:
    """Return the picture of a shaded floor."""
    return _tinted(shade, colors)


def wall(random: np.random.Generator, height: int, width: int, color: Color) -> Picture:
    """Return rough plaster: lighter half way up, darker at the corners and the top."""
    rough = 0.012 * _noise(random, height, width)
    blotch = 0.012 * _stretch(_noise(random, height // 16, width // 16), 16, 16)
    up = np.linspace(1, 0, height)[:, None]
    corner = np.minimum(np.arange(width), np.arange(width)[::-1])[None, :] / width
    light = 0.97 + 0.06 * up - 0.2 * up**3 - 0.17 * np.exp(-corner / 0.035)
    return _tinted(light + rough + blotch[:height, :width], color)


def _side(random: np.random.Generator, size: int, color: Color) -> Picture:
    """Return a face of cardboard: faint flutes, worn edges, darker at the foot."""
    flutes = 0.02 * _noise(random, 1, size)
    rough = 0.018 * _noise(random, size, size)
    blotch = 0.03 * _stretch(_noise(random, 8, 8), size // 8, size // 8)
    foot = 1 - 0.22 * np.linspace(0, 1, size)[:, None] ** 4
    edge = np.minimum(np.arange(size), np.arange(size)[::-1]) / size
    rim = np.minimum(edge[:, None], edge[None, :])
    worn = 1 + 0.1 * (rim < 0.008) - 0.06 * np.exp(-rim / 0.05)
    return _tinted((1 + flutes + rough + blotch) * foot * worn, color)


def _tape(face: Picture, rows: slice, columns: slice) -> None:
    """Paint a strip of packing tape with the cardboard showing through."""
    under = face[rows, columns].astype(float)
    face[rows, columns] = (0.45 * under + 0.55 * np.array(TAPE)).astype(np.uint8)


def _label(face: Picture, top: int, left: int, high: int, wide: int) -> None:
    """Paint a delivery note: white paper with a few lines of print and a bar code."""
    face[top : top + high, left : left + wide] = (226, 226, 220)
    rim = max(high // 10, 1)
    step = max(high // 8, 2)
    for line in range(top + 2 * rim, top + high * 5 // 9, step):
        face[line : line + step // 2, left + 2 * rim : left + wide - 3 * rim] = 92
    bars = face[top + high * 5 // 8 : top + high - rim, left + 2 * rim :]
    for bar, column in enumerate(range(0, wide - 5 * rim, 3)):
        bars[:, column : column + 1 + bar * 7 % 3 % 2] = 40


def carton(
    random: np.random.Generator, size: int, color: Color
) -> tuple[Picture, Picture, Picture]:
    """Return (end, side, top) of a parcel: taped all around lengthwise, with labels."""
    end, side, top = (_side(random, size, color) for _ in range(3))
    middle = slice(round(size * 0.44), round(size * 0.56))
    _tape(end, slice(0, round(size * 0.4)), middle)
    _label(end, round(size * 0.6), round(size * 0.66), size // 4, size // 4)
    _tape(side, slice(None), slice(round(size * 0.3), round(size * 0.41)))
    _label(side, size // 9, round(size * 0.58), size // 4, size // 3)
    _tape(top, middle, slice(None))
    return end, side, top


def painted(random: np.random.Generator, size: int, color: Color) -> Picture:
    """Return a face of a painted crate with a lighter frame."""
    face = _side(random, size, color).astype(float)
    rim = max(size // 14, 2)
    face[:rim] *= 1.14
    face[-rim:] *= 1.14
    face[rim:-rim, :rim] *= 1.14
    face[rim:-rim, -rim:] *= 1.14
    inner = slice(rim, rim + max(size // 90, 1))
    face[inner, rim:-rim] *= 0.8
    face[rim:-rim, inner] *= 0.8
    clipped: Picture = np.clip(face, 0, 255).astype(np.uint8)
    return clipped


def ramp(random: np.random.Generator, height: int, width: int) -> Picture:
    """Return plywood with a yellow and black rim left and right."""
    grain = 1 + 0.05 * _stretch(_noise(random, height, width // 16), 1, 16)
    picture = _tinted(grain, (206, 178, 132))
    rim = height // 9
    stripes = (np.arange(width)[None, :] + np.arange(rim)[:, None]) // rim % 2
    tape = np.where(stripes[..., None] == 1, (235, 190, 40), (38, 36, 34))
    picture[:rim], picture[-rim:] = tape, tape
    return picture


def fabric(random: np.random.Generator, size: int, color: Color) -> Picture:
    """Return woven fabric: threads up and across, worn lighter in the middle."""
    threads = 0.035 * _noise(random, 1, size) + 0.035 * _noise(random, size, 1)
    blotch = 0.035 * _stretch(_noise(random, 8, 8), size // 8, size // 8)
    edge = np.minimum(np.arange(size), np.arange(size)[::-1]) / size
    rim = np.minimum(edge[:, None], edge[None, :])
    return _tinted(1 + threads + blotch - 0.22 * np.exp(-rim / 0.03), color)


def wood(random: np.random.Generator, size: int, color: Color) -> Picture:
    """Return boards with an upright grain."""
    grain = _stretch(_noise(random, size // 64 + 1, size // 2), 64, 2)[:size, :size]
    slow = _stretch(_noise(random, 4, size // 16), size // 4, 16)
    return _tinted(1 + 0.05 * grain + 0.05 * slow, color)


def doors(random: np.random.Generator, size: int, color: Color) -> Picture:
    """Return the front of a sideboard: three doors with round knobs, a foot in shadow."""
    face = wood(random, size, color).astype(float)
    across, down = np.arange(size)[None, :], np.arange(size)[:, None]
    for left in (0, size // 3, 2 * size // 3):
        face[:, left : left + max(size // 170, 2)] *= 0.45
        knob = np.hypot((across - left - size * 0.29) * 2.5, down - size * 0.45)
        face[knob < size * 0.035] = (196, 168, 96)
    face[: size // 60] *= 1.15
    face[-size // 10 :] *= 0.4
    clipped: Picture = np.clip(face, 0, 255).astype(np.uint8)
    return clipped


def books(random: np.random.Generator, size: int, color: Color) -> Picture:
    """Return the front of a shelf: five boards with backs of books."""
    face = 0.35 * wood(random, size, color).astype(float)
    board, rim, high = size // 60, size // 28, size // 5
    for bottom in range(size, 0, -high):
        left = rim
        while left < size - rim - size // 20:
            wide = int(random.integers(size // 36, size // 14))
            top = bottom - int(high * random.uniform(0.6, 0.86))
            cover = COVERS[random.integers(len(COVERS))] * random.uniform(0.75, 1.1)
            face[top:bottom, left : left + wide - 1] = cover
            face[top:bottom, left : left + 1] *= 0.6
            band = top + (bottom - top) // 5
            face[band : band + high // 12, left + 2 : left + wide - 3] *= 1.5
            left += wide if random.random() < 0.9 else 2 * wide
        face[bottom - board : bottom] = color
    face[:, :rim], face[:, -rim:], face[:board] = color, color, color
    clipped: Picture = np.clip(face, 0, 255).astype(np.uint8)
    return clipped


def rug(
    shade: Plane,
    colors: Picture,
    per_m: float,
    center: tuple[float, float],
    half: tuple[float, float],
) -> None:
    """Paint a rug with a striped border onto the floor's shade and colours.

    center: x, y in metres from the picture's middle (y up).
    """
    height, width = shade.shape
    row, down = round(height / 2 - center[1] * per_m), round(half[1] * per_m)
    column, along = round(width / 2 + center[0] * per_m), round(half[0] * per_m)
    y, x = np.arange(-down, down)[:, None], np.arange(-along, along)[None, :]
    away = np.minimum(down - np.abs(y), along - np.abs(x)) / per_m
    band = np.clip(away / 0.05, 0, len(RUG) - 1).astype(int)
    part = slice(row - down, row + down), slice(column - along, column + along)
    shade[part] = 0.95 + 0.05 * ((x + y) // 3 % 2)
    colors[part] = RUG[band]

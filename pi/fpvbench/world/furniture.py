"""Furniture of the bench room, made of solids that are drawn, hit and measured alike.

At the height of the car's sensors every piece is broad: a thin leg could stand between
two beams. In a piece's own frame its back is at x = 0 and it faces along x; metres.
"""

import math
import random
from collections.abc import Callable
from typing import Literal, NamedTuple


class Solid(NamedTuple):
    """Solid: middle, heading, half sizes; `texture` names its surface.

    A cylinder's radius is half[0], and it stands upright.
    """

    x: float
    y: float
    yaw: float
    half: tuple[float, float, float]
    texture: str
    bottom: float = 0.0
    shape: str = "box"

    @property
    def reach(self) -> float:
        """Radius of its footprint around its middle."""
        if self.shape == "box":
            return math.hypot(self.half[0], self.half[1])
        return self.half[0]

    def geom(self) -> str:
        """Return shape and placement for MJCF."""
        a, b, c = self.half
        size = f"{a} {c}" if self.shape == "cylinder" else f"{a} {b} {c}"
        return (
            f'type="{self.shape}" pos="{self.x} {self.y} {self.bottom + c}"'
            f' size="{size}" euler="0 0 {self.yaw}"'
        )


Piece = tuple[Solid, ...]


class Wall(NamedTuple):
    """Range of a piece's middle along a wall, from the room's middle."""

    name: Literal["east", "north", "south"]
    start: float
    end: float


def _box(
    x: float, y: float, size: tuple[float, float, float], texture: str, bottom: float = 0.0
) -> Solid:
    """Return a box of full sizes with its back at x."""
    a, b, c = size
    return Solid(x + a / 2, y, 0.0, (a / 2, b / 2, c / 2), texture, bottom)


def _round(
    x: float, y: float, radius: float, high: float, texture: str, bottom: float = 0.0
) -> Solid:
    return Solid(x, y, 0.0, (radius, radius, high / 2), texture, bottom, "cylinder")


def _seat(wide: float, places: int, texture: str) -> Piece:
    """Return a sofa or an armchair."""
    inner, arm = wide - 0.32, wide / 2 - 0.08
    seat_width = inner / places
    middles = [(place + 0.5) * seat_width - inner / 2 for place in range(places)]
    return (
        _box(0.0, 0.0, (0.72, wide, 0.24), texture),
        _box(0.0, 0.0, (0.2, wide, 0.46), texture, bottom=0.24),
        *(_box(0.0, y, (0.74, 0.16, 0.5), texture) for y in (-arm, arm)),
        *(_box(0.2, y, (0.54, seat_width - 0.02, 0.14), texture, bottom=0.24) for y in middles),
        *(_box(0.19, y, (0.12, seat_width - 0.06, 0.32), texture, bottom=0.38) for y in middles),
    )


def _shelf() -> Piece:
    return (_box(0.0, 0.0, (0.3, 0.84, 1.75), "books"),)


def _sideboard() -> Piece:
    """Return a sideboard with a lamp and a bowl on it."""
    top = 0.52
    return (
        _box(0.0, 0.0, (0.42, 1.3, top), "doors"),
        _round(0.2, 0.42, 0.07, 0.03, "brass", bottom=top),
        _round(0.2, 0.42, 0.012, 0.3, "brass", bottom=top + 0.03),
        _round(0.2, 0.42, 0.14, 0.2, "shade", bottom=top + 0.27),
        _round(0.22, -0.3, 0.13, 0.07, "pot", bottom=top),
    )


def _plant() -> Piece:
    middle = 0.28
    leaves = tuple(
        Solid(
            middle + 0.13 * math.cos(turn),
            0.13 * math.sin(turn),
            turn,
            (0.17, 0.07, 0.2),
            "leaf",
            bottom,
            "ellipsoid",
        )
        for turn, bottom in ((0.3, 0.34), (1.7, 0.42), (2.9, 0.36), (4.1, 0.46))
    )
    return (
        _round(middle, 0.0, 0.17, 0.32, "pot"),
        *leaves,
        Solid(middle, 0.0, 0.0, (0.12, 0.12, 0.3), "leaf", 0.5, "ellipsoid"),
    )


def _moved(piece: Piece, x: float, y: float, yaw: float) -> Piece:
    """Return the piece with its back's middle at x, y, facing along yaw."""
    cos, sin = math.cos(yaw), math.sin(yaw)
    return tuple(
        part._replace(
            x=x + cos * part.x - sin * part.y, y=y + sin * part.x + cos * part.y, yaw=part.yaw + yaw
        )
        for part in piece
    )


PIECES: tuple[tuple[Piece, tuple[Wall, ...]], ...] = (
    (_seat(1.6, 2, "teal"), (Wall("east", -1.0, 1.0), Wall("south", -0.6, 1.4))),
    (_shelf(), (Wall("east", -1.5, -0.4), Wall("south", 0.0, 2.0))),
    (_sideboard(), (Wall("north", 0.0, 1.7), Wall("south", -0.6, 1.7))),
    (_seat(0.86, 1, "ochre"), (Wall("south", -1.8, 1.9), Wall("east", -1.4, 1.4))),
    (_plant(), (Wall("east", -1.6, 1.6), Wall("south", -2.1, 2.1))),
)
"""Positions keep door, window and poster visible: they are in the west of the north
wall, in the west wall, and high in the north of the east wall."""


def furnish(
    dice: random.Random, half_room: tuple[float, float], free: Callable[[Solid, list[Solid]], bool]
) -> Piece:
    """Place pieces along the walls, wherever `free` permits their parts on the floor."""
    x, y = half_room
    placed: list[Solid] = []
    for piece, walls in PIECES:
        for _ in range(60):
            wall = dice.choice(walls)
            along = dice.uniform(wall.start, wall.end)
            parts = _moved(piece, *_against(wall, along, x, y))
            if all(free(part, placed) for part in parts if not part.bottom):
                placed.extend(parts)
                break
    return tuple(placed)


def _against(wall: Wall, along: float, x: float, y: float) -> tuple[float, float, float]:
    """Return x, y and heading of a piece with its back to a wall."""
    if wall.name == "east":
        return x, along, math.pi
    side = 1 if wall.name == "north" else -1
    return along, side * y, -side * math.pi / 2

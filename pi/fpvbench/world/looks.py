"""Appearance of the room for the bench camera: drawn geoms and their textures.

MuJoCo takes textures from files or as built-in patterns. Here each is declared as a
flat pattern of the right size, and its pixels are put into the model afterwards.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fpvbench.world import scene
from fpvbench.world import textures as paint

FLOOR_PER_M = 400.0
FACE = 512
WALL = (512, 1024)
WALLS: tuple[tuple[str, paint.Color], ...] = (
    ("wall_east", (226, 222, 208)),
    ("wall_west", (206, 214, 220)),
    ("wall_north", (222, 216, 200)),
    ("wall_south", (214, 218, 210)),
)
COATS: dict[str, paint.Color] = {
    "red": (186, 44, 40),
    "green": (52, 142, 78),
    "blue": (48, 96, 168),
    "yellow": (226, 176, 44),
}
FITTINGS: tuple[tuple[str, str, str], ...] = (
    ("2.49 0.75 0.95", "0.015 0.42 0.3", "0.2 0.2 0.22"),  # poster: frame, paper,
    ("2.48 0.75 0.95", "0.015 0.4 0.28", "0.93 0.9 0.82"),  # hills
    ("2.47 0.75 0.79", "0.015 0.36 0.09", "0.2 0.42 0.42"),
    ("2.47 0.95 0.93", "0.014 0.16 0.06", "0.3 0.55 0.5"),
    ("2.47 0.55 1.1", "0.014 0.05 0.05", "0.88 0.5 0.2"),  # and a square sun
    ("-1.2 2.008 1.02", "0.46 0.02 1.02", "0.9 0.89 0.85"),  # door: frame, leaf, knob
    ("-1.2 2.005 1.0", "0.4 0.02 1.0", "0.5 0.36 0.24"),
    ("-0.87 1.96 0.95", "0.02 0.03 0.02", "0.75 0.72 0.6"),
    ("-2.49 -0.6 1.2", "0.02 0.6 0.5", "0.94 0.94 0.92"),  # window: frame, panes
    ("-2.475 -0.88 1.2", "0.02 0.25 0.43", "0.66 0.82 0.94"),
    ("-2.475 -0.32 1.2", "0.02 0.25 0.43", "0.66 0.82 0.94"),
)
"""Wall decoration: middle, half size, colour."""
CARTONS: dict[str, paint.Color] = {"carton": paint.CARDBOARD, "kraft": paint.KRAFT}
FABRICS: dict[str, paint.Color] = {"teal": (62, 116, 120), "ochre": (204, 150, 70)}
FRONTS = {"books": paint.books, "doors": paint.doors}
"""Wooden furniture -> the texture of its front."""
PLAIN: dict[str, str] = {
    "brass": "0.78 0.64 0.34",
    "shade": "0.96 0.9 0.74",
    "pot": "0.72 0.42 0.3",
    "leaf": "0.24 0.46 0.24",
}
RUG_HALF_M = (0.85, 0.6)


def build(seed: int, width: int, height: int) -> Any:
    """Return the mujoco.MjModel of a seed's room for pictures of width x height."""
    place = scene.layout(seed)
    geoms = _room() + "".join(_solids(place)) + "".join(_ramp(place.ramp))
    model = scene.build(place, _assets(width, height), geoms)
    random = np.random.default_rng(seed)
    _put(model, "floor", _floor(random, place))
    for name, color in WALLS:
        _put(model, name, paint.wall(random, *WALL, color))
    for name, color in CARTONS.items():
        end, side, top = paint.carton(random, FACE, color)
        _put(model, name, _cube(end, side, top))
    for name, color in COATS.items():
        face = paint.painted(random, FACE, color)
        _put(model, name, _cube(face, face, face))
    for name, color in FABRICS.items():
        face = paint.fabric(random, FACE, color)
        _put(model, name, _cube(face, face, face))
    board = paint.wood(random, FACE, paint.WALNUT)
    for name, front in FRONTS.items():
        _put(model, name, _cube(front(random, FACE, paint.WALNUT), board, board))
    _put(model, "slope", paint.ramp(random, 256, 256))
    return model


def _floor(random: np.random.Generator, place: scene.Layout) -> paint.Picture:
    height = round(scene.ROOM_Y_M * FLOOR_PER_M)
    width = round(scene.ROOM_X_M * FLOOR_PER_M)
    shade, colors = paint.planks(random, height, width, FLOOR_PER_M)
    paint.rug(shade, colors, FLOOR_PER_M, (place.ramp.x - 0.4, 0.0), RUG_HALF_M)
    for part in place.solids:
        if not part.bottom:
            at = (part.x, part.y, part.yaw)
            paint.shadow(shade, FLOOR_PER_M, at, (part.half[0], part.half[1]))
    half = (scene.RAMP_RUN_M + scene.RAMP_TOP_M / 2, scene.RAMP_WIDTH_M / 2)
    paint.shadow(shade, FLOOR_PER_M, (place.ramp.x, place.ramp.y, 0.0), half)
    paint.edge_shadow(shade, FLOOR_PER_M)
    return paint.floor(shade, colors)


def _cube(end: paint.Picture, side: paint.Picture, top: paint.Picture) -> paint.Picture:
    """Return the faces +x -x +y -y +z -z of a box, each upright from outside.

    MuJoCo's orientation of faces was found by experiment (4.0).
    """
    ends, sides = (np.rot90(end, 1), np.rot90(end, -1)), (np.rot90(side, 2), side)
    return np.concatenate([*ends, *sides, top, top])


def _put(model: Any, name: str, picture: paint.Picture) -> None:
    texture = model.texture(name).id
    start = int(model.tex_adr[texture])
    size = (int(model.tex_height[texture]), int(model.tex_width[texture]))
    if picture.shape[:2] != size:
        raise ValueError(f"texture {name}: {picture.shape[:2]}, expected {size}")
    model.tex_data[start : start + picture.size] = picture.ravel()


def _assets(width: int, height: int) -> str:
    floor_w = round(scene.ROOM_X_M * FLOOR_PER_M)
    floor_h = round(scene.ROOM_Y_M * FLOOR_PER_M)
    flat = [("floor", floor_w, floor_h), ("slope", 256, 256)]
    flat += [(name, WALL[1], WALL[0]) for name, _ in WALLS]
    cubes = (*CARTONS, *COATS, *FABRICS, *FRONTS)
    lines = [
        f'<texture name="{name}" type="2d" builtin="flat" width="{w}" height="{h}"/>'
        for name, w, h in flat
    ]
    lines += [
        f'<texture name="{name}" type="cube" builtin="flat" width="{FACE}" height="{FACE}"/>'
        for name in cubes
    ]
    names = [*(name for name, _, _ in flat), *cubes]
    lines += [
        f'<material name="{name}" texture="{name}" specular="0" shininess="0"/>' for name in names
    ]
    return f"""
  <visual>
    <global offwidth="{width}" offheight="{height}"/>
    <quality shadowsize="0" offsamples="0" numslices="20" numstacks="12"/>
    <headlight ambient="0.62 0.62 0.62" diffuse="0.2 0.2 0.2" specular="0 0 0"/>
    <map znear="0.005" zfar="3"/>
  </visual>
  <asset>{"".join(lines)}</asset>"""


def _room() -> str:
    x, y, z = scene.ROOM_X_M / 2, scene.ROOM_Y_M / 2, scene.ROOM_Z_M / 2
    off = 'group="0" contype="0" conaffinity="0"'
    walls = (
        ("wall_east", f"{x} 0 {z}", "0 -1 0 0 0 1", y),
        ("wall_west", f"-{x} 0 {z}", "0 1 0 0 0 1", y),
        ("wall_north", f"0 {y} {z}", "1 0 0 0 0 1", x),
        ("wall_south", f"0 -{y} {z}", "-1 0 0 0 0 1", x),
    )
    skirting = ((x, 0, 0.012, y), (-x, 0, 0.012, y), (0, y, x, 0.012), (0, -y, x, 0.012))
    drawn = [
        '<light directional="true" pos="0 0 2" dir="0.5 0.3 -0.8"'
        ' diffuse="0.46 0.45 0.42" specular="0 0 0" castshadow="false"/>',
        f'<geom {off} type="plane" size="{x} {y} 1" material="floor"/>',
        f'<geom {off} type="plane" pos="0 0 {2 * z}" xyaxes="1 0 0 0 -1 0"'
        f' size="{x} {y} 1" rgba="0.95 0.95 0.93 1"/>',
    ]
    drawn += [
        f'<geom {off} type="plane" pos="{at}" xyaxes="{axes}" size="{half} {z} 1"'
        f' material="{name}"/>'
        for name, at, axes, half in walls
    ]
    drawn += [
        f'<geom {off} type="box" pos="{at_x} {at_y} 0.05" size="{half_x} {half_y} 0.05"'
        ' rgba="0.47 0.47 0.48 1"/>'
        for at_x, at_y, half_x, half_y in skirting
    ]
    drawn += [
        f'<geom {off} type="box" pos="{at}" size="{half}" rgba="{color} 1"/>'
        for at, half, color in FITTINGS
    ]
    return "".join(drawn)


def _solids(place: scene.Layout) -> Iterator[str]:
    for part in place.solids:
        plain = PLAIN.get(part.texture)
        surface = f'rgba="{plain} 1"' if plain else f'material="{part.texture}"'
        yield f'<geom group="0" contype="0" conaffinity="0" {part.geom()} {surface}/>'


def _ramp(ramp: scene.Ramp) -> Iterator[str]:
    for kind, placement in scene.ramp_parts(ramp):
        surface = 'rgba="0.62 0.5 0.34 1"' if kind == "kerb" else 'material="slope"'
        yield (f'<geom group="0" contype="0" conaffinity="0" type="box" {placement} {surface}/>')

"""Room and car of the bench as a MuJoCo model, generated from a seed.

World and camera build the same model, so that they share qpos. Solids are in geom group
3, which is not drawn. Drawn geoms (group 0) collide with nothing and are left out where
nothing is drawn. Metres, radians; x points ahead of the car at the start, y to its
left. The origin is the room's middle.
"""

import math
import random
from typing import Any, NamedTuple

import mujoco

from fpvbench.soc import RANGE_SENSORS
from fpvbench.world.furniture import Solid, furnish

ROOM_X_M, ROOM_Y_M, ROOM_Z_M = 5.0, 4.0, 2.6
START_X_M, START_Y_M = -1.9, 0.0
RAMP_RUN_M, RAMP_RISE_M, RAMP_TOP_M, RAMP_WIDTH_M = 0.62, 0.07, 0.3, 0.5

WHEEL_R_M = 0.032
WHEELBASE_M, TRACK_M = 0.15, 0.125
CAMERA_FOVY_DEG = 56.0
"""Vertical field of view; 70 degrees across at 4:3."""
TIMESTEP_S = 0.005


class Ramp(NamedTuple):
    """Plateau with a slope at both ends, along x."""

    x: float
    y: float


class Layout(NamedTuple):
    """Solids placed in the room, with the ramp."""

    boxes: tuple[Solid, ...]
    ramp: Ramp
    furniture: tuple[Solid, ...] = ()

    @property
    def solids(self) -> tuple[Solid, ...]:
        """All solids on the floor or on another solid."""
        return self.boxes + self.furniture


TEXTURES = ("carton", "kraft", "red", "green", "kraft", "blue", "carton", "yellow")


def layout(seed: int) -> Layout:
    """Place ramp, furniture and boxes. The car and the first 2 m in front of it stay free."""
    dice = random.Random(seed)
    ramp = Ramp(dice.uniform(0.2, 0.9), dice.choice((-1, 1)) * dice.uniform(1.1, 1.35))
    walls = (ROOM_X_M / 2, ROOM_Y_M / 2)
    furniture = furnish(dice, walls, lambda part, placed: _free(part, placed, ramp))
    boxes: list[Solid] = []
    for number in range(12):
        texture = TEXTURES[number % len(TEXTURES)]
        for _ in range(200):
            box = _throw(dice, texture)
            if _free(box, [*boxes, *furniture], ramp):
                boxes.append(box)
                break
    return Layout(tuple(boxes), ramp, furniture)


def _throw(dice: random.Random, texture: str) -> Solid:
    across = dice.uniform(0.13, 0.27)
    deep, high = across * dice.uniform(0.6, 1.0), dice.uniform(0.14, 0.26)
    if texture not in ("carton", "kraft"):
        deep, high = across, dice.uniform(0.15, 0.22)
    x = dice.uniform(-ROOM_X_M / 2 + 0.4, ROOM_X_M / 2 - 0.4)
    y = dice.uniform(-ROOM_Y_M / 2 + 0.4, ROOM_Y_M / 2 - 0.4)
    return Solid(x, y, dice.uniform(-0.6, 0.6), (across, deep, high), texture)


def _free(part: Solid, placed: list[Solid], ramp: Ramp) -> bool:
    reach = part.reach
    lane_x = min(max(part.x, START_X_M - 0.4), START_X_M + 2.0)
    if math.hypot(part.x - lane_x, part.y - START_Y_M) < reach + 0.28:
        return False
    run = RAMP_RUN_M + RAMP_TOP_M / 2
    at_ramp = (abs(part.x - ramp.x) - run, abs(part.y - ramp.y) - RAMP_WIDTH_M / 2)
    if at_ramp[0] < reach + 0.5 and at_ramp[1] < reach + 0.15:
        return False
    gap = reach + 0.3  # the car is 0.17 m wide
    return all(
        math.hypot(part.x - o.x, part.y - o.y) > gap + o.reach for o in placed if not o.bottom
    )


def build(place: Layout, assets: str = "", drawn: str = "") -> Any:
    """Return the mujoco.MjModel of a room; looks.py adds the drawn geoms."""
    return mujoco.MjModel.from_xml_string(_mjcf(place, assets, drawn))


def _mjcf(place: Layout, assets: str, drawn: str) -> str:
    solids = "".join(f'<geom class="solid" {solid.geom()}/>' for solid in place.solids)
    return f"""
<mujoco model="bench">
  <compiler angle="radian"/>
  <option timestep="{TIMESTEP_S}" integrator="implicitfast" cone="elliptic"/>
  <statistic center="0 0 0.5" extent="4"/>
  {assets}
  <default>
    <default class="solid">
      <geom group="3" contype="1" conaffinity="2" friction="0.5 0.002 0.0001"/>
    </default>
    <default class="tyre">
      <geom group="4" contype="2" conaffinity="1" friction="0.9 0.002 0.0001"
            solref="0.01 1"/>
    </default>
    <default class="body">
      <geom group="4" contype="2" conaffinity="1" friction="0.3 0.002 0.0001"
            solref="0.01 1"/>
    </default>
  </default>
  <worldbody>
    <geom name="floor" class="solid" type="plane" size="4 4 0.1" friction="0.9 .002 0"/>
    {_walls()}{solids}{_ramp(place.ramp)}{_car()}{drawn}
  </worldbody>
  <actuator>
    <motor name="rear_left" joint="rear_left"/>
    <motor name="rear_right" joint="rear_right"/>
    <position name="steer_left" joint="steer_left" kp="2" kv="0.03"/>
    <position name="steer_right" joint="steer_right" kp="2" kv="0.03"/>
  </actuator>
</mujoco>"""


def _walls() -> str:
    x, y, z = ROOM_X_M / 2, ROOM_Y_M / 2, ROOM_Z_M / 2
    across = ((x + 0.1, 0, 0.1, y + 0.2), (-x - 0.1, 0, 0.1, y + 0.2))
    along = ((0, y + 0.1, x + 0.2, 0.1), (0, -y - 0.1, x + 0.2, 0.1))
    return "".join(
        f'<geom class="solid" type="box" pos="{at_x} {at_y} {z}" size="{half_x} {half_y} {z}"/>'
        for at_x, at_y, half_x, half_y in (*across, *along)
    )


def ramp_parts(ramp: Ramp) -> tuple[tuple[str, str], ...]:
    """Return (kind, placement) of the ramp's boxes: slopes, plateau, kerbs.

    The upper face of a slope's slab is the way up. A kerb is higher than a wheel, or
    the car would climb it and get stuck on its belly.
    """
    wide, thick, kerb = RAMP_WIDTH_M / 2, 0.02, 0.06
    slope = math.atan2(RAMP_RISE_M, RAMP_RUN_M)
    long = math.hypot(RAMP_RISE_M, RAMP_RUN_M) / 2
    aside = RAMP_TOP_M / 2 + RAMP_RUN_M / 2 - thick * math.sin(slope)
    lift, top = RAMP_RISE_M / 2 - thick * math.cos(slope), RAMP_RISE_M / 2
    up = (top + kerb / 2, lift + kerb / 2)

    def box(x: float, y: float, z: float, half: tuple[float, ...], tilt: float) -> str:
        a, b, c = half
        placement = f'pos="{ramp.x + x} {ramp.y + y} {z}" size="{a} {b} {c}"'
        return f'{placement} euler="0 {tilt} 0"'

    parts = [("plateau", box(0, 0, top, (RAMP_TOP_M / 2, wide, top), 0))]
    for end in (-1, 1):
        x, tilt = end * aside, end * slope
        parts.append(("slope", box(x, 0, lift, (long, wide, thick), tilt)))
    for y in (-wide - 0.012, wide + 0.012):
        rail = (RAMP_TOP_M / 2, 0.012, top + kerb / 2)
        parts.append(("kerb", box(0, y, up[0], rail, 0)))
        for end in (-1, 1):
            rail = (long, 0.012, thick + kerb / 2)
            parts.append(("kerb", box(end * aside, y, up[1], rail, end * slope)))
    return tuple(parts)


def _ramp(ramp: Ramp) -> str:
    return "".join(
        f'<geom class="solid" type="box" friction="0.9 .002 0" {placement}/>'
        for _, placement in ramp_parts(ramp)
    )


def _car() -> str:
    """Return the chassis: 0.25 m long, 0.17 m wide over its bumpers, 0.45 kg with wheels.

    A wheel collides as a ball: one contact each, and it rolls over any edge.
    """
    front, back, side = WHEELBASE_M / 2, -WHEELBASE_M / 2, TRACK_M / 2
    sensors = "".join(
        f'<site name="{name}" pos="{0.115 if abs(deg) < 90 else -0.115} 0 0.035"'
        f' euler="0 0 {math.radians(deg)}"/>'
        for name, deg in RANGE_SENSORS
    )
    wheels = "".join(
        _wheel(name, x, y, name.startswith("front"))
        for name, x, y in (
            ("front_left", front, side),
            ("front_right", front, -side),
            ("rear_left", back, side),
            ("rear_right", back, -side),
        )
    )
    return f"""
    <body name="car" pos="{START_X_M} {START_Y_M} {WHEEL_R_M}">
      <freejoint name="car"/>
      <inertial pos="-0.005 0 0.012" mass="0.35" diaginertia="5e-4 1.7e-3 2e-3"/>
      <geom class="body" type="box" pos="0 0 0.012" size="0.125 0.045 0.022"/>
      <geom class="body" type="box" pos="0.115 0 0.012" size="0.01 0.085 0.018"/>
      <geom class="body" type="box" pos="-0.115 0 0.012" size="0.01 0.085 0.018"/>
      <geom class="body" type="box" pos="-0.02 0 0.05" size="0.07 0.04 0.02"/>
      {sensors}
      <camera name="driver" pos="0.1 0 0.06" fovy="{CAMERA_FOVY_DEG}"
              xyaxes="0 -1 0 0.1219 0 0.9925"/>
      <camera name="rear" pos="-0.1 0 0.06" fovy="{CAMERA_FOVY_DEG}"
              xyaxes="0 1 0 -0.1219 0 0.9925"/>
      {wheels}
    </body>"""


def _wheel(name: str, x: float, y: float, steers: bool) -> str:
    steer = (
        f'<joint name="{name.replace("front", "steer")}" axis="0 0 1"'
        ' range="-0.7 0.7" limited="true" armature="1e-4" damping="0.002"/>'
        if steers
        else ""
    )
    return f"""
      <body name="{name}" pos="{x} {y} 0">
        <inertial pos="0 0 0" mass="0.025" diaginertia="1e-5 1.5e-5 1e-5"/>
        {steer}
        <joint name="{name}" axis="0 1 0" armature="1e-5" frictionloss="0.0004"
               solimpfriction="0.99 0.999 0.001"/>
        <geom class="tyre" type="sphere" size="{WHEEL_R_M}"/>
      </body>"""

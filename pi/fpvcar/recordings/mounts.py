"""Positions of camera and range sensors on the car, from its profile. Pure.

car           x ahead, y left, z up; its origin is on the floor, below its middle
camera        camera convention: z ahead, x right, y down
range_NAME    x along the beam
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fpvcar.recordings import messages
from fpvcar.recordings.mcap import calibration
from fpvcar.recordings.mcap.calibration import Pinhole
from fpvcar.recordings.mcap.cloud import Point
from fpvcar.recordings.mcap.frames import Quaternion, Transform

OPTICAL: Quaternion = (-0.5, 0.5, -0.5, 0.5)
"""Rotation from x ahead, y left, z up to z ahead, x right, y down."""
DEPTH = "depth"
"""Name of the depth camera among the range sensors."""


def positions(profile: Mapping[str, Any]) -> dict[str, Point]:
    """Return the position of each range sensor on the car by name, in m.

    `profile` has the form used in messages.About.
    """
    return {name: _position(section) for name, section in _ranges(profile)}


def transforms(profile: Mapping[str, Any]) -> tuple[Transform, ...]:
    """Return the transforms of the camera and of each range sensor."""
    camera = _position(profile.get("camera", {}))
    result = [Transform(messages.CAR_FRAME, messages.FRAME_ID, camera, OPTICAL)]
    for name, section in _ranges(profile):
        half = math.radians(section.get("bearing_deg", 0.0)) / 2.0
        rotation = (0.0, 0.0, math.sin(half), math.cos(half))
        frame = f"range_{name}"
        result.append(Transform(messages.CAR_FRAME, frame, _position(section), rotation))
    return tuple(result)


def intrinsics(profile: Mapping[str, Any]) -> Pinhole | None:
    """Return the intrinsics of the camera; None without a field of view in the profile,
    and for a mirrored picture, which no pinhole makes."""
    camera = profile.get("camera", {})
    fov_deg = camera.get("fov_deg")
    if fov_deg is None or camera.get("flip", "none") in ("horizontal", "vertical"):
        return None
    return calibration.pinhole(camera["width"], camera["height"], fov_deg)


def _ranges(profile: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    sensors, depth = profile.get("sensors", {}), profile.get("depth", {})
    for kind in sensors.values():
        if isinstance(kind, Mapping):  # not sensors.celsius
            yield from kind.items()
    if depth.get("source", "none") != "none":
        yield DEPTH, depth


def _position(section: Mapping[str, Any]) -> Point:
    x, y, z = (float(section.get(f"{axis}_m", 0.0)) for axis in "xyz")
    return x, y, z

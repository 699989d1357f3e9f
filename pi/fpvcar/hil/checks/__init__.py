"""Every check, in the order in which they run: those of sensors while the car stands,
those that end processes late."""

from fpvcar.hil.checks import camera, metal, pins, sensors, stops
from fpvcar.hil.rig import Check

CHECKS: tuple[Check, ...] = (
    *sensors.CHECKS, *camera.CHECKS, *pins.CHECKS, *stops.CHECKS, *metal.CHECKS,
)  # fmt: skip

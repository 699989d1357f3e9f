"""Every check in running order: sensors first while the car stands, checks that end
processes last."""

from fpvcar.hil.checks import camera, metal, pins, pulses, sensors, stops
from fpvcar.hil.rig import Check

CHECKS: tuple[Check, ...] = (
    *sensors.CHECKS,
    *camera.CHECKS,
    *pins.CHECKS,
    *pulses.CHECKS,
    *stops.CHECKS,
    *metal.CHECKS,
)

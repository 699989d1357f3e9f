"""Checks, the parts that they may need, and their failures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fpvcar.hil.results import Limit, Measured

if TYPE_CHECKING:
    from fpvcar.hil.gpio_rig import Rig  # imports this module


class MissingPart(Exception):
    """Raised when the rig lacks a part that a check needs; the text names it."""


class CheckFailed(Exception):
    """Raised when a check fails without a figure to report."""


class InvalidMeasurement(Exception):
    """Raised for a meaningless measurement: the car stood before the failure."""


class SeenPicture(NamedTuple):
    """Picture seen by a rig: times of display and capture by CLOCK_MONOTONIC in ns,
    and the brightness of its cells as counted by spot.py."""

    seen_ns: int
    captured_ns: int
    cells: Sequence[float]


PARTS = {
    "loops": "inputs wired to the motor pins (rig.loops)",
    "servo": "an input wired to a servo that does not steer (rig.servo)",
    "out": "a free pin wired to another one (rig.out, rig.back)",
    "processes": "the right to end the car's processes",
    "pin daemon": "pigpiod, with inputs read by another back end",
    "camera": "a camera",
    "echo": "an input at the echo of an HC-SR04 (rig.echo)",
    "contact": "a relay or pin at a button (rig.contact)",
    "target": "a target in front of a VL53L0X (rig.target_m)",
    "load": "a known load behind the INA219 (rig.load_a)",
    "flash": "an LED in front of the camera (rig.led)",
    "photodiode": "a light sensor on the screen of a browser (rig.photodiode)",
    "browser": "a browser: Chromium on the bench, else opened by a person (--browser)",
    "radio": "a driver on Wi-Fi",
    "metal": "a real Raspberry Pi",
}
"""Parts that a check may need."""


@dataclass(frozen=True)
class Check:
    """Statement about the car, with its measurement.

    `act` returns one measurement in the limit's unit. It raises MissingPart, CheckFailed or
    InvalidMeasurement. `metal`: only a real Pi can confirm the statement; without `act` a person
    must, following `by_hand`.
    """

    name: str
    group: str
    proves: str
    limit: Limit
    needs: tuple[str, ...] = ()
    act: "Callable[[Rig], Measured] | None" = None
    metal: bool = False
    by_hand: str = ""

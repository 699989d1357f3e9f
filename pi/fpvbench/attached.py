"""Devices that the bench attaches to its pin daemon: their options, and those of a profile.

A device of a profile becomes an option of `python -m fpvbench.pigpiod`. Its module in chips/ has
`option(sensor)`, which writes it for a range sensor of a profile, and for a device on a bus
`device(number, *texts)`, which reads it.
"""

import importlib
from collections.abc import Iterator
from typing import Any

from fpvbench import soc as chip
from fpvbench.chips.i2c import Make
from fpvbench.pigpiod.daemon import Ultrasonic
from fpvcar.config import Profile, Ultrasound
from fpvcar.config.servos import channels

HCSR04 = "TRIGGER,ECHO,RANGE[,OFF_M]"
I2C = (
    "BUS:ADDRESS:ina219[:SHUNT_OHM], BUS:ADDRESS:pca9685, BUS:RANGE:vl53l0x[:XSHUT_GPIO[:OFF_M]] "
    "BUS:RANGE:tfmini[:ADDRESS] or BUS:RANGE:vl53l1x[:XSHUT_GPIO[:OFF_M[:NAME]]]"
)
CHIPS = {"tof": "vl53l0x"}
"""Field of `config.Sensors` -> its chip, if that has another name."""


def ultrasonic(text: str) -> Ultrasonic:
    """Parse --hcsr04. Raises ValueError."""
    pins, off_m = text.split(","), 0.0
    if len(pins) == 4:
        off_m = float(pins.pop())
    trigger, echo, index = (int(part, 0) for part in pins)
    if not (0 <= trigger < 32 and 0 <= echo < 32 and 0 <= index < chip.RANGES_MAX):
        raise ValueError
    return Ultrasonic(trigger, echo, index, off_m)


def _chip(name: str) -> Any:
    """Return the module of a chip. Raises ValueError."""
    try:
        return importlib.import_module(f"fpvbench.chips.{name.replace('-', '_')}")
    except ModuleNotFoundError:
        raise ValueError(name) from None


def i2c_device(text: str) -> tuple[int, Make]:
    """Parse --i2c: return the bus, and a function that creates the device on a chip. Raises
    ValueError."""
    bus, number, name, *arguments = text.split(":")
    try:
        return int(bus, 0), _chip(name).device(int(number, 0), *arguments)
    except (AttributeError, TypeError) as fault:  # no device of a bus, or too many texts
        raise ValueError(text) from fault


def options_of(profile: Profile) -> Iterator[str]:
    """Yield the daemon's options for the devices of a profile."""
    if profile.motors.on_hat or any(channels(profile)):
        hat = profile.pca9685
        yield from ("--i2c", f"{hat.bus}:{hat.address:#x}:pca9685")
    if profile.battery.address is not None:
        yield from ("--i2c", f"{profile.battery.bus}:{profile.battery.address:#x}:ina219")
    for kind, _, sensor in profile.sensors.every():
        if isinstance(sensor, Ultrasound):
            index = chip.nearest_range(sensor.bearing_deg)
            yield from ("--hcsr04", f"{sensor.trigger},{sensor.echo},{index}")
        else:
            yield from _chip(CHIPS.get(kind, kind)).option(sensor)

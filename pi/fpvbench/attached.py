"""Devices that the bench attaches to its pin daemon: their options, and those of a profile.

A device of a profile becomes an option of `python -m fpvbench.pigpiod`: `options_of` writes it,
`i2c_device` and `ultrasonic` read it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fpvbench import soc as chip
from fpvbench.chips.i2c import Device, battery_monitor
from fpvbench.chips.pca9685 import motor_hat
from fpvbench.chips.vl53l0x import range_sensor
from fpvbench.pigpiod.daemon import Ultrasonic
from fpvcar.config import Profile, Tof, Ultrasound

Make = Callable[[chip.Soc], Sequence[Device]]
HCSR04 = "TRIGGER,ECHO,RANGE[,OFF_M]"
I2C = (
    "BUS:ADDRESS:ina219[:SHUNT_OHM], BUS:ADDRESS:pca9685 or BUS:RANGE:vl53l0x[:XSHUT_GPIO[:OFF_M]]"
)


def ultrasonic(text: str) -> Ultrasonic:
    """Parse --hcsr04. Raises ValueError."""
    pins, off_m = text.split(","), 0.0
    if len(pins) == 4:
        off_m = float(pins.pop())
    trigger, echo, index = (int(part, 0) for part in pins)
    if not (0 <= trigger < 32 and 0 <= echo < 32 and 0 <= index < chip.RANGES_MAX):
        raise ValueError
    return Ultrasonic(trigger, echo, index, off_m)


def _pca9685(address: int) -> Make:
    return lambda soc: motor_hat(soc, address)


def _ina219(address: int, shunt_ohm: str = "0.1") -> Make:
    ohm = float(shunt_ohm)
    return lambda soc: [battery_monitor(soc, ohm, address)]


def _vl53l0x(index: int, xshut: str = "", off_m: str = "0") -> Make:
    power, error_m = int(xshut, 0) if xshut else None, float(off_m)
    if not (0 <= index < chip.RANGES_MAX and 0 <= (power or 0) < 32):
        raise ValueError
    return lambda soc: [range_sensor(soc, index, power, error_m)]


I2C_DEVICES: dict[str, Callable[..., Make]] = {
    "pca9685": _pca9685,
    "ina219": _ina219,
    "vl53l0x": _vl53l0x,
}
"""Name in --i2c -> a function of the number before it and the texts behind it."""


def i2c_device(text: str) -> tuple[int, Make]:
    """Parse --i2c: return the bus, and a function that creates the device on a chip. Raises
    ValueError."""
    bus, number, kind, *arguments = text.split(":")
    try:
        return int(bus, 0), I2C_DEVICES[kind](int(number, 0), *arguments)
    except (KeyError, TypeError) as fault:  # an unknown device, or too many texts
        raise ValueError(text) from fault


def _tof(sensor: Tof) -> tuple[str, str]:
    power = "" if sensor.power is None else f":{sensor.power}"
    index = chip.nearest_range(sensor.bearing_deg)
    return "--i2c", f"{sensor.bus}:{index}:vl53l0x{power}"


def _ultrasound(sensor: Ultrasound) -> tuple[str, str]:
    index = chip.nearest_range(sensor.bearing_deg)
    return "--hcsr04", f"{sensor.trigger},{sensor.echo},{index}"


RANGE_SENSORS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "tof": _tof,
    "ultrasound": _ultrasound,
}
"""Field of `config.Sensors` -> the option for one of its sensors."""


def options_of(profile: Profile) -> Iterator[str]:
    """Yield the daemon's options for the devices of a profile."""
    if profile.motors.on_hat:
        hat = profile.pca9685
        yield from ("--i2c", f"{hat.bus}:{hat.address:#x}:pca9685")
    if profile.battery.address is not None:
        yield from ("--i2c", f"{profile.battery.bus}:{profile.battery.address:#x}:ina219")
    for kind, _, sensor in profile.sensors.every():
        yield from RANGE_SENSORS[kind](sensor)

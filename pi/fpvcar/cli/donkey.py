"""Profile of a car that Donkeycar has driven, made from the values of its myconfig.py. Pure.

Source of the defaults and of the meaning of the values: autorope/donkeycar, its files
templates/cfg_complete.py, parts/pins.py and parts/actuator.py (February 2026).
"""

import ast
import re
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from fpvcar.calibration.export import with_key
from fpvcar.config import ConfigError, profiles
from fpvcar.wiring.header import GPIO_AT

TRAIN, PINS = "DRIVE_TRAIN_TYPE", "PWM_STEERING_THROTTLE"
DEFAULTS = {
    TRAIN: PINS,
    "PCA9685_I2C_ADDR": 0x40,
    "PCA9685_I2C_BUSNUM": 1,
    "STEERING_CHANNEL": 1,
    "THROTTLE_CHANNEL": 0,
    "STEERING_LEFT_PWM": 460,
    "STEERING_RIGHT_PWM": 290,
    "THROTTLE_FORWARD_PWM": 500,
    "THROTTLE_STOPPED_PWM": 370,
    "THROTTLE_REVERSE_PWM": 220,
    "CAMERA_TYPE": "PICAM",
}
CAMERAS = {"PICAM": "picamera2", "WEBCAM": "v4l2", "CVCAM": "v4l2", "V4L": "v4l2", "MOCK": "none"}
PIN = re.compile(r"PCA9685\.(\d+):([0-9a-fA-F]+)\.(\d+)|(RPI_GPIO|PIGPIO)\.(BCM|BOARD)\.(\d+)")
TICKS = 4095
"""Value of a pulse that never ends."""
HZ = {"PCA9685": 60, "RPI_GPIO": 60, "PIGPIO": 50}
"""Rate of the pulses. Donkeycar asks for 60 Hz; the nearest rate of pigpio is 50 Hz."""
END_US = (1000.0, 2000.0)
"""Limits of an ESC's end pulses in a profile."""
MIDDLE_US = (1300.0, 1700.0)
"""Limits of an ESC's neutral pulse in a profile, and of a servo's centre here."""
US_PER_DEG = 10.0
"""Usual turn of a servo, as no value of Donkeycar's gives an angle."""


class Pin(NamedTuple):
    """Output that Donkeycar names by a text such as "PCA9685.1:40.7" or "PIGPIO.BCM.18"."""

    maker: str
    number: int
    """Channel of the chip, or GPIO."""
    bus: int = 1
    address: int = 0x40


class Output(NamedTuple):
    """Output with the values of its pulses."""

    pin: Pin
    scale: float

    def us(self, ticks: float) -> float:
        """Return the length of a pulse."""
        return round(ticks * self.scale * 1e6 / TICKS / HZ[self.pin.maker], 1)


def literals(source: str) -> dict[str, Any]:
    """Return the names that the text sets to a literal, without executing it. Raises ConfigError
    if it is no Python."""
    found: dict[str, Any] = {}
    try:
        lines = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        raise ConfigError(f"no Python, so no myconfig.py of Donkeycar: {fault}") from None
    for line in lines:
        if isinstance(line, ast.Assign) and isinstance(name := line.targets[0], ast.Name):
            try:
                found[name.id] = ast.literal_eval(line.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                found.pop(name.id, None)  # calculated by Donkeycar's program
    return found


def convert(source: str, shipped: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the text of a profile with the values of this myconfig.py, and remarks.

    `shipped` maps rc-esc and rc-esc-hat to their texts. Raises ConfigError for a drive train, a
    pin or a pulse that this firmware cannot drive.
    """
    found = {**DEFAULTS, **literals(source)}
    found |= _mapping(found) if found[TRAIN] == PINS else {}
    steering, throttle = _output(found, "STEERING"), _output(found, "THROTTLE")
    hat = throttle.pin.maker == "PCA9685"
    if hat != (steering.pin.maker == "PCA9685") or (hat and steering.pin[2:] != throttle.pin[2:]):
        raise ConfigError(
            f"{PINS}: steering on {steering.pin.maker} and throttle on {throttle.pin.maker}: "
            "expected both on one PCA9685, or both on GPIO, as one dead man's switch stops both"
        )
    name = "rc-esc-hat" if hat else "rc-esc"
    remarks = [f"an ESC and a servo on {'a PCA9685' if hat else 'GPIO'}: from {name}"]
    values = _place(steering.pin, throttle.pin) | _steering(found, steering)
    values |= _throttle(found, throttle, remarks)
    if camera := CAMERAS.get(str(found["CAMERA_TYPE"])):
        values["camera.source"] = f'"{camera}"'
    else:
        remarks.append(f"CAMERA_TYPE = {found['CAMERA_TYPE']!r}: set camera.source by hand")
    toml = shipped[name]
    for key, value in values.items():
        toml = with_key(toml, key, value)
    profiles.parse(tomllib.loads(toml))
    if hat:
        remarks.append("wire pca9685.oe, as no Donkeycar has it; see the top of the profile")
    remarks.append(
        "no myconfig.py has limit, esc_loss_s and reverse: measure them with the wheels in the "
        "air, and calibrate the pulses, because no two chips have the same clock"
    )
    return toml, tuple(remarks)


def _mapping(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the dictionary PWM_STEERING_THROTTLE."""
    pins = found.get(PINS, {})
    if not isinstance(pins, dict):
        raise ConfigError(f"{PINS} = {pins!r}: expected a dictionary")
    places = {"PWM_STEERING_PIN": "PCA9685.1:40.1", "PWM_THROTTLE_PIN": "PCA9685.1:40.0"}
    return {**places, **pins}


def _output(found: Mapping[str, Any], use: str) -> Output:
    """Return the output of `use`, STEERING or THROTTLE."""
    if found[TRAIN] == "I2C_SERVO":
        if found["PCA9685_I2C_BUSNUM"] is None:  # Donkeycar then takes the Pi's
            found = {**found, "PCA9685_I2C_BUSNUM": 1}
        keys = f"{use}_CHANNEL", "PCA9685_I2C_BUSNUM", "PCA9685_I2C_ADDR"
        return Output(Pin("PCA9685", *(int(_number(found, key)) for key in keys)), 1.0)
    if found[TRAIN] != PINS:
        raise ConfigError(
            f"{TRAIN} = {found[TRAIN]!r}: expected {PINS} or I2C_SERVO, an ESC and a servo; for "
            "an H-bridge begin with fpvcar profile show mx1508-servo"
        )
    if found.get(f"PWM_{use}_INVERTED"):
        raise ConfigError(f"PWM_{use}_INVERTED = True: expected pulses that are not inverted")
    key = f"PWM_{use}_PIN"
    match = PIN.fullmatch(str(found[key]))
    if not match:
        raise ConfigError(
            f"{key} = {found[key]!r}: expected such as PCA9685.1:40.7, RPI_GPIO.BOARD.33 or "
            "PIGPIO.BCM.18"
        )
    bus, address, channel, maker, scheme, number = match.groups()
    scale = _number(found, f"PWM_{use}_SCALE", 1.0)
    if channel:
        return Output(Pin("PCA9685", int(channel), int(bus), int(address, 16)), scale)
    gpio = int(number) if scheme == "BCM" else GPIO_AT.get(int(number))
    if gpio is None:
        raise ConfigError(f"{key} = {found[key]!r}: pin {number} is no GPIO")
    return Output(Pin(maker, gpio), scale)


def _number(found: Mapping[str, Any], key: str, default: float | None = None) -> float:
    value = found.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e6:
        raise ConfigError(f"{key} = {value!r:.80}: expected a number from 0 to a million")
    return value


def _place(steering: Pin, throttle: Pin) -> dict[str, str]:
    if throttle.maker == "PCA9685":
        return {
            "pca9685.bus": str(throttle.bus),
            "pca9685.address": f"{throttle.address:#x}",
            "motors.drive.channel": str(throttle.number),
            "motors.steer.channel": str(steering.number),
        }
    return {
        "pins.pwm": f"[{throttle.number}, {steering.number}]",
        "motors.drive.signal": str(throttle.number),
        "motors.steer.signal": str(steering.number),
    }


def _steering(found: Mapping[str, Any], output: Output) -> dict[str, str]:
    names = "STEERING_LEFT_PWM", "STEERING_RIGHT_PWM"
    left, right = (output.us(_number(found, name)) for name in names)
    if left == right:
        raise ConfigError(f"{' = '.join(names)}: expected two ends of the servo")
    centre_us = _middle("middle of " + " and ".join(names), (left + right) / 2.0, output)
    deg = f"{abs(left - right) / 2.0 / US_PER_DEG:.1f}"
    return {
        "motors.steer.centre_us": f"{centre_us:.0f}",
        "motors.steer.left_deg": deg,
        "motors.steer.right_deg": deg,
        "motors.steer.invert": str(left < right).lower(),
    }


def _middle(name: str, us: float, output: Output) -> float:
    low, high = MIDDLE_US
    if not low <= us <= high:
        maker, limits = output.pin.maker, f"{low:.0f} to {high:.0f}"
        raise ConfigError(
            f"{name}: {us:.0f} us, as {maker} sends {HZ[maker]} Hz: expected {limits}"
        )
    return us


def _throttle(found: Mapping[str, Any], output: Output, remarks: list[str]) -> dict[str, str]:
    """Return the pulses of the ESC. A reverse pulse that is neutral means no reverse."""
    names = ("STOPPED", "FORWARD", "REVERSE")
    neutral, forward, reverse = (
        output.us(_number(found, f"THROTTLE_{name}_PWM")) for name in names
    )
    _middle("THROTTLE_STOPPED_PWM", neutral, output)
    values = {"motors.drive.neutral_us": f"{neutral:.0f}"}
    if reverse == neutral:
        values["motors.drive.reverse"] = '"forward-only"'
        reverse = neutral - (forward - neutral)
    for name, asked in (("forward", forward), ("reverse", reverse)):
        sent = min(max(asked, END_US[0]), END_US[1])
        values[f"motors.drive.{name}_us"] = f"{sent:.0f}"
        if sent != asked:
            remarks.append(f"{name} was {asked:.0f} us: limited to {sent:.0f} us")
    return values

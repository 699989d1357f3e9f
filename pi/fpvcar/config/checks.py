"""Checks across keys of a profile: clashes of pins, addresses and names."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_type_hints

from msgspec import Struct

from fpvcar.config.base import ConfigError, Gpio, LowGpio
from fpvcar.config.esc import esc_warnings, refuse_esc
from fpvcar.config.motors import (
    HAT_CHANNELS,
    DcMotor,
    HatEsc,
    HatServo,
    L298n,
    MotorHat,
    Motors,
    Mx1508,
    ServoMotor,
)
from fpvcar.config.network import refuse_mqtt
from fpvcar.config.pwm import refuse_kernel_pwm
from fpvcar.config.schema import Battery, Button, Camera, Profile
from fpvcar.config.sensors import Tfmini, Tof
from fpvcar.config.server import refuse_server, server_warnings
from fpvcar.config.servos import channels, refuse_servos

BUTTON_COUNT = (3, 6)
"""Smallest and largest number of buttons that fit a child's page."""
FIXED_PINS = {0: "the EEPROM of a HAT (ID_SD)", 1: "the EEPROM of a HAT (ID_SC)"}
"""Pins that no part may use; pigpiod refuses them, too."""
L298N_LEAST_V, L298N_MOST_V = 7.0, 12.0
"""Supply with which the 5 V regulator of an L298N module works: its jumper is on."""
LOWEST_DOWN = 9
"""Lowest GPIO that is pulled down from the chip's reset on (see LowGpio)."""
BUS_PINS = {(1, 2): "SDA", (1, 3): "SCL"}
"""Pins as (bus, GPIO) of the I2C bus on every Pi."""
HELD_UP = (2, 3)
"""GPIO with 1.8 kΩ to 3.3 V on every board, too strong for the chip's pull-down."""
MOTORS = ("drive", "steer", "left", "right")
TOF_ADDRESS = 0x29
"""Address of every VL53L0X after power-on."""
NAME = re.compile(r"[A-Za-z0-9-]{1,24}")
"""Pattern of a sensor's name, used in topics, metrics and file names."""


def refuse_clashes(profile: Profile) -> None:
    """Raise ConfigError for the first clash."""
    _refuse_other_motors(profile)
    refuse_esc(profile)
    refuse_servos(profile)
    refuse_kernel_pwm(profile)
    refuse_server(profile.server)
    _refuse_shared_pins(profile)
    _refuse_held_up(profile.motors)
    _refuse_like_buttons(profile.buttons)
    _refuse_shared_addresses(profile)
    _refuse_shared_names(profile)
    _refuse_volts_out_of_order(profile.battery)
    _refuse_weak_supply(profile)
    _refuse_slow_rounds(profile)
    _refuse_exposure("camera", profile.camera)
    _refuse_second_camera(profile)
    _refuse_blind_car(profile)
    _refuse_loops(profile)
    refuse_mqtt(profile.mqtt)


def warnings(profile: Profile) -> list[str]:
    """Return warnings about valid but risky settings."""
    low_v, high_v = profile.battery.empty_v, profile.battery.full_v
    jumper = [
        f"motors.{name}: battery.empty_v = {low_v:g}, full_v = {high_v:g}: an L298N module with "
        f"its 5V jumper needs {L298N_LEAST_V:g} V, and bears {L298N_MOST_V:g} V"
        for name, motor in profile.motors.named
        if isinstance(motor, L298n) and not L298N_LEAST_V <= low_v < high_v <= L298N_MOST_V
    ]
    return [*jumper, *esc_warnings(profile), *server_warnings(profile.server)] + [
        f"{place} = {gpio}: GPIO 0 to 8 are pulled up until the program "
        "runs, so the motor may turn at the start; wire 10 kΩ from this input to "
        "ground, or use GPIO 9 to 27"
        for gpio, place in _mx1508_inputs(profile.motors)
        if gpio < LOWEST_DOWN
    ]


def _mx1508_inputs(motors: Motors) -> Iterator[tuple[int, str]]:
    """Yield pins that turn a motor as soon as they are high, for example by a pull-up."""
    for name, motor in motors.named:
        if isinstance(motor, Mx1508):
            yield from used_pins(motor, f"motors.{name}")


def used_pins(value: Any, where: str) -> Iterator[tuple[int, str]]:
    """Yield GPIO and key of all pins in a profile, or in a part of it at `where`."""
    if isinstance(value, Struct):
        hints = get_type_hints(type(value), include_extras=True)
        for key, hint in hints.items():
            inner = getattr(value, key)
            place = f"{where}.{key}" if where else key
            if hint in (Gpio, LowGpio):
                yield inner, place
            elif hint == Gpio | None and inner is not None:
                yield inner, place
            elif hint == tuple[Gpio, ...]:
                for gpio in inner:
                    yield gpio, place
            else:
                yield from used_pins(inner, place)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from used_pins(inner, f"{where}.{key}")


def _reserved_pins(profile: Profile) -> Iterator[tuple[int, str]]:
    """Yield the pins that are occupied by buses and HATs but not named in the profile."""
    yield from FIXED_PINS.items()
    users = {
        sensor.i2c_place[0]: f"sensors.{kind}.{name}"
        for kind, name, sensor in profile.sensors.every()
        if sensor.i2c_place is not None
    }
    if profile.battery.address is not None:
        users[profile.battery.bus] = "battery"
    if profile.motors.on_hat or any(channels(profile)):
        users[profile.pca9685.bus] = "pca9685"
    for (bus, gpio), wire in BUS_PINS.items():
        if bus in users:
            yield gpio, f"{users[bus]} ({wire} of I2C bus {bus})"


def _refuse_like_buttons(buttons: dict[str, Button]) -> None:
    """Refuse more buttons than fit the page, and two that look alike."""
    low, high = BUTTON_COUNT
    if buttons and not low <= len(buttons) <= high:
        raise ConfigError(f"buttons: {len(buttons)} defined; expected {low} to {high}, or none")
    for key in ("colour", "shape"):
        seen: dict[str, str] = {}
        for name, button in buttons.items():
            value, place = getattr(button, key), f"buttons.{name}.{key}"
            if value in seen:
                raise ConfigError(f'{place} = "{value}": already used by {seen[value]}')
            seen[value] = f"buttons.{name}"


def _refuse_shared_pins(profile: Profile) -> None:
    seen = dict(_reserved_pins(profile))
    for gpio, place in used_pins(profile, ""):
        if gpio in seen:
            raise ConfigError(f"{place} = {gpio}: GPIO {gpio} is already used by {seen[gpio]}")
        seen[gpio] = place


def _refuse_held_up(motors: Motors) -> None:
    """Refuse a motor that keeps running when its pin is made an input to stop it."""
    for gpio, place in _mx1508_inputs(motors):
        if gpio in HELD_UP:
            raise ConfigError(
                f"{place} = {gpio}: GPIO 2 and 3 have 1.8 kΩ to 3.3 V on the board, so "
                "the motor could not be stopped; expected GPIO 9 to 27"
            )


def _refuse_shared_addresses(profile: Profile) -> None:
    """Refuse two devices with one address on a bus. Sensors with the same power-on address need
    XSHUT, so that each can be given another address."""
    battery, hat = profile.battery, profile.pca9685
    seen: dict[tuple[int, int], str] = {}
    ports: dict[str, str] = {}
    if profile.motors.on_hat or any(channels(profile)):
        seen[hat.bus, hat.address] = "pca9685"
    together = Counter(tof.bus for tof in profile.sensors.tof.values())
    if battery.address is not None:
        where = battery.bus, battery.address
        if where in seen:
            raise ConfigError(
                f"battery.address = {battery.address:#x}: already used by {seen[where]}"
            )
        seen[where] = "battery"
    for kind, name, sensor in profile.sensors.every():
        place = f"sensors.{kind}.{name}"
        if isinstance(sensor, Tfmini) and sensor.device:
            if sensor.device in ports:
                other = ports[sensor.device]
                raise ConfigError(f'{place}.device = "{sensor.device}": already used by {other}')
            ports[sensor.device] = place
        i2c = sensor.i2c_place
        if i2c is None:
            continue
        if i2c in seen:
            raise ConfigError(f"{place}.address = {i2c[1]:#x}: already used by {seen[i2c]}")
        seen[i2c] = place
        if isinstance(sensor, Tof):
            _refuse_address(place, sensor, together[sensor.bus])


def _refuse_address(place: str, tof: Tof, together: int) -> None:
    """Refuse an address that a VL53L0X cannot get, with so many of them on its bus."""
    if together == 1:
        if tof.power is None and tof.address != TOF_ADDRESS:
            raise ConfigError(
                f"{place}.address = {tof.address:#x}: without power (the GPIO of "
                f"its XSHUT) expected {TOF_ADDRESS:#x}, its power-on address"
            )
        return
    if tof.power is None:
        raise ConfigError(
            f"{place}.power is missing: with {together} VL53L0X on bus "
            f"{tof.bus} expected the GPIO of its XSHUT"
        )
    if tof.address == TOF_ADDRESS:  # both would answer while the next one wakes
        raise ConfigError(
            f"{place}.address = {tof.address:#x}: with {together} VL53L0X "
            f"on bus {tof.bus} expected another one, for example 0x30"
        )


def _refuse_shared_names(profile: Profile) -> None:
    """Refuse two range sensors with one name: the name is their only identification."""
    for name in profile.servos:
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"servos.{name}: expected a name of letters, digits and -, at most 24"
            )
    seen = {"depth": "the depth camera"} if profile.depth.source != "none" else {}
    for kind, name, _ in profile.sensors.every():
        place = f"sensors.{kind}.{name}"
        if not NAME.fullmatch(name):
            raise ConfigError(f"{place}: expected a name of letters, digits and -, at most 24")
        if name in seen:
            raise ConfigError(f"{place}: name already used by {seen[name]}")
        seen[name] = place


def _refuse_volts_out_of_order(battery: Battery) -> None:
    """Refuse voltages out of order, as duties are computed with them."""
    low, high = battery.empty_v, battery.full_v
    if not low < high:
        raise ConfigError(f"battery.empty_v = {low}: expected below full_v = {high}")
    if not low <= battery.nominal_v <= high:
        raise ConfigError(
            f"battery.nominal_v = {battery.nominal_v}: expected {low} to {high}, empty_v to full_v"
        )
    curve = battery.curve
    if curve[:1] != (0.0,) or curve[-1:] != (1.0,) or list(curve) != sorted(curve):
        raise ConfigError(f"battery.curve = {list(curve)}: expected shares that rise from 0 to 1")


def _refuse_weak_supply(profile: Profile) -> None:
    """Refuse a battery that, when empty, is below the least supply of a bridge."""
    low = profile.battery.empty_v
    for name, motor in profile.motors.named:
        if isinstance(motor, DcMotor) and low < motor.least_v:
            raise ConfigError(
                f"battery.empty_v = {low}: expected at least {motor.least_v}, which "
                f"the driver of motors.{name} needs"
            )


def _refuse_other_motors(profile: Profile) -> None:
    """Refuse unsupported combinations of motors: one dead man has to stop both."""
    motors = profile.motors
    present = {name for name in MOTORS if getattr(motors, name) is not None}
    if present not in ({"drive", "steer"}, {"left", "right"}):
        names = ", ".join(name for name in MOTORS if name in present) or "none"
        raise ConfigError(f"motors: expected drive and steer, or left and right, not {names}")
    for name, motor in motors.named:
        if name != "steer" and isinstance(motor, ServoMotor):
            raise ConfigError(f"motors.{name}: expected a motor; a servo can only steer")
        if motors.on_hat and not isinstance(motor, MotorHat | HatServo | HatEsc):
            raise ConfigError(
                f"motors.{name} is on GPIO and the other motor on the PCA9685: expected "
                "both on the same, because one dead man's switch stops both"
            )
    first, second = motors.pair
    if isinstance(first, MotorHat) and isinstance(second, MotorHat):
        if first.port == second.port:
            raise ConfigError(f"motors: both use port {first.port} of the HAT; expected two ports")
    if isinstance(second, HatServo):
        if isinstance(first, MotorHat) and second.channel in HAT_CHANNELS[first.port]:
            raise ConfigError(
                f"motors.steer.channel = {second.channel}: already used by M{first.port} "
                "of the HAT; expected 0, 1, 14 or 15"
            )


def _refuse_exposure(place: str, camera: Camera) -> None:
    """Refuse an exposure setting for cameras other than a Pi's own."""
    if camera.exposure != "normal" and camera.source not in ("picamera2", "rpicam"):
        raise ConfigError(
            f'{place}.exposure = "{camera.exposure}": a {camera.source} camera chooses '
            'its own; expected "normal", or source "picamera2" or "rpicam"'
        )


def _refuse_second_camera(profile: Profile) -> None:
    """Refuse more than one further camera, and one that cannot work beside the first."""
    if len(profile.cameras) > 1:
        names = ", ".join(profile.cameras)
        raise ConfigError(f"cameras: {names} defined; expected one beside camera")
    for name, camera in profile.cameras.items():
        place = f"cameras.{name}"
        if not NAME.fullmatch(name):
            raise ConfigError(f"{place}: expected a name of letters, digits and -, at most 24")
        if camera.source == "none" and not camera.command:
            raise ConfigError(f'{place}.source = "none": expected a camera, or no {place}')
        _refuse_exposure(place, camera)
        first, real = profile.camera, camera.source in ("picamera2", "rpicam", "v4l2")
        same = (first.source, first.device, first.command) == (camera.source, camera.device, ())
        if real and same:
            device = f'{place}.device = "{camera.device}"'
            raise ConfigError(f"{device}: already used by camera; expected another device")


def _refuse_slow_rounds(profile: Profile) -> None:
    """Refuse more ultrasound sensors than can measure, in turn, before the guard rejects their
    readings as too old."""
    count, guard = len(profile.sensors.ultrasound), profile.guard
    round_s = profile.sensors.round_s
    if guard.mode != "off" and round_s > guard.stale_s:
        raise ConfigError(
            f"guard.stale_s = {guard.stale_s}: a round of {count} sensors.ultrasound "
            f"takes {round_s:.3f} s; expected at least that, or fewer sensors"
        )


def _refuse_blind_car(profile: Profile) -> None:
    """Refuse a profile that requires a picture to drive, but has no camera."""
    camera = profile.camera
    if camera.source == "none" and not camera.command and profile.gate.blind == "stop":
        raise ConfigError(
            'camera.source = "none": with gate.blind = "stop" the car would never '
            'drive; expected gate.blind = "limit" or "ignore", or a camera'
        )


def _refuse_loops(profile: Profile) -> None:
    """Refuse a rig that monitors only some of the motors' pins."""
    loops, outputs = profile.rig.loops, looped(profile)
    if loops and len(loops) != len(outputs):
        raise ConfigError(
            f"rig.loops: {len(loops)} inputs; expected {len(outputs)}, one for each of "
            f"{', '.join(outputs)}, or none"
        )


def looped(profile: Profile) -> tuple[str, ...]:
    """Return the outputs that a rig monitors: the motors' pins, and an ESC's on a PCA9685."""
    esc = profile.motors.esc
    chip = (f"output {esc.channel} of the PCA9685",) if isinstance(esc, HatEsc) else ()
    return (*chip, *(f"GPIO {gpio}" for gpio in profile.motor_pins()))

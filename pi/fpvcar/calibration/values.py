"""Values of a profile that calibration may set, and a profile with them in it. Pure.

A value is named as in the profile: "motors.drive.dead_band".
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from fpvcar.config import (
    ConfigError,
    DcMotor,
    EscMotor,
    Motors,
    Profile,
    Section,
    ServoMotor,
    profiles,
)

Value = bool | float | tuple[float, ...]
Values = Mapping[str, Value]
MOST_OFFSET_M = 0.15
"""Largest offset of a range sensor that calibration keeps. With a larger one the guard would let
the car touch an obstacle, because its default `stop_m` is the same distance."""
SPEED = "guard.top_mps"
"""Value that makes the guard's figures those of this car."""
GONE = "no longer in the profile"


class Setting(NamedTuple):
    """Value that can be set: the current one, and its bounds, if any."""

    value: Value
    least: float | None = None
    most: float | None = None


def settings(profile: Profile) -> dict[str, Setting]:
    """Return all values of this car that calibration may set."""
    return dict(_settings(profile))


def _settings(profile: Profile) -> Iterator[tuple[str, Setting]]:
    motors = profile.motors
    for name, motor in zip(motors.names, motors.pair, strict=True):
        keys: tuple[str, ...] = ("invert", "trim")
        if isinstance(motor, DcMotor):
            keys = ("invert", "dead_band", "trim")
        elif isinstance(motor, ServoMotor):
            keys = ("invert", "trim", "centre_us", "left_deg", "right_deg")
        elif isinstance(motor, EscMotor):
            keys = ("invert", "trim", "neutral_us", "dead_band_us")
        yield from _of(motor, f"motors.{name}", keys)
    if motors.differential:
        yield from _of(motors, "motors", ("turn", "balance"))
    yield from _of(profile.guard, "guard", ("top_mps",))
    yield from _of(profile.speeds, "speeds", ("least_mps", "small_child_mps", "child_mps"))
    if profile.battery.address is not None:
        yield from _of(profile.battery, "battery", ("full_v", "nominal_v", "empty_v", "curve"))
    for kind, name, sensor in profile.sensors.every():
        yield from _of(sensor, f"sensors.{kind}.{name}", ("offset_m",))


def _of(section: Section, place: str, keys: tuple[str, ...]) -> Iterator[tuple[str, Setting]]:
    hints = get_type_hints(type(section), include_extras=True)
    for key in keys:
        meta = Meta()
        if get_origin(hints[key]) is Annotated:
            meta = next(hint for hint in get_args(hints[key]) if isinstance(hint, Meta))
        least = meta.ge if meta.gt is None else meta.gt
        yield (f"{place}.{key}", Setting(getattr(section, key), least, meta.le))


def overridden(profile: Profile, values: Values) -> Profile:
    """Return the profile with these values. Raises ConfigError for a key that calibration cannot
    set, a value beyond its bounds, or values that clash."""
    if not values:
        return profile
    allowed, raw = settings(profile), msgspec.to_builtins(profile)
    for key, value in values.items():
        if key not in allowed:
            raise ConfigError(f"{key}: not a calibrated value of this car")
        *path, last = key.split(".")
        if last == "offset_m" and not isinstance(value, tuple):
            _refuse_offset(key, value, MOST_OFFSET_M)
        place: dict[str, Any] = raw
        for name in path:
            place = place[name]
        place[last] = value
    if SPEED in values:
        raw["guard"]["measured"] = True
    tuned = profiles.parse(raw)
    if tuned.battery.empty_v != profile.battery.empty_v:
        battery = msgspec.structs.replace(tuned.battery, floor_v=profile.battery.lowest_v)
        tuned = msgspec.structs.replace(tuned, battery=battery)
    if (own := profile.motors.esc) is not None and (esc := tuned.motors.esc) is not None:
        own.refuse_pulses(esc.neutral_us, esc.dead_band_us)
    return _narrowed(profile, tuned)


def _refuse_offset(key: str, offset_m: float, most_m: float) -> None:
    if abs(offset_m) > most_m:
        raise ConfigError(
            f"{key} = {offset_m:g}: expected at most {most_m:g} either way; with "
            "a larger error the sensor does not see the wall or is broken"
        )


def _narrowed(own: Profile, tuned: Profile) -> Profile:
    """Limit a servo's ends to those of its own profile, whatever its centre is: `wheels` owns
    its pin and uses only the profile's ends."""
    own_servo, servo = own.motors.pair[1], tuned.motors.pair[1]
    if not isinstance(own_servo, ServoMotor) or not isinstance(servo, ServoMotor):
        return tuned
    left_deg = servo.deg(own_servo.pulse_us(1.0))
    right_deg = -servo.deg(own_servo.pulse_us(-1.0))
    if servo.invert != own_servo.invert:
        left_deg, right_deg = -right_deg, -left_deg
    narrow = msgspec.structs.replace(
        servo,
        left_deg=min(servo.left_deg, max(0.0, round(left_deg, 2))),
        right_deg=min(servo.right_deg, max(0.0, round(right_deg, 2))),
    )
    motors = msgspec.structs.replace(tuned.motors, steer=narrow)
    return msgspec.structs.replace(tuned, motors=motors)


def with_new(profile: Profile, holding: Values, new: Values) -> Profile:
    """Return the profile with the held values and exactly the new ones. Raises ConfigError."""
    tuned = overridden(profile, {**holding, **new})
    now = settings(tuned)
    for key, value in new.items():
        if now[key].value != value:
            raise ConfigError(
                f"{key} = {value:g}: expected at most {now[key].value:g}, the limit "
                "of the servo's pulse in the profile; raise it there, then restart"
            )
    return tuned


def differing(own: Profile, tuned: Profile) -> dict[str, Value]:
    """Return the values that differ from the own profile, and a speed newly measured, even if
    it is the same."""
    before, measured = settings(own), tuned.guard.measured and not own.guard.measured
    return {
        key: setting.value
        for key, setting in settings(tuned).items()
        if setting != before[key] or (measured and key == SPEED)
    }


class Fit(NamedTuple):
    """Calibrated values that fit a profile; those left out, each with its reason."""

    values: dict[str, Value]
    dropped: dict[str, str]


def fitting(profile: Profile, values: Values) -> Fit:
    """Keep the values that fit this profile, which may have been edited since.

    If they clash they are added one by one, again until no further one fits, because voltages fit
    in one order only. A value that clashes is left out alone.
    """
    allowed = settings(profile)
    dropped = {key: GONE for key in values if key not in allowed}
    waiting = {key: values[key] for key in allowed if key in values}
    held: dict[str, Value] = {}
    try:
        overridden(profile, waiting)
        return Fit(waiting, dropped)
    except ConfigError:
        pass
    while waiting:
        refused: dict[str, str] = {}
        for key, value in waiting.items():
            try:
                overridden(profile, {**held, key: value})
            except ConfigError as fault:
                refused[key] = str(fault)
            else:
                held[key] = value
        if len(refused) == len(waiting):
            return Fit(held, dropped | refused)
        waiting = {key: waiting[key] for key in refused}
    return Fit(held, dropped)


def in_doubt(motors: Motors, fitted: Fit) -> tuple[str, ...]:
    """Return the names of the motors that have lost their calibrated direction.

    If the direction belonged to a motor that this car no longer has, every motor without a
    calibrated direction is in doubt.
    """
    lost = {key.split(".")[1] for key in fitted.dropped if key.endswith(".invert")}
    return tuple(
        name
        for name in motors.names
        if name in lost or (lost - {*motors.names} and f"motors.{name}.invert" not in fitted.values)
    )

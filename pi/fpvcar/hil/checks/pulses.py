"""Pulse checks: those of an ESC and of a servo that does not steer, while a page drives the car.

Each is read on its pin of `rig.loops`, or on `rig.servo`.
"""

import statistics
import time

from fpvcar.config import AimServo, EscMotor, HatEsc, Profile
from fpvcar.devices.motors.esc import AWAKE_S, pulse_of
from fpvcar.hil.checks.pins import SETTLE_S, WHEEL, listened
from fpvcar.hil.driver import Driver
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.pin_recorder import Pulses
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, CheckFailed, MissingPart

STATES_S, TURNS_S = 0.3, 30.0
"""Time for which the car reports one angle once a servo stands, and limit of a turn."""
SERVO_HZ = 50
CLOCK_PERCENT = 0.35
"""Largest error of a PCA9685's clock: 5 us of a neutral pulse."""


def _esc_of(rig: Rig) -> EscMotor:
    esc = rig.profile.motors.esc
    if esc is None:
        raise MissingPart("no ESC (motors.drive)")
    return esc


def _at_rest(rig: Rig) -> Pulses:
    """Return the pulses of an ESC at neutral."""
    _esc_of(rig)
    with rig.driver() as driver, rig.edges(rig.profile.rig.loops[:1]) as edges:
        driver.ready().drive(0.0, 0.0)
        time.sleep(SETTLE_S)
        return listened(edges, rig.profile.rig.loops[0])


def _esc_rate(rig: Rig) -> Measured:
    """Measure how far the rate of an ESC's pulses is off."""
    on_chip = isinstance(_esc_of(rig), HatEsc)
    expected_hz = rig.profile.hat_hz() if on_chip else SERVO_HZ
    return Measured(100.0 * abs(_at_rest(rig).hz / expected_hz - 1.0))


def _chip_clock(rig: Rig) -> Measured:
    """Measure the clock of a PCA9685 by the width of an ESC's neutral pulses. Raises CheckFailed
    with the line of the profile that corrects it."""
    esc, hat = _esc_of(rig), rig.profile.pca9685
    if not isinstance(esc, HatEsc):
        raise MissingPart("no ESC on a PCA9685 (hat-esc)")
    width_us = statistics.median(_at_rest(rig).widths_us)
    clock = hat.clock * esc.neutral_us / width_us
    off_percent = 100.0 * abs(clock / hat.clock - 1.0)
    if off_percent > CLOCK_PERCENT:
        raise CheckFailed(
            f"neutral is {width_us:g} us long, {esc.neutral_us:g} in the profile; set "
            f"pca9685.clock = {clock:.3f}, restart, and measure again"
        )
    return Measured(off_percent)


def _esc(rig: Rig) -> Measured:
    """Measure how far the widths of an ESC's pulses are off: at the start, at throttle, after a
    stop."""
    esc, loop = _esc_of(rig), rig.profile.rig.loops[0]
    off_us: list[float] = []
    with rig.driver() as driver, rig.edges((loop,)) as edges:
        driver.ready()
        for throttle in (0.0, WHEEL, 0.0):
            driver.drive(throttle, 0.0)
            rises_s = esc.arm_s + AWAKE_S + 1.0 / esc.slew_per_s if throttle else 0.0
            time.sleep(SETTLE_S + rises_s)
            expected_us = pulse_of(esc, throttle * esc.top * (-1 if esc.invert else 1))
            widths = listened(edges, loop).widths_us
            off_us += [abs(width_us - expected_us) for width_us in widths]
    return Measured(max(off_us))


def _first_servo(profile: Profile) -> tuple[str, AimServo]:
    return next(iter(profile.servos.items()))


def _turned(driver: Driver, name: str, deg: float) -> float:
    """Turn a servo towards an angle and wait until it stands; return its angle by the car."""

    def now_deg() -> float:
        return float(driver.state["parts"]["servos"]["servos"][name]["deg"])

    driver.say(kind="look", to={name: deg}, seen=driver.seen)
    last = now_deg()
    time.sleep(STATES_S)
    end_s = time.monotonic() + TURNS_S
    while (deg := now_deg()) != last:
        if time.monotonic() > end_s:
            raise CheckFailed(f"servo {name} still turns after {TURNS_S:g} s: {deg:g} degrees")
        last = deg
        time.sleep(STATES_S)
    return last


def _servo_angles(rig: Rig) -> Measured:
    """Measure how far the widths of a servo's pulses are off: at rest, at both limits when asked
    to go beyond, and at rest again."""
    name, servo = _first_servo(rig.profile)
    assert rig.profile.rig.servo is not None
    off_us: list[float] = []
    with rig.driver() as driver, rig.edges((rig.profile.rig.servo,)) as edges:
        driver.ready()
        wanted = (servo.rest_deg, servo.most_deg, servo.least_deg, servo.rest_deg)
        for asked, expected in zip(
            (servo.rest_deg, 180, -180, servo.rest_deg), wanted, strict=True
        ):
            _turned(driver, name, asked)
            time.sleep(SETTLE_S)
            for width_us in listened(edges, rig.profile.rig.servo).widths_us:
                off_us.append(abs(width_us - servo.pulse_us(expected)))
    return Measured(max(off_us))


def _servo_speed(rig: Rig) -> Measured:
    """Measure the speed of a servo between its limits by its pulses, as a share of the limit."""
    name, servo = _first_servo(rig.profile)
    gpio = rig.profile.rig.servo
    assert gpio is not None
    turns_s = (servo.most_deg - servo.least_deg) / servo.speed_deg_s
    with rig.driver() as driver, rig.edges((gpio,)) as edges:
        driver.ready()
        _turned(driver, name, servo.least_deg)
        edges.read(0.0)
        driver.say(kind="look", to={name: servo.most_deg}, seen=driver.seen)
        widths = listened(edges, gpio, turns_s + 5 * SETTLE_S).widths_us
        _turned(driver, name, servo.rest_deg)
    degrees = [servo.deg(width_us) for width_us in widths]
    ends = servo.least_deg + 1.0, servo.most_deg - 1.0
    moving = [deg for deg in degrees if ends[0] < deg < ends[1]]
    if len(moving) < 3:
        raise CheckFailed(f"servo {name} turned within {len(moving)} pulses: expected a slow turn")
    took_s = (len(moving) - 1) / SERVO_HZ
    return Measured(100.0 * (moving[-1] - moving[0]) / took_s / servo.speed_deg_s)


CHECKS = (
    Check(
        "esc-pulses",
        "pins",
        "An ESC gets neutral, the throttle of the profile, and neutral again.",
        Limit(5.0, "us", "docs/reference/profile.md: neutral_us, forward_us"),
        ("loops",),
        _esc,
    ),
    Check(
        "esc-rate",
        "pins",
        "The pulses of an ESC have the requested rate.",
        Limit(2.0, "%", "docs/reference/profile.md: pca9685.pwm_hz, else 50 Hz"),
        ("loops",),
        _esc_rate,
    ),
    Check(
        "pca9685-clock",
        "pins",
        "The clock of the PCA9685 is that of the profile.",
        Limit(CLOCK_PERCENT, "%", "docs/reference/profile.md: pca9685.clock"),
        ("loops",),
        _chip_clock,
    ),
    Check(
        "servo-angles",
        "pins",
        "A servo that does not steer rests, and keeps its limits when asked to go beyond.",
        Limit(5.0, "us", "docs/reference/profile.md: rest_deg, least_deg, most_deg"),
        ("servo",),
        _servo_angles,
    ),
    Check(
        "servo-speed",
        "pins",
        "A servo that does not steer keeps its largest speed.",
        Limit(110.0, "%", "docs/reference/profile.md: speed_deg_s; a late step is caught up"),
        ("servo",),
        _servo_speed,
    ),
)

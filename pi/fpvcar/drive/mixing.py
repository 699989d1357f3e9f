"""Setpoint -> duties: trim, slew, dead band, voltage limit, direction. Pure.

The order, for each motor:

    wish -1..1  -> trim -> slew -> dead band .. voltage limit -> invert -> duty -1..1

Slew is in shares of full throttle, the other steps are in shares of the battery's voltage. A servo
gets trim and slew only, an ESC its own limit too; their drivers do the other steps. With one motor
per side, slew applies to throttle and turn. Each side is trimmed when they are mixed. Finally the
stronger side is slowed by a share of its voltage, so that the car runs straight at any throttle.
"""

import math
from typing import NamedTuple

from fpvcar.config import Battery, DcMotor, EscMotor, Motor, Motors, ServoMotor
from fpvcar.wire.wheels import EscPulses

FIRST_STEP = 0.02
"""First step of a motor from rest: just over its dead band."""
LONGEST_STEP_S = 0.1
"""Limit of the elapsed time that counts: during a longer gap there was no steering."""


class Slew(NamedTuple):
    """State of `mix`: drive and steering at the time `at_s`."""

    drive: float = 0.0
    steer: float = 0.0
    at_s: float = 0.0


def mix(
    throttle: float, steer: float, motors: Motors, volts: float, last_slew: Slew, now_s: float
) -> tuple[tuple[float, ...], Slew]:
    """Return the duties (drive, steering; or left, right) for a setpoint in -1..1, and the new
    state.

    `volts` is the battery's voltage (see `supply_v`). Zero stays zero.
    """
    elapsed_s = min(max(now_s - last_slew.at_s, 0.0), LONGEST_STEP_S)
    first, second = motors.pair
    differential = motors.differential
    if not differential:
        throttle, steer = trimmed(throttle, first), trimmed(steer, second)
    slew = Slew(
        slewed(last_slew.drive, throttle, first.slew_per_s * elapsed_s),
        slewed(last_slew.steer, steer, second.slew_per_s * elapsed_s),
        now_s,
    )
    first_share, second_share, slower = slew.drive, slew.steer, 0.0
    if differential:
        sides = by_sides(first_share, second_share, motors.turn)
        first_share, second_share = trimmed(sides[0], first), trimmed(sides[1], second)
        slower = motors.balance
    return (
        duty(first_share, first, volts) * (1.0 - max(slower, 0.0)),
        duty(second_share, second, volts) * (1.0 + min(slower, 0.0)),
    ), slew


def by_sides(throttle: float, steer: float, turn: float) -> tuple[float, float]:
    """Return left and right for a car that turns by different speeds. If one exceeds full
    throttle, both shrink, so that the bend stays the same."""
    left, right = throttle - steer * turn, throttle + steer * turn
    most = max(abs(left), abs(right), 1.0)
    return left / most, right / most


def supply_v(measured_v: float | None, battery: Battery) -> float:
    """Return the supply voltage for the calculation, in V; at least `lowest_v`.

    A wrong reading of the battery cannot put full voltage on a small motor, and no duty exceeds the
    limit of `wheels`, which is computed from the same `lowest_v`.
    """
    if measured_v is None or not measured_v > 0.0:  # NaN too
        measured_v = battery.nominal_v
    return max(measured_v, battery.lowest_v)


def trimmed(value: float, motor: Motor) -> float:
    """Compensate a motor that is stronger in one direction: + favours forward (left)."""
    gain = 1.0 + (motor.trim if value > 0.0 else -motor.trim)
    return min(max(value * gain, -1.0), 1.0)


def slewed(start_share: float, goal: float, most: float) -> float:
    """Step from `start_share` towards `goal`; only growth away from zero is limited.

    A change of direction starts again at zero.
    """
    start = abs(start_share) if start_share * goal > 0.0 else 0.0
    step = most if start else max(most, FIRST_STEP)
    return math.copysign(min(abs(goal), start + step), goal)


def top_duty(motor: Motor, volts: float) -> float:
    """Return the duty at which the motor's mean voltage is its `max_volts`; an ESC's limit."""
    if isinstance(motor, EscMotor):
        return motor.top
    return min(1.0, motor.max_volts / volts) if isinstance(motor, DcMotor) else 1.0


def duty(value: float, motor: Motor, volts: float) -> float:
    """Map 0..1 to the useful duties, from the dead band to the limit."""
    if value == 0.0 or not isinstance(motor, DcMotor | EscMotor):
        return value
    top = top_duty(motor, volts)
    bottom = min(motor.dead_band, top) if isinstance(motor, DcMotor) else 0.0
    size = bottom + (top - bottom) * abs(value)
    return math.copysign(size, -value if motor.invert else value)


def pulses_apart(wheels: Motors, tuned: Motors) -> EscPulses | None:
    """Return the pulses of an ESC as calibration found them, if they differ from those of
    `wheels`."""
    esc, now = wheels.esc, tuned.esc
    if esc is None or now is None:
        return None
    pulses = EscPulses(now.neutral_us, now.dead_band_us)
    return pulses if pulses != (esc.neutral_us, esc.dead_band_us) else None


def servos_apart(wheels: Motors, tuned: Motors) -> tuple[ServoMotor, ServoMotor] | None:
    """Return the servo as `wheels` has it from the profile and as calibration found it, if they
    differ."""
    servo, tuned_servo = wheels.pair[1], tuned.pair[1]
    if isinstance(servo, ServoMotor) and isinstance(tuned_servo, ServoMotor):
        return (servo, tuned_servo) if servo != tuned_servo else None
    return None


def corrected(
    wheels_servo: ServoMotor, tuned: ServoMotor, duties: tuple[float, ...]
) -> tuple[float, ...]:
    """Convert duties for `wheels_servo`, so that it turns as `tuned` would.

    At rest the servo stands in the centre of `wheels_servo`: zero stays zero.
    """
    if not any(duties):
        return duties
    drive, steer = duties
    deg = wheels_servo.deg(tuned.pulse_us(steer))
    most = wheels_servo.left_deg if deg > 0.0 else wheels_servo.right_deg
    return drive, min(max(deg / most, -1.0), 1.0) if most else 0.0

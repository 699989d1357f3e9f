"""Setpoint -> duties: trim, slew, dead band, voltage limit, direction. Pure.

The order, for each motor:

    wish -1..1  -> trim -> slew -> dead band .. voltage limit -> invert -> duty -1..1

Slew counts in shares of full throttle, the rest in shares of the battery's voltage. A
servo takes trim and slew, and knows the rest itself. With a motor a side the slew is
that of throttle and turn; each side is trimmed when they are mixed, and the stronger
side slowed in the end, by a share of its voltage: that is straight at any throttle.
"""

import math
from typing import NamedTuple

from fpvcar.config import Battery, DcMotor, Motor, Motors

FIRST_STEP = 0.02
"""How far a motor may go at once from rest: just over its dead band."""
LONGEST_STEP_S = 0.1
"""More elapsed time than this does not count: nobody steered meanwhile."""


class Slew(NamedTuple):
    """Where drive and steering were at `at_s`; the memory of `mix`."""

    drive: float = 0.0
    steer: float = 0.0
    at_s: float = 0.0


def mix(
    throttle: float, steer: float, motors: Motors, volts: float, before: Slew, now_s: float
) -> tuple[tuple[float, ...], Slew]:
    """The duties (drive, steering; or left, right) for a setpoint in -1..1, and the
    new memory.

    `volts` is what the battery gives (see `supply_v`). Zero stays zero.
    """
    elapsed_s = min(max(now_s - before.at_s, 0.0), LONGEST_STEP_S)
    first, second = motors.pair
    differential = motors.differential
    if not differential:
        throttle, steer = trimmed(throttle, first), trimmed(steer, second)
    after = Slew(
        slewed(before.drive, throttle, first.slew_per_s * elapsed_s),
        slewed(before.steer, steer, second.slew_per_s * elapsed_s),
        now_s,
    )
    one, other, slower = after.drive, after.steer, 0.0
    if differential:
        sides = by_sides(one, other, motors.turn)
        one, other = trimmed(sides[0], first), trimmed(sides[1], second)
        slower = motors.balance
    return (
        duty(one, first, volts) * (1.0 - max(slower, 0.0)),
        duty(other, second, volts) * (1.0 + min(slower, 0.0)),
    ), after


def by_sides(throttle: float, steer: float, turn: float) -> tuple[float, float]:
    """Left and right for a car that turns by them; both shrink if one is beyond full,
    so that the bend stays the same."""
    left, right = throttle - steer * turn, throttle + steer * turn
    most = max(abs(left), abs(right), 1.0)
    return left / most, right / most


def supply_v(measured_v: float | None, battery: Battery) -> float:
    """Return the supply voltage to reckon with, in V: never below `lowest_v`.

    A wrong reading of the battery cannot put full voltage on a small motor, and no
    duty exceeds the limit of `wheels`, which is computed from the same `lowest_v`.
    """
    if measured_v is None or not measured_v > 0.0:  # NaN too
        measured_v = battery.nominal_v
    return max(measured_v, battery.lowest_v)


def trimmed(value: float, motor: Motor) -> float:
    """Evens out a motor that is stronger one way: + favours forward (left)."""
    gain = 1.0 + (motor.trim if value > 0.0 else -motor.trim)
    return min(max(value * gain, -1.0), 1.0)


def slewed(before: float, goal: float, most: float) -> float:
    """Steps from `before` towards `goal`; only growth away from zero is limited.

    A change of direction starts again at zero.
    """
    start = abs(before) if before * goal > 0.0 else 0.0
    step = most if start else max(most, FIRST_STEP)
    return math.copysign(min(abs(goal), start + step), goal)


def top_duty(motor: Motor, volts: float) -> float:
    """The duty at which the motor sees its `max_volts` on the mean."""
    return min(1.0, motor.max_volts / volts) if isinstance(motor, DcMotor) else 1.0


def duty(value: float, motor: Motor, volts: float) -> float:
    """Spreads 0..1 over the useful duties, from the dead band to the limit."""
    if value == 0.0 or not isinstance(motor, DcMotor):
        return value
    top = top_duty(motor, volts)
    bottom = min(motor.dead_band, top)
    size = bottom + (top - bottom) * abs(value)
    return math.copysign(size, -value if motor.invert else value)

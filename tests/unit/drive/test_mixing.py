"""Setpoint to duty: trim, slew, dead band, voltage limit, direction."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.control import Rig
from testkit.profiles import profile_of

from fpvcar import config
from fpvcar.calibration.values import overridden
from fpvcar.config import Battery, Motors, Mx1508, Servo, ServoMotor
from fpvcar.drive import mixing
from fpvcar.drive.mixing import FIRST_STEP, LONGEST_STEP_S, Slew

MOTOR = Mx1508(forward=17, reverse=27, dead_band=0.14, max_volts=3.0, slew_per_s=4.0)
STEER = Mx1508(forward=24, reverse=23, dead_band=0.10, max_volts=3.0)
CAR = Motors(MOTOR, STEER)
SERVO = profile_of("mx1508-servo")
UNIT = st.floats(-1.0, 1.0)


def test_zero_stays_zero() -> None:
    duties, after = mixing.mix(0.0, 0.0, CAR, 7.5, Slew(), 1.0)
    assert duties == (0.0, 0.0)
    assert after == (0.0, 0.0, 1.0)


def test_full_setpoint_gives_the_motors_max_volts() -> None:
    assert mixing.duty(1.0, MOTOR, 7.5) == pytest.approx(3.0 / 7.5)
    assert mixing.duty(-1.0, MOTOR, 6.0) == pytest.approx(-0.5)
    assert mixing.duty(1.0, MOTOR, 2.0) == 1.0


def test_smallest_wish_is_just_over_the_dead_band() -> None:
    assert mixing.duty(1e-9, MOTOR, 7.5) == pytest.approx(0.14)
    assert mixing.duty(-1e-9, MOTOR, 7.5) == pytest.approx(-0.14)


def test_limit_counts_more_than_the_dead_band() -> None:
    weak = Mx1508(forward=17, reverse=27, dead_band=0.9, max_volts=3.0)
    assert mixing.duty(0.1, weak, 7.5) == mixing.duty(1.0, weak, 7.5) == 0.4


def test_esc_gets_shares_of_its_limit() -> None:
    """The dead band of an ESC is in us, and its driver's work."""
    esc = config.Esc(signal=18, limit=0.5, esc_loss_s=0.1)
    assert mixing.top_duty(esc, 7.5) == mixing.duty(1.0, esc, 7.5) == 0.5
    assert mixing.duty(-0.5, esc, 7.5) == -0.25
    slow = config.Esc(signal=18, limit=0.5, esc_loss_s=3.0)
    assert mixing.duty(1.0, slow, 3.0) == 0.3


def test_invert_turns_the_motor_round() -> None:
    turned = Mx1508(forward=17, reverse=27, max_volts=3.0, invert=True)
    assert mixing.duty(1.0, turned, 6.0) == -0.5
    assert mixing.duty(0.0, turned, 6.0) == 0.0


def test_trim_evens_out_the_two_directions() -> None:
    motor = Mx1508(forward=17, reverse=27, trim=0.2)
    assert mixing.trimmed(0.5, motor) == pytest.approx(0.6)
    assert mixing.trimmed(-0.5, motor) == pytest.approx(-0.4)
    assert mixing.trimmed(1.0, motor) == 1.0
    assert mixing.trimmed(0.0, motor) == 0.0
    assert mixing.trimmed(0.05, motor) == pytest.approx(0.06)
    assert mixing.trimmed(-0.05, motor) == pytest.approx(-0.04)
    other = Mx1508(forward=17, reverse=27, trim=-0.2)
    assert mixing.trimmed(-1.0, other) == -1.0


def test_trim_applies_before_slew() -> None:
    drive = Mx1508(forward=17, reverse=27, max_volts=7.5, trim=0.2, slew_per_s=9.0)
    steer = Mx1508(forward=24, reverse=23, max_volts=7.5, trim=-0.2, slew_per_s=9.0)
    before = Slew(at_s=0.0)
    duties, after = mixing.mix(0.5, 0.5, Motors(drive, steer), 7.5, before, 0.1)
    assert duties == pytest.approx((0.6, 0.4))
    assert after == pytest.approx((0.6, 0.4, 0.1))


def test_rise_follows_the_slew_rate() -> None:
    slew = Slew(at_s=10.0)
    for step in range(1, 26):
        _, slew = mixing.mix(1.0, 0.0, CAR, 7.5, slew, 10.0 + step * 0.01)
        assert slew.drive == pytest.approx(min(1.0, step * 0.04))
    assert slew.drive == 1.0


def test_first_step_leaves_the_dead_band_at_once() -> None:
    duties, slew = mixing.mix(1.0, 0.0, CAR, 7.5, Slew(at_s=10.0), 10.0)
    assert slew.drive == FIRST_STEP
    assert duties[0] > MOTOR.dead_band
    again, _ = mixing.mix(1.0, 0.0, CAR, 7.5, slew, 10.0)
    assert again == duties, "no time, no growth"


def test_fall_and_stop_are_at_once() -> None:
    full = Slew(1.0, 1.0, 10.0)
    assert mixing.mix(0.3, 0.0, CAR, 7.5, full, 10.0)[1].drive == 0.3
    assert mixing.mix(0.0, 0.0, CAR, 7.5, full, 10.0)[0] == (0.0, 0.0)


def test_reversal_starts_at_zero() -> None:
    _, slew = mixing.mix(-1.0, 0.0, CAR, 7.5, Slew(1.0, 0.0, 10.0), 10.0)
    assert slew.drive == -FIRST_STEP
    assert mixing.slewed(0.3, -0.2, 0.01) == -FIRST_STEP


def test_long_silence_earns_no_jump() -> None:
    _, slew = mixing.mix(1.0, 0.0, CAR, 7.5, Slew(at_s=0.0), 1000.0)
    assert slew.drive == pytest.approx(4.0 * LONGEST_STEP_S)


def test_clock_that_goes_back_earns_nothing() -> None:
    _, slew = mixing.mix(1.0, 0.0, CAR, 7.5, Slew(0.5, 0.0, 10.0), 9.0)
    assert slew.drive == 0.5


def test_slew_starts_at_rest_and_rises_in_small_steps() -> None:
    assert Slew() == (0.0, 0.0, 0.0)
    assert (FIRST_STEP, LONGEST_STEP_S) == (0.02, 0.1)


def test_supply_v_is_measured_or_nominal_and_not_below_empty() -> None:
    battery = Battery(nominal_v=7.5, empty_v=6.2)
    assert mixing.supply_v(None, battery) == 7.5
    assert mixing.supply_v(8.1, battery) == 8.1
    assert mixing.supply_v(3.0, battery) == 6.2
    assert mixing.supply_v(0.0, battery) == 7.5
    assert mixing.supply_v(0.05, battery) == 6.2
    assert mixing.supply_v(math.nan, battery) == 7.5


@given(st.lists(st.tuples(UNIT, UNIT, st.floats(0.0, 0.3)), max_size=30))
def test_slew_and_duty_bounds_hold_for_any_sequence(
    wishes: list[tuple[float, float, float]],
) -> None:
    slew, now_s = Slew(), 0.0
    for throttle, steer, elapsed_s in wishes:
        now_s += elapsed_s
        before = slew
        duties, slew = mixing.mix(throttle, steer, CAR, 7.5, before, now_s)
        most = max(FIRST_STEP, 4.0 * min(elapsed_s, LONGEST_STEP_S))
        grown = abs(slew.drive) - abs(before.drive)
        if slew.drive * before.drive < 0.0:
            grown = abs(slew.drive)
        assert grown <= most + 1e-9
        for duty, wish, motor in zip(duties, (throttle, steer), (MOTOR, STEER), strict=True):
            assert (duty == 0.0) == (wish == 0.0) and duty * wish >= 0.0
            assert duty == 0.0 or motor.dead_band <= abs(duty) <= 0.4 + 1e-9


# --- other cars ----------------------------------------------------------------


def test_servo_takes_the_setpoint_unchanged() -> None:
    servo = config.Servo(signal=18, invert=True)
    assert mixing.duty(-0.3, servo, 7.5) == -0.3, "it knows its directions itself"
    assert mixing.top_duty(servo, 7.5) == 1.0


@pytest.mark.parametrize(
    ("throttle", "steer", "sides"),
    [
        (1.0, 0.0, (1.0, 1.0)),
        (-0.5, 0.0, (-0.5, -0.5)),
        (0.0, 1.0, (-0.5, 0.5)),
        (0.0, -1.0, (0.5, -0.5)),
        (0.5, 1.0, (0.0, 1.0)),
        (0.0, 0.0, (0.0, 0.0)),
        (1.0, 1.0, (1 / 3, 1.0)),
        (-1.0, 1.0, (-1.0, -1 / 3)),
    ],
)
def test_sides_turn_and_keep_the_curve_when_saturated(
    throttle: float, steer: float, sides: tuple[float, float]
) -> None:
    assert mixing.by_sides(throttle, steer, 0.5) == pytest.approx(sides)


def test_motor_per_side_drives_straight_and_turns() -> None:
    side = config.Mx1508(forward=17, reverse=27, max_volts=7.5)
    weak = config.Mx1508(forward=24, reverse=23, max_volts=7.5, trim=-0.2)
    motors = config.Motors(left=side, right=weak)
    rest = mixing.Slew(at_s=0.0)
    ahead, after = mixing.mix(0.5, 0.0, motors, 7.5, rest, 1.0)
    assert ahead == pytest.approx((0.5, 0.4)) and after.drive == 0.5
    left, _ = mixing.mix(0.0, 0.5, motors, 7.5, rest, 1.0)
    assert left == pytest.approx((-0.25, 0.2))
    assert mixing.mix(0.0, 0.0, motors, 7.5, after, 2.0)[0] == (0.0, 0.0)


@pytest.mark.parametrize("throttle", [0.2, 1.0, -1.0])
def test_balance_slows_the_stronger_side_by_a_share_of_duty(throttle: float) -> None:
    even, _ = mixing.mix(throttle, 0.0, Motors(left=MOTOR, right=MOTOR), 7.5, Slew(), 1)
    for balance in (0.1, -0.1):
        motors = Motors(left=MOTOR, right=MOTOR, balance=balance)
        (left, right), _ = mixing.mix(throttle, 0.0, motors, 7.5, Slew(), 1)
        slow, full = (left, right) if balance > 0.0 else (right, left)
        assert slow == pytest.approx(0.9 * even[0]) and full == even[1]


def test_balance_applies_only_to_side_motors() -> None:
    plain, _ = mixing.mix(0.5, 0.5, CAR, 7.5, Slew(), 1.0)
    odd, _ = mixing.mix(0.5, 0.5, Motors(MOTOR, STEER, balance=0.5), 7.5, Slew(), 1.0)
    assert odd == plain


def test_wheels_makes_the_pulse_that_was_calibrated() -> None:
    tuned = overridden(SERVO, {"motors.steer.centre_us": 1540.0, "motors.steer.left_deg": 20.0})
    mine, other = SERVO.motors.pair[1], tuned.motors.pair[1]
    assert isinstance(mine, ServoMotor) and isinstance(other, ServoMotor)
    for steer in (-1.0, -0.3, 0.0, 0.5, 1.0):
        _, told = mixing.corrected(mine, other, (0.2, steer))
        assert mine.pulse_us(told) == pytest.approx(other.pulse_us(steer))
    assert mixing.corrected(mine, other, (0.0, 0.0)) == (0.0, 0.0)
    rig = Rig(profile=SERVO)
    rig.wish(0.0)
    rig.wish(0.2)
    assert rig.sent[-1][0] > 0.0 and rig.sent[-1][1] == 0.0
    rig.control.tune(tuned)
    assert rig.sent[-1][1] > 0.0 and rig.control.duties[1] == 0.0


def test_servo_duty_is_a_share_of_the_ends_that_wheels_has() -> None:
    own = Servo(signal=18, left_deg=20.0, right_deg=10.0)
    tuned = Servo(signal=18, left_deg=40.0, right_deg=40.0)
    for steer, duty in ((1.0, 1.0), (-1.0, -1.0), (0.25, 0.5), (-0.2, -0.8)):
        assert mixing.corrected(own, tuned, (0.2, steer)) == pytest.approx((0.2, duty))
    for steer, duty in ((0.001, 0.002), (-0.001, -0.004)):
        assert mixing.corrected(own, tuned, (0.2, steer))[1] == pytest.approx(duty)
    fixed = msgspec.structs.replace(own, right_deg=0.0)
    assert mixing.corrected(fixed, tuned, (0.2, -1.0)) == (0.2, 0.0)


def test_only_servos_that_differ_are_corrected() -> None:
    other = Motors(MOTOR, msgspec.structs.replace(STEER, dead_band=0.2))
    servo, tuned = Servo(signal=18), Servo(signal=18, centre_us=1540.0)
    one, two = Motors(MOTOR, servo), Motors(MOTOR, tuned)
    assert mixing.servos_apart(one, two) == (servo, tuned)
    for wheels, car in ((CAR, other), (one, one), (one, CAR), (CAR, one)):
        assert mixing.servos_apart(wheels, car) is None


def test_calibrated_pulses_of_an_esc_are_those_that_differ() -> None:
    own, tuned = (
        profile_of("rc-esc", *lines).motors for lines in ((), ("motors.drive.neutral_us = 1520",))
    )
    assert mixing.pulses_apart(own, tuned) == (1520.0, 40.0)
    for wheels, car in ((own, own), (CAR, tuned), (own, CAR)):
        assert mixing.pulses_apart(wheels, car) is None

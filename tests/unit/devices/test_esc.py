"""Pulses of an ESC: invariants after every step, and each kind of reverse."""

import random
from typing import Any

import pytest
from testkit.pins.fake_pins import FakePins

from fpvcar.config import Esc
from fpvcar.devices.motors.esc import (
    AWAKE_S,
    BRAKE_LEAST,
    GAP_S,
    PAUSE_S,
    TAP_S,
    EscDriver,
    PulseLaw,
    Throttle,
)

STEP_S = 0.02
NEUTRAL_US = 1510.0
KINDS = ("direct", "brake-first", "forward-only")


def esc(**keys: Any) -> Esc:
    values: dict[str, Any] = {"esc_loss_s": 0.1, "limit": 1.0, "reverse": "direct"}
    return Esc(
        signal=18, neutral_us=NEUTRAL_US, forward_us=1900.0, reverse_us=1100.0, **(values | keys)
    )


class Drive:
    """Law whose setpoint is renewed each STEP_S."""

    def __init__(self, motor: Esc) -> None:
        self.motor, self.law, self.now_s = motor, PulseLaw(motor), 100.0

    def hold(self, duty: float, for_s: float) -> list[float]:
        """Hold a duty; return the pulse of each step."""
        pulses = []
        for _ in range(max(1, round(for_s / STEP_S))):
            self.now_s += STEP_S
            self.law.drive(duty, self.now_s)
            pulses.append(self.law.pulse_us)
        return pulses

    def armed(self) -> "Drive":
        self.hold(0.0, self.motor.arm_s + AWAKE_S + 3 * STEP_S)
        assert self.law.state is Throttle.NEUTRAL
        return self


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_random_drive_keeps_each_invariant_at_every_step(kind: str, seed: int) -> None:
    dice, motor = random.Random(seed), esc(reverse=kind, limit=0.5, slew_per_s=2.0)
    law, now_s, last_s, armed_s = PulseLaw(motor), 10.0, -10.0, 0.0
    duty, wish, last_us = 0.0, 0.0, NEUTRAL_US
    ahead_us, back_us = (
        40.0 + 0.5 * (span_us - 40.0)  # dead band, then half of the rest
        for span_us in (1900.0 - NEUTRAL_US, NEUTRAL_US - 1100.0)
    )
    for _ in range(2000):
        now_s += dice.choice((0.0, 0.005, 0.02, 0.04, 0.04, 0.3 if dice.random() < 0.02 else 0.01))
        if dice.random() < 0.1:
            duty = dice.choice((0.0, dice.uniform(-2.0, 2.0)))
        if dice.random() < 0.3:
            law.step(now_s)
        else:
            if now_s - last_s > GAP_S:
                armed_s = now_s + motor.arm_s + AWAKE_S
            law.drive(duty, now_s)
            last_s, wish = now_s, duty
            if duty == 0.0:
                assert law.pulse_us == NEUTRAL_US, "a stop is neutral, at once"
        pulse_us = law.pulse_us
        if now_s < armed_s:
            assert pulse_us == NEUTRAL_US, "throttle before the ESC is armed"
        assert NEUTRAL_US - back_us <= pulse_us <= NEUTRAL_US + ahead_us
        if kind == "forward-only" or wish > 0.0:
            assert pulse_us >= NEUTRAL_US
        if wish < 0.0:
            assert pulse_us <= NEUTRAL_US
        if pulse_us > max(last_us, NEUTRAL_US):
            assert law.state is Throttle.FORWARD
        last_us = pulse_us


def test_full_throttle_reaches_the_end_pulses_and_no_further() -> None:
    drive = Drive(esc()).armed()
    assert drive.hold(5.0, 1.0)[-1] == 1900.0
    drive.hold(0.0, 0.1)
    assert drive.hold(-5.0, 1.0)[-1] == 1100.0


def test_least_throttle_is_just_beyond_the_dead_band() -> None:
    drive = Drive(esc(dead_band_us=40.0)).armed()
    assert drive.hold(0.001, 0.1)[-1] == pytest.approx(NEUTRAL_US + 40.35)


def test_stick_held_while_arming_starts_slowly() -> None:
    drive = Drive(esc(slew_per_s=1.0))
    pulses = drive.hold(1.0, 1.08 + AWAKE_S)
    assert set(pulses[:50]) == {NEUTRAL_US} and NEUTRAL_US < pulses[-1] < NEUTRAL_US + 80.0


def test_gap_of_setpoints_arms_anew() -> None:
    drive = Drive(esc()).armed()
    assert drive.hold(0.5, 0.1)[-1] > NEUTRAL_US
    drive.now_s += GAP_S
    assert set(drive.hold(0.5, 0.98 + AWAKE_S)) == {NEUTRAL_US}
    assert drive.hold(0.5, 0.2)[-1] > NEUTRAL_US


def test_brake_first_has_brake_then_neutral_then_reverse() -> None:
    drive = Drive(esc(reverse="brake-first")).armed()
    drive.hold(0.5, 0.2)
    pulses = drive.hold(-0.4, 1.0)
    paused = pulses.index(NEUTRAL_US)
    reverse = next(at for at in range(paused, len(pulses)) if pulses[at] != NEUTRAL_US)
    assert all(pulse < NEUTRAL_US for pulse in (*pulses[:paused], *pulses[reverse:]))
    assert paused * STEP_S >= TAP_S - 0.001 and (reverse - paused) * STEP_S >= PAUSE_S - 0.001
    assert drive.law.state is Throttle.REVERSE


def test_direct_esc_reverses_at_once_and_waits_for_nothing() -> None:
    drive = Drive(esc()).armed()
    drive.hold(0.5, 0.1)
    assert drive.law.due_s is None, "nothing is due while it drives"
    assert drive.hold(-0.5, 0.02)[0] < NEUTRAL_US - 40.0
    assert drive.law.state is Throttle.REVERSE and drive.law.due_s is None


def test_brake_pulse_is_strong_enough_to_be_noticed() -> None:
    motor = esc(reverse="brake-first")
    pulse_us = Drive(motor).armed().hold(-0.01, 0.04)[-1]
    assert pulse_us == NEUTRAL_US - (40.0 + (410.0 - 40.0) * BRAKE_LEAST)


def test_stop_during_the_brake_is_neutral_at_once() -> None:
    drive = Drive(esc(reverse="brake-first")).armed()
    drive.hold(-0.5, 0.06)
    assert drive.law.state is Throttle.BRAKE
    assert drive.hold(0.0, 0.02) == [NEUTRAL_US] and drive.law.due_s is None


def test_esc_with_limit_and_long_loss_is_capped() -> None:
    drive = Drive(esc(esc_loss_s=2.0)).armed()
    assert drive.hold(1.0, 0.5)[-1] == pytest.approx(NEUTRAL_US + 40.0 + 350.0 * 0.3)


def test_ends_the_other_way_round_mirror_the_pulses() -> None:
    motor = Esc(
        signal=18,
        neutral_us=1500.0,
        forward_us=1100.0,
        reverse_us=1900.0,
        limit=1.0,
        esc_loss_s=0.1,
        reverse="direct",
    )
    assert Drive(motor).armed().hold(0.5, 0.1)[-1] < 1500.0


def test_driver_sends_nothing_before_the_first_zero_and_repeats_each_setpoint() -> None:
    pins = FakePins()
    driver = EscDriver(esc(), pins)
    driver.tick(0.0)
    assert pins.calls == 0 and driver.due_s is None
    for step in range(3):
        driver.drive(0.0, 1.0 + step * STEP_S)
    assert pins.calls == 3 and pins.duty(18) == NEUTRAL_US / 20_000


def test_driver_ends_the_brake_by_itself() -> None:
    pins, now_s = FakePins(), 10.0
    driver = EscDriver(esc(reverse="brake-first"), pins)
    for step in range(70):
        driver.drive(0.0, now_s := 10.0 + step * STEP_S)
    driver.drive(-0.5, now_s)
    assert pins.duty(18) < NEUTRAL_US / 20_000
    assert driver.due_s == pytest.approx(now_s + TAP_S)
    driver.tick(now_s + TAP_S)
    assert pins.duty(18) == NEUTRAL_US / 20_000


# Limits, in figures: a changed constant must fail a test.


@pytest.mark.parametrize(("gap_s", "drives"), [(0.149, True), (0.151, False)])
def test_setpoints_may_pause_for_150_ms(gap_s: float, drives: bool) -> None:
    drive = Drive(esc()).armed()
    drive.hold(0.5, 0.1)
    drive.law.drive(0.5, drive.now_s + gap_s)
    assert (drive.law.pulse_us > NEUTRAL_US) == drives


@pytest.mark.parametrize(("after_s", "armed"), [(1.249, False), (1.25, True)])
def test_arming_lasts_for_the_profile_and_250_ms(after_s: float, armed: bool) -> None:
    law = PulseLaw(esc(arm_s=1.0))
    law.drive(0.5, 10.0)
    law.step(10.0 + after_s)
    assert (law.state is Throttle.FORWARD) == armed
    assert (law.pulse_us > NEUTRAL_US) == armed


def brake_first(at_s: float) -> PulseLaw:
    """Return a law that begins to brake at this time, at half of its reverse."""
    law, now_s = PulseLaw(esc(reverse="brake-first", arm_s=1.0)), at_s - 2.0
    while now_s < at_s - 0.001:
        law.drive(0.0, now_s)
        now_s += STEP_S
    law.drive(-0.5, at_s)
    return law


def test_brake_pulse_and_pause_take_150_ms_each() -> None:
    law = brake_first(0.0)
    for now_s, state, due_s in (
        (0.0, Throttle.BRAKE, 0.15),
        (0.149, Throttle.BRAKE, 0.15),
        (0.15, Throttle.PAUSE, 0.3),
        (0.299, Throttle.PAUSE, 0.3),
        (0.3, Throttle.REVERSE, None),
    ):
        law.step(now_s)
        assert (law.state, law.due_s) == (state, due_s), now_s
        assert (law.pulse_us == NEUTRAL_US) == (state is Throttle.PAUSE)


def test_brake_pulse_is_a_tenth_at_least() -> None:
    law = brake_first(50.0)
    law.drive(-0.01, 50.02)
    assert law.pulse_us == pytest.approx(NEUTRAL_US - (40.0 + 370.0 * 0.1))
    law.drive(-0.12, 50.04)
    assert law.pulse_us == pytest.approx(NEUTRAL_US - (40.0 + 370.0 * 0.12))


def test_slew_counts_100_ms_of_a_late_step_at_most() -> None:
    drive = Drive(esc(slew_per_s=2.0)).armed()
    for step in (1, 2):
        drive.law.drive(1.0, drive.now_s + step * 0.14)
        assert drive.law.pulse_us == pytest.approx(NEUTRAL_US + 40.0 + 350.0 * 2.0 * 0.1 * step)


def test_law_is_neutral_before_its_first_setpoint() -> None:
    assert PulseLaw(esc()).pulse_us == NEUTRAL_US


def test_pause_of_exactly_150_ms_is_no_gap() -> None:
    law = PulseLaw(esc())
    for step in range(100, -1, -1):
        law.drive(0.0, -step * STEP_S)
    law.drive(0.5, 0.15)
    assert law.state is Throttle.FORWARD


def test_clock_that_goes_back_does_not_change_the_pulse() -> None:
    drive = Drive(esc(slew_per_s=1.0)).armed()
    before_us = drive.hold(1.0, 0.2)[-1]
    drive.law.step(drive.now_s - 0.05)
    assert drive.law.pulse_us == before_us

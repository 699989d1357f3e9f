"""Angles of servos: limits and speed hold for any series of wishes."""

import random

import pytest

from fpvcar.config import AimServo
from fpvcar.drive.aiming import STEP_MOST_S, Aim

PAN = AimServo(signal=12, least_deg=-70.0, most_deg=60.0, rest_deg=5.0, speed_deg_s=100.0)


@pytest.mark.parametrize("seed", range(20))
def test_limits_and_speed_hold_for_any_wishes(seed: int) -> None:
    dice = random.Random(seed)
    aim, now_s, before_s, before_deg = Aim(PAN), 10.0, 10.0, PAN.rest_deg
    aim.step(now_s)
    for _ in range(2000):
        now_s += dice.choice((0.0, 0.001, 0.02, 0.05, 3.0))
        wish = dice.randrange(4)
        if wish == 0:
            aim.turn(dice.uniform(-1.5, 1.5))
        elif wish == 1:
            aim.go(dice.uniform(-200.0, 200.0))
        elif wish == 2:
            aim.turn(0.0)
        aim.step(now_s)
        assert PAN.least_deg <= aim.deg <= PAN.most_deg
        passed_s = min(now_s - before_s, STEP_MOST_S)
        assert abs(aim.deg - before_deg) <= PAN.speed_deg_s * passed_s + 1e-9
        before_s, before_deg = now_s, aim.deg


def test_turn_reaches_its_end_and_hold_stays() -> None:
    aim = Aim(PAN)
    aim.step(0.0)
    aim.turn(0.5)
    for tick in range(1, 51):
        aim.step(tick * 0.02)
    assert aim.deg == pytest.approx(5.0 + 50.0) and aim.turning
    for tick in range(51, 101):
        aim.step(tick * 0.02)
    assert aim.deg == 60.0 and not aim.moving
    aim.turn(-1.0)
    aim.step(2.02)
    aim.turn(0.0)
    aim.step(2.04)
    assert aim.deg == pytest.approx(58.0) and not aim.moving


def test_clock_that_goes_back_moves_nothing() -> None:
    aim = Aim(PAN)
    aim.step(10.0)
    aim.go(60.0)
    assert not aim.step(9.0) and aim.deg == 5.0

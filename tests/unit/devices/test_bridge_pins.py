"""Bridges on GPIO, pin by pin; test_bridges.py has the contract of all bridges."""

import msgspec
import pytest
from testkit.pins.fake_pins import FakePins

from fpvcar.config import L298n, Mx1508
from fpvcar.devices.motors.bridge import motor_driver

EN, F, R = 18, 17, 27
MX1508 = Mx1508(forward=F, reverse=R, brake_s=0.2, rest_s=0.03, pwm_hz=800)
COASTS = msgspec.structs.replace(MX1508, brake_s=0.0)
L298N = L298n(enable=EN, forward=F, reverse=R, brake_s=0.2, rest_s=0.03, pwm_hz=800)


@pytest.mark.parametrize(
    ("motor", "off", "with_pwm"),
    [(MX1508, [(F, 0.0), (R, 0.0)], (F, R)), (L298N, [(EN, 0.0), (F, 0.0), (R, 0.0)], (EN,))],
    ids=["mx1508", "l298n, its enable first"],
)
def test_start_turns_every_pin_off(
    motor: Mx1508 | L298n, off: list[tuple[int, float]], with_pwm: tuple[int, ...]
) -> None:
    pins = FakePins()
    for gpio in motor.pins():
        pins.write(gpio, 1)
    pins.history.clear()
    motor_driver(motor, pins)
    assert pins.history == off
    assert pins.frequency_hz == dict.fromkeys(with_pwm, 800)


@pytest.mark.parametrize(
    ("motor", "wishes", "changes"),
    [
        (MX1508, [(0.3, 0.0)], [(F, 0.3)]),
        (MX1508, [(-0.3, 0.0)], [(R, 0.3)]),
        (MX1508, [(0.3, 0.0), (0.0, 1.0)], [(F, 0.3), (F, 0.0), (F, 1.0), (R, 1.0)]),
        (COASTS, [(-0.3, 0.0), (0.0, 1.0)], [(R, 0.3), (R, 0.0)]),
        (MX1508, [(0.3, 0.0), (-0.4, 1.0)], [(F, 0.3), (F, 0.0), (R, 0.4)]),
        (L298N, [(0.3, 0.0), (0.4, 0.02)], [(F, 1.0), (EN, 0.3), (EN, 0.4)]),
        (L298N, [(-0.3, 0.0)], [(R, 1.0), (EN, 0.3)]),
        (
            L298N,
            [(0.3, 0.0), (-0.3, 1.0)],
            [(F, 1.0), (EN, 0.3), (EN, 0.0), (F, 0.0), (R, 1.0), (EN, 0.3)],
        ),
        (
            L298N,
            [(0.3, 0.0), (0.0, 1.0), (0.0, 1.2)],
            [(F, 1.0), (EN, 0.3), (EN, 0.0), (F, 0.0), (EN, 1.0), (EN, 0.0)],
        ),
    ],
)
def test_bridge_changes_its_pins_in_this_order(
    motor: Mx1508 | L298n, wishes: list[tuple[float, float]], changes: list[tuple[int, float]]
) -> None:
    pins = FakePins()
    driver = motor_driver(motor, pins)
    pins.history.clear()
    for duty, now_s in wishes:
        driver.drive(duty, now_s)
    if wishes[-1][0]:
        driver.tick(wishes[-1][1] + motor.rest_s)
    assert pins.history == changes

"""MX1508 bridge, pin by pin; test_bridges.py has the contract of all bridges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.pins.fake_pins import FakePins

from fpvcar.config import Mx1508
from fpvcar.devices.motors.bridge import Drive
from fpvcar.devices.motors.mx1508 import Mx1508Bridge

F, R = 17, 27
MOTOR = Mx1508(forward=F, reverse=R, brake_s=0.2, rest_s=0.03, pwm_hz=800)
COASTS = Mx1508(forward=F, reverse=R, brake_s=0.0)


def made(motor: Mx1508 = MOTOR) -> tuple[Mx1508Bridge, FakePins]:
    pins = FakePins()
    bridge = Mx1508Bridge(motor, pins)
    pins.history.clear()
    return bridge, pins


def state(bridge: Mx1508Bridge) -> Drive:
    return bridge.state


def test_starts_off_whatever_was_on() -> None:
    pins = FakePins()
    pins.write(F, 1)
    bridge = Mx1508Bridge(MOTOR, pins)
    assert (pins.duty(F), pins.duty(R)) == (0.0, 0.0)
    assert pins.frequency_hz == {F: 800, R: 800}
    assert state(bridge) == Drive.OFF and bridge.due_s is None


def test_forward_and_reverse_run_one_input() -> None:
    bridge, pins = made()
    bridge.drive(0.3, 0.0)
    assert pins.history == [(F, 0.3)]
    bridge, pins = made()
    bridge.drive(-0.3, 0.0)
    assert pins.history == [(R, 0.3)]


def test_stop_brakes_then_lets_go() -> None:
    bridge, pins = made()
    bridge.drive(0.3, 0.0)
    bridge.drive(0.0, 1.0)
    assert state(bridge) == Drive.BRAKE
    assert pins.history == [(F, 0.3), (F, 0.0), (F, 1.0), (R, 1.0)]
    bridge.drive(0.0, 1.1)
    assert bridge.due_s == pytest.approx(1.2)
    bridge.tick(1.199)
    assert state(bridge) == Drive.BRAKE
    bridge.tick(1.2)
    assert state(bridge) == Drive.OFF
    assert (pins.duty(F), pins.duty(R)) == (0.0, 0.0)


def test_stop_without_brake_only_lets_go() -> None:
    bridge, pins = made(COASTS)
    bridge.drive(-0.3, 0.0)
    bridge.drive(0.0, 1.0)
    assert pins.history == [(R, 0.3), (R, 0.0)]


def test_reversal_rests_with_both_inputs_low() -> None:
    bridge, pins = made()
    bridge.drive(0.3, 0.0)
    bridge.drive(-0.3, 1.0)
    assert state(bridge) == Drive.OFF and bridge.due_s == pytest.approx(1.03)
    bridge.drive(-0.4, 1.02)
    assert pins.duty(R) == 0.0
    bridge.tick(1.03)
    assert pins.history == [(F, 0.3), (F, 0.0), (R, 0.4)]


STEPS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 1.0, -0.3, -1.0]), st.floats(0.0, 0.3)), max_size=40
)


@given(STEPS, st.sampled_from([MOTOR, COASTS]))
def test_both_inputs_are_on_to_brake_only(steps: list[tuple[float, float]], motor: Mx1508) -> None:
    duties: list[tuple[float, float]] = []
    pins = FakePins(lambda pins: duties.append((pins.duty(F), pins.duty(R))))
    bridge, now_s = Mx1508Bridge(motor, pins), 0.0
    for duty, wait_s in steps:
        bridge.drive(duty, now_s)
        now_s += wait_s
        bridge.tick(now_s)
        both = (pins.duty(F), pins.duty(R))
        assert (bridge.state == Drive.BRAKE) == (both == (1.0, 1.0))
    for before, after in zip(duties, duties[1:], strict=False):
        assert after == (1.0, 1.0) or 0.0 in after, "both inputs on"
        swapped = before[0] and after[1] or before[1] and after[0]
        assert not swapped or (1.0, 1.0) in (before, after), "not by way of off"
    if motor.brake_s == 0.0:
        assert (1.0, 1.0) not in duties

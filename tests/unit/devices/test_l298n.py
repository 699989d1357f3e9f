"""L298N bridge, pin by pin; test_bridges.py has the contract of all bridges."""

from testkit.pins.fake_pins import FakePins

from fpvcar.config import L298n
from fpvcar.devices.motors.l298n import L298nBridge

EN, F, R = 18, 17, 27
MOTOR = L298n(enable=EN, forward=F, reverse=R, brake_s=0.2, rest_s=0.03, pwm_hz=800)


def made() -> tuple[L298nBridge, FakePins]:
    pins = FakePins()
    bridge = L298nBridge(MOTOR, pins)
    pins.history.clear()
    return bridge, pins


def test_start_turns_the_enable_off_first() -> None:
    pins = FakePins()
    for gpio in (F, R, EN):
        pins.write(gpio, 1)
    pins.history.clear()
    L298nBridge(MOTOR, pins)
    assert pins.history == [(EN, 0.0), (F, 0.0), (R, 0.0)]
    assert pins.frequency_hz == {EN: 800}


def test_input_sets_direction_and_enable_sets_speed() -> None:
    bridge, pins = made()
    bridge.drive(0.3, 0.0)
    bridge.drive(0.4, 0.02)
    assert pins.history == [(F, 1.0), (EN, 0.3), (EN, 0.4)]
    bridge, pins = made()
    bridge.drive(-0.3, 0.0)
    assert pins.history == [(R, 1.0), (EN, 0.3)]


def test_inputs_change_while_the_enable_is_off() -> None:
    bridge, pins = made()
    bridge.drive(0.3, 0.0)
    pins.history.clear()
    bridge.drive(-0.3, 1.0)
    bridge.tick(1.03)
    assert pins.history == [(EN, 0.0), (F, 0.0), (R, 1.0), (EN, 0.3)]


def test_brake_uses_the_enable_with_both_inputs_low() -> None:
    bridge, pins = made()
    bridge.drive(0.3, 0.0)
    pins.history.clear()
    bridge.drive(0.0, 1.0)
    assert pins.history == [(EN, 0.0), (F, 0.0), (EN, 1.0)]
    bridge.tick(1.2)
    assert pins.history[3:] == [(EN, 0.0)]

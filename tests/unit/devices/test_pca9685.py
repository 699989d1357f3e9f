"""The PCA9685 over its registers: off first, one frequency, one retry."""

from pathlib import Path

import pytest
from testkit.pins.hat import Wire, hat
from testkit.profiles import profile_of

from fpvbench import soc as chips
from fpvbench.chips.i2c import Bus
from fpvbench.chips.ina219 import battery_monitor
from fpvbench.chips.pca9685 import motor_hat
from fpvbench.world.bridge import Bridge, ServoState, Wiring, hat_pulse_us
from fpvcar.config import HatServo, MotorHat, Motors
from fpvcar.devices.chips.pca9685 import (
    Pca9685,
    all_off,
    end_pulses,
    frequency_hz,
    is_pca9685,
    prescale,
)
from fpvcar.devices.i2c import I2cError
from fpvcar.devices.linux import pins_off
from fpvcar.devices.motors.bridge import motor_driver
from fpvcar.devices.pins import PinsLost

M1, M2 = MotorHat(port=1, brake_s=0.2), MotorHat(port=2, max_volts=6.0)
SERVO = HatServo(channel=15, left_deg=20.0, right_deg=30.0)


@pytest.fixture
def wired(tmp_path: Path) -> tuple[chips.Soc, Wire]:
    return hat(tmp_path)


def duties(soc: chips.Soc) -> list[float]:
    return [soc.hat.duty(one) for one in range(16)]


def test_prescaler_is_that_of_the_data_sheet() -> None:
    assert prescale(200) == 30 and prescale(50) == 121
    assert prescale(1526) == prescale(1600) == 3 and prescale(24) == 253
    assert frequency_hz(3) == pytest.approx(1526, abs=1)
    assert frequency_hz(121) == pytest.approx(50, abs=0.1)


def test_outputs_are_off_before_other_writes(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    before = Pca9685(wire, 1526)
    before.pwm(8, 0.5)
    before.write(10, 1)
    assert duties(soc)[8] == 0.5
    wire.writes.clear()
    Pca9685(wire, 1526)
    assert wire.writes[0] == (0xFD, b"\x10")
    assert not any(duties(soc))


@pytest.mark.parametrize("hz", [50, 1526])
def test_duty_is_a_share_of_the_period(wired: tuple[chips.Soc, Wire], hz: int) -> None:
    soc, wire = wired
    pins = Pca9685(wire, hz)
    assert soc.hat.period_us() == pytest.approx(1e6 / hz, rel=0.01)
    for duty in (0.25, 0.5, 1.0, 0.0):
        pins.pwm(13, duty)
        assert soc.hat.duty(13) == duty
    pins.pwm(13, 1e-9)
    assert soc.hat.duty(13) == 1 / 4096, "never rounded to nothing"
    pins.write(13, 1)
    assert soc.hat.duty(13) == 1.0


def test_two_inputs_change_in_one_transaction(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    pins = Pca9685(wire, 1526)
    wire.writes.clear()
    pins.write_together((10, 9), 1)
    assert len(wire.writes) == 1 and (soc.hat.duty(9), soc.hat.duty(10)) == (1.0, 1.0)
    with pytest.raises(ValueError, match="expected some side by side"):
        pins.write_together((9, 11), 1)


def test_first_error_is_retried_and_second_loses_pins(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    pins = Pca9685(wire, 1526)
    wire.failing = 1
    pins.pwm(8, 0.5)
    assert soc.hat.duty(8) == 0.5
    wire.failing = 2
    with pytest.raises(PinsLost, match="tried twice: .*0x60.*; its supply.*doctor"):
        pins.pwm(8, 0.75)
    assert soc.hat.duty(8) == 0.5, "it does for ever what it was told"


def test_absent_chip_raises_pins_lost(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    soc.hat.broken = 1
    with pytest.raises(PinsLost, match="tried twice"):
        Pca9685(wire, 1526)


def test_motors_drive_brake_and_are_cut_by_one_byte(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    motors = Motors(left=M1, right=M2)
    drivers = [motor_driver(one, Pca9685(wire, 1526)) for one in (M1, M2)]
    wiring = Wiring(motors)
    drivers[0].drive(0.25, 0.0)
    drivers[1].drive(-0.5, 0.0)
    assert wiring.bridges(soc)[:2] == (Bridge(0.25, 0.75, 0.0), Bridge(-0.5, 0.5, 0.0))
    drivers[0].drive(0.0, 1.0)
    assert wiring.bridges(soc).drive == Bridge(0.0, 1.0, 0.0)
    all_off(wire)
    assert wiring.bridges(soc)[:2] == (Bridge(), Bridge())
    drivers[1].drive(-0.5, 1.02)
    assert wiring.bridges(soc).steer == Bridge(-0.5, 0.5, 0.0), "driven again"


def test_servo_has_no_pulse_before_its_first_zero(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    driver = motor_driver(SERVO, Pca9685(wire, 50))
    wiring = Wiring(Motors(drive=M1, steer=SERVO))
    assert wiring.bridges(soc).servo == ServoState(None)
    for steer, deg in ((0.0, 0.0), (1.0, 20.0), (-1.0, -30.0), (0.5, 10.0)):
        driver.drive(steer, 0.0)
        turned = wiring.bridges(soc).servo
        assert turned is not None and turned.angle_rad is not None
        assert turned.angle_rad * 57.29578 == pytest.approx(deg, abs=0.6)


def test_oe_disables_all(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    Pca9685(wire, 1526).write_together((9, 10), 1)
    Pca9685(wire, 1526).write_together((9, 10), 1)
    wiring = Wiring(Motors(left=M1, right=M2), oe=4)
    assert wiring.bridges(soc).drive == Bridge(), "an input is pulled up from outside"
    soc.pin[4].mode, soc.pin[4].out = chips.MODE_OUTPUT, 0
    assert wiring.bridges(soc).drive.brake == 1.0
    soc.pin[4].out = 1
    assert wiring.bridges(soc).drive == Bridge()


# --- the model's own rules -----------------------------------------------------


def test_prescaler_is_written_only_while_asleep(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    assert wire.read(0x00, 1) == b"\x11" and wire.read(0x01, 1) == b"\x04"
    wire.write(0x00, b"\x20")
    wire.write(0xFE, b"\x79")
    assert wire.read(0xFE, 1) == b"\x1e"
    wire.write(0x00, b"\x30")
    wire.write(0xFE, b"\x01")
    assert wire.read(0xFE, 1) == b"\x03", "3 is the least"


def test_sleeping_chip_has_outputs_off_and_restart_set(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    Pca9685(wire, 1526).write(0, 1)
    wire.write(0x00, b"\x30")
    assert not any(duties(soc)) and wire.read(0x00, 1)[0] & 0x80
    wire.write(0x00, b"\xa0")
    assert soc.hat.duty(0) == 1.0 and not wire.read(0x00, 1)[0] & 0x80


def test_missing_registers_are_refused(wired: tuple[chips.Soc, Wire]) -> None:
    with pytest.raises(I2cError):
        wired[1].write(0x46, b"\x00")
    assert wired[1].read(0xFA, 4) == bytes(4), "write only"


@pytest.mark.parametrize("clock", [0.97, 1.0, 1.03])
def test_pulses_have_their_width_on_a_chip_whose_clock_is_off(
    wired: tuple[chips.Soc, Wire], clock: float
) -> None:
    soc, wire = wired
    soc.hat.off_percent = 100.0 * (clock - 1.0)
    pins = Pca9685(wire, 50, clock=clock)
    assert soc.hat.period_us() == pytest.approx(20_000, rel=0.005)
    for pulse_us in (1000.0, 1500.0, 2000.0):
        pins.servo(1, pulse_us)
        assert hat_pulse_us(soc, 1) == pytest.approx(pulse_us, abs=2.6)


@pytest.mark.parametrize("clock", [0.97, 1.03])
def test_neutral_of_a_stop_has_its_width_on_a_chip_whose_clock_is_off(
    wired: tuple[chips.Soc, Wire], clock: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    soc, wire = wired
    soc.hat.off_percent = 100.0 * (clock - 1.0)
    pins, seen = Pca9685(wire, 50, clock=clock), list[float]()
    monkeypatch.setattr("time.sleep", lambda seconds: seen.append(hat_pulse_us(soc, 1)))
    pins.servo(1, 1700.0)
    end_pulses(wire, 1, 1500.0, clock)
    profile = profile_of("rc-esc-hat", f"pca9685.clock = {clock}", "motors.steer.channel = 2")
    (stop,) = profile.stop_chips()
    neutral_us = stop[-1]
    pins.servo(1, 1700.0)
    pins_off.hat_neutral(
        lambda register: wire.read(register, 1)[0],
        lambda register, *data: wire.write(register, bytes(data)),
        1,
        neutral_us,
    )
    first_us, none_us, helper_us = seen[-3:]
    assert none_us == 0.0
    assert (first_us, helper_us) == pytest.approx((1500.0, 1500.0), abs=3.5)


def test_chip_is_told_from_an_ina219_without_a_write(wired: tuple[chips.Soc, Wire]) -> None:
    soc, _ = wired
    bus = Bus(*motor_hat(soc, 0x41), battery_monitor(soc, address=0x40))
    board, meter = Wire(bus, 0x41), Wire(bus, 0x40)
    assert is_pca9685(board) and not is_pca9685(meter)
    assert not any(data for _, data in (*board.writes, *meter.writes))
    Pca9685(board, 50).servo(1, 1500.0)
    assert is_pca9685(board), "also while it makes pulses"
    with pytest.raises(I2cError):
        is_pca9685(Wire(bus, 0x44))


def test_chip_answers_all_call_and_general_reset(wired: tuple[chips.Soc, Wire]) -> None:
    soc, wire = wired
    shared, everybody = Wire(wire.bus, 0x70), Wire(wire.bus, 0)
    shared.write(0x00, b"\x21")
    shared.write(0x06, b"\x00\x10\x00\x00")
    assert soc.hat.duty(0) == 1.0
    with pytest.raises(I2cError):
        everybody.write(0x07, b"")
    everybody.write(0x06, b"")
    assert not any(duties(soc)) and wire.read(0x00, 1) == b"\x11"
    Pca9685(wire, 50)
    with pytest.raises(I2cError):
        shared.write(0xFD, b"\x10")

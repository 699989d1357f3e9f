"""Battery sensor on the model of its chip, and the charge left in the battery."""

import msgspec
import pytest
from testkit.pins.hat import Wire

from fpvbench.chips import ina219 as model
from fpvbench.chips.i2c import Bus
from fpvcar.config import Battery
from fpvcar.devices.chips.ina219 import AFTER_RESET, SETTING, Ina219, Reading, Register
from fpvcar.devices.i2c import I2cError
from fpvcar.sensors.battery import BATTERY_EVERY_S, Gauge


class Car:
    """Battery behind an INA219 of the bench, and a clock that is turned by hand."""

    def __init__(self) -> None:
        self.volts, self.amps, self.now_s = 7.5, 1.23, 5.0
        chip = model.Ina219(lambda: self.volts, lambda: self.amps, clock_s=lambda: self.now_s)
        self.wire = Wire(Bus(chip), 0x40)

    @property
    def config(self) -> int:
        return int.from_bytes(self.wire.read(Register.CONFIG, 2), "big")


@pytest.fixture
def car() -> Car:
    return Car()


def test_setting_is_the_data_sheets() -> None:
    assert SETTING == 0x3F77  # 32 V, 320 mV, 64 samples each, continuous


@pytest.mark.parametrize("amps", [1.23, -0.5])
def test_volts_and_amps(car: Car, amps: float) -> None:
    """A current that charges is negative."""
    sensor = Ina219(car.wire, 0.1)
    assert car.config == SETTING
    car.amps, car.now_s = amps, car.now_s + 0.1
    assert sensor.read() == pytest.approx((7.5, amps), abs=1e-3)


def test_reading_begins_the_next_average(car: Car) -> None:
    sensor = Ina219(car.wire, 0.1)
    assert sensor.read() is None
    car.now_s += 0.1
    assert sensor.read() is not None
    assert car.wire.writes[-1] == (Register.CONFIG, SETTING.to_bytes(2, "big"))
    assert sensor.read() is None, "READY would never fall"
    assert BATTERY_EVERY_S > 2 * 64 * 586e-6, "each look begins it anew"


def test_setting_is_restored_after_brown_out(car: Car) -> None:
    sensor = Ina219(car.wire, 0.1)
    car.wire.write(Register.CONFIG, b"\x80\x00")
    assert car.config == AFTER_RESET
    car.volts, car.now_s = 7.0, car.now_s + 0.1
    reading = sensor.read()
    assert reading and reading.volts == pytest.approx(7.0)
    assert car.config == SETTING


def test_other_chip_is_refused(car: Car, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(car.wire, "read", lambda register, size: b"\x11\x20")
    with pytest.raises(I2cError, match="no INA219: config 0x1120"):
        Ina219(car.wire, 0.1)


def test_absent_chip_raises() -> None:
    with pytest.raises(I2cError):
        Ina219(Wire(Bus(), 0x40), 0.1)


PACK = Battery(full_v=8.4, nominal_v=7.5, empty_v=6.4)


def test_share_goes_by_voltage() -> None:
    assert Gauge(PACK).add(Reading(8.4, 0.1), 1.0).share == pytest.approx(1.0)
    assert Gauge(PACK).add(Reading(7.4, 0.1), 1.0).share == pytest.approx(0.5)
    assert Gauge(PACK).add(Reading(9.0, 0.1), 1.0).share == 1.0
    empty = Gauge(PACK).add(Reading(5.0, 0.1), 1.0)
    assert (empty.share, empty.low, empty.volts) == (0.0, True, 5.0)


def test_low_is_the_last_tenth() -> None:
    assert Gauge(PACK).add(Reading(6.59, 0.0), 1.0).low
    assert not Gauge(PACK).add(Reading(6.61, 0.0), 1.0).low


def test_short_sag_is_not_low_battery() -> None:
    gauge = Gauge(PACK)
    gauge.add(Reading(7.5, 0.2), 0.0)
    sagging = gauge.add(Reading(5.5, 6.0), 0.1)
    assert sagging.volts == 5.5 and not sagging.low and sagging.share > 0.4
    for tenth in range(2, 200):
        sagging = gauge.add(Reading(5.5, 6.0), tenth / 10)
    assert sagging.low


def test_curve_gives_charge_between_empty_and_full() -> None:
    pack = msgspec.structs.replace(PACK, curve=(0.0, 0.1, 1.0))
    volts = (pack.empty_v, (pack.empty_v + pack.full_v) / 2, pack.full_v)
    shares = [Gauge(pack).add(Reading(one, 0.1), 1.0).share for one in volts]
    assert shares == pytest.approx([0.0, 0.1, 1.0])
    quarter = pack.empty_v + (pack.full_v - pack.empty_v) / 4
    assert Gauge(pack).add(Reading(quarter, 0.1), 1.0).share == pytest.approx(0.05)

"""Battery sensor on a register map, and the charge left in the battery."""

import msgspec
import pytest

from fpvcar.config import Battery
from fpvcar.devices.chips.ina219 import AFTER_RESET, SETTING, Ina219, Reading, Register
from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.sensors.battery import BATTERY_EVERY_S, Gauge


class Chip(I2cDevice):
    """Registers of an INA219, from SBOS448 section 8.6."""

    def __init__(self) -> None:
        self.written: list[tuple[int, int]] = []
        self.power_on()

    def power_on(self) -> None:
        self.registers = {0: AFTER_RESET, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0}

    def sense(self, volts: float, shunt_v: float) -> None:
        self.registers[Register.BUS] = round(volts / 4e-3) << 3 | 2  # CNVR
        self.registers[Register.SHUNT] = round(shunt_v / 10e-6) & 0xFFFF

    def read(self, register: int, size: int) -> bytes:
        return self.registers[register].to_bytes(2, "big")[:size]

    def write(self, register: int, data: bytes) -> None:
        value = int.from_bytes(data, "big")
        self.written.append((register, value))
        if register == Register.CONFIG and value & 0x8000:
            self.power_on()
        else:
            self.registers[register] = value


class Gone(Chip):
    """Address without a device behind it."""

    def write(self, register: int, data: bytes) -> None:
        raise I2cError("I2C write failed")


def test_setting_is_the_data_sheets() -> None:
    assert SETTING == 0x3F77  # 32 V, 320 mV, 64 samples each, continuous


def test_volts_and_amps() -> None:
    chip = Chip()
    sensor = Ina219(chip, 0.1)
    assert chip.registers[0] == SETTING
    chip.sense(7.5, 0.123)
    assert sensor.read() == pytest.approx((7.5, 1.23), abs=1e-3)


def test_charging_current_is_negative() -> None:
    chip = Chip()
    sensor = Ina219(chip, 0.1)
    chip.sense(8.4, -0.05)
    reading = sensor.read()
    assert reading and reading.amps == pytest.approx(-0.5)


def test_read_without_new_sample_is_none() -> None:
    chip = Chip()
    sensor = Ina219(chip, 0.1)
    chip.sense(7.5, 0.1)
    chip.registers[Register.BUS] &= ~2
    assert sensor.read() is None


def test_reading_begins_the_next_average() -> None:
    chip = Chip()
    sensor = Ina219(chip, 0.1)
    chip.sense(7.5, 0.1)
    assert sensor.read() is not None
    assert chip.written[-1] == (Register.CONFIG, SETTING), "READY would never fall"
    chip.registers[Register.BUS] &= ~2
    assert sensor.read() is None
    assert BATTERY_EVERY_S > 2 * 64 * 586e-6, "each look begins it anew"


def test_setting_is_restored_after_brown_out() -> None:
    chip = Chip()
    sensor = Ina219(chip, 0.1)
    chip.power_on()
    chip.sense(7.0, 0.0)
    reading = sensor.read()
    assert reading and reading.volts == pytest.approx(7.0)
    assert chip.registers[0] == SETTING


def test_other_chip_is_refused() -> None:
    class Another(Chip):
        def power_on(self) -> None:
            self.registers = {0: 0x1120}

    with pytest.raises(I2cError, match="no INA219: config 0x1120"):
        Ina219(Another(), 0.1)


def test_absent_chip_raises() -> None:
    with pytest.raises(I2cError):
        Ina219(Gone(), 0.1)


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

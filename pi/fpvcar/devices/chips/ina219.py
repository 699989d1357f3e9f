"""INA219: voltage and current of the battery. Texas Instruments SBOS448, section 8.6.

Current is computed from the shunt voltage, so the calibration register is not needed,
and a chip reset by a supply dip cannot report nonsense.
"""

import enum
from typing import NamedTuple

from fpvcar.devices.i2c import I2cDevice, I2cError, Read, Write
from fpvcar.runtime.texts import Phrase

INA219_IDENTITY = Phrase("ina219_identity", "no INA219: config {found}, not {expected}")


class Register(enum.IntEnum):
    """Registers of 16 bits, high byte first (8.6.1)."""

    CONFIG = 0x00  # 8.6.2.1
    SHUNT = 0x01  # 8.6.3.1, signed, 10 uV
    BUS = 0x02  # 8.6.3.2, bits 15..3, 4 mV
    POWER = 0x03  # 8.6.3.3


RESET = 0x8000  # 8.6.2.1, RST
AFTER_RESET = 0x399F
BUS_32_V = 1 << 13  # BRNG
SHUNT_320_MV = 3 << 11  # PG: one eighth
AVERAGE_64 = 0b1110  # BADC, SADC: 64 samples, 34 ms; evens out the motors' PWM
# Both averages take 75 ms at most: 586 us per sample (electrical characteristics).
CONTINUOUS = 0b111  # MODE: shunt and bus
SETTING = BUS_32_V | SHUNT_320_MV | AVERAGE_64 << 7 | AVERAGE_64 << 3 | CONTINUOUS
SHUNT_V_PER_BIT = 10e-6
BUS_V_PER_BIT = 4e-3
BUS_SHIFT = 3
READY = 1 << 1
"""CNVR of BUS: a conversion has ended since CONFIG was written (8.6.3.2)."""
AVERAGE = (
    Read(Register.BUS, 2),
    Read(Register.SHUNT, 2),
    Write(Register.CONFIG, SETTING.to_bytes(2, "big")),
)


class Reading(NamedTuple):
    """Bus voltage and shunt current (positive while discharging)."""

    volts: float
    amps: float


class Ina219:
    """INA219 at one address. Raises I2cError."""

    def __init__(self, device: I2cDevice, shunt_ohm: float) -> None:
        """Reset and configure; reject a chip that does not reset like an INA219."""
        self._device, self._shunt_ohm = device, shunt_ohm
        self._write(Register.CONFIG, RESET)
        config = self._read(Register.CONFIG)
        if config != AFTER_RESET:
            found, expected = f"{config:#06x}", f"{AFTER_RESET:#06x}"
            raise I2cError(INA219_IDENTITY(found=found, expected=expected))
        self._write(Register.CONFIG, SETTING)
        self._average = device.prepared(*AVERAGE)

    def read(self, after_s: float = 0.0) -> Reading | None:
        """Return the last averages, `after_s` from now; None while there is no new one.

        The chip is then configured again. This clears READY, starts the next average and repairs a
        chip reset by a supply dip. Reading again within 75 ms always gives None.
        """
        bus, shunt = self._average(after_s)
        value = int.from_bytes(bus, "big")
        if not value & READY:
            return None
        volts = (value >> BUS_SHIFT) * BUS_V_PER_BIT
        shunt_v = int.from_bytes(shunt, "big", signed=True) * SHUNT_V_PER_BIT
        return Reading(volts, shunt_v / self._shunt_ohm)

    def _read(self, register: Register) -> int:
        return int.from_bytes(self._device.read(register, 2), "big")

    def _write(self, register: Register, value: int) -> None:
        self._device.write(register, value.to_bytes(2, "big"))

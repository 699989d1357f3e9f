"""INA219 of the bench: voltage and current of the battery."""

import math
from collections.abc import Callable

from fpvbench import soc as chip
from fpvbench.chips.i2c import Make


class Ina219:
    """INA219 current and power monitor (TI SBOS448G, tables 2 to 7), big-endian.

    `volts` and `amps` return the values at its pins at the moment of a reading. With a
    clock a conversion takes its time; without one there is always a new conversion.
    """

    CONFIG, SHUNT, BUS, POWER, CURRENT, CALIBRATION = range(6)
    CONFIG_RESET = 0x399F
    SHUNT_LSB_V, BUS_LSB_V = 10e-6, 4e-3
    PGA_RANGE_V = (0.04, 0.08, 0.16, 0.32)
    BUS_RANGE_V = (16.0, 32.0)
    RESET, READY, OVERFLOW = 0x8000, 0x2, 0x1
    CONVERSION_S = (84e-6, 148e-6, 276e-6, 532e-6) * 2 + (
        532e-6,
        1.06e-3,
        2.13e-3,
        4.26e-3,
        8.51e-3,
        17.02e-3,
        34.05e-3,
        68.10e-3,
    )
    """Durations by the four bits of BADC or SADC (table 5)."""

    def __init__(
        self,
        volts: Callable[[], float],
        amps: Callable[[], float],
        shunt_ohm: float = 0.1,
        address: int = 0x40,
        clock_s: Callable[[], float] | None = None,
    ) -> None:
        self.address, self._clock_s = address, clock_s
        self._volts, self._amps, self._shunt_ohm = volts, amps, shunt_ohm
        self._pointer, self._ready = 0, False
        self._reset()

    def _reset(self) -> None:
        self._config, self._calibration = self.CONFIG_RESET, 0
        self._shunt_raw = self._bus_raw = 0
        self._begin()

    def write(self, data: bytes) -> None:
        """Set the register pointer, then the register's two bytes."""
        if not data:
            return
        self._pointer = data[0]
        if len(data) < 3:
            return
        value = int.from_bytes(data[1:3], "big")
        if self._pointer == self.CONFIG:
            if value & self.RESET:
                self._reset()
            else:
                self._config = value & 0x3FFF
                self._begin()
        elif self._pointer == self.CALIBRATION:
            self._calibration = value & 0xFFFE

    def read(self, count: int) -> bytes:
        """Return the register at the pointer, followed by an idle bus (0xFF)."""
        value = self._register(self._pointer).to_bytes(2, "big")
        return (value + b"\xff" * count)[:count]

    def _register(self, pointer: int) -> int:
        self._convert()
        current = _clamp16(self._shunt_raw * self._calibration // 4096)
        power = abs(current[0]) * self._bus_raw // 5000
        overflow = current[1] or power > 0xFFFF
        if pointer == self.CONFIG:
            return self._config
        if pointer == self.SHUNT:
            return self._shunt_raw & 0xFFFF
        if pointer == self.BUS:
            ready = self.READY if self._ready else 0
            return self._bus_raw << 3 | ready | (self.OVERFLOW if overflow else 0)
        if pointer == self.POWER:
            self._ready = False
            return power & 0xFFFF
        if pointer == self.CURRENT:
            return current[0] & 0xFFFF
        return self._calibration if pointer == self.CALIBRATION else 0

    def _begin(self) -> None:
        """Start the first conversion; writing the mode clears CNVR."""
        self._ready, self._due_s = False, -math.inf
        if self._clock_s is not None:
            self._due_s = self._clock_s() + self._takes_s()

    def _takes_s(self) -> float:
        bus_s = self.CONVERSION_S[self._config >> 7 & 0xF]
        shunt_s = self.CONVERSION_S[self._config >> 3 & 0xF]
        return (bus_s if self._config & 2 else 0.0) + (shunt_s if self._config & 1 else 0.0)

    def _convert(self) -> None:
        """Measure the inputs selected by the mode (bit 0 shunt, bit 1 bus)."""
        mode = self._config & 7
        if mode in (0, 4):
            return
        if self._clock_s is not None:
            if self._clock_s() < self._due_s:
                return
            self._due_s = self._clock_s() + self._takes_s()
        if mode & 1:
            limit = self.PGA_RANGE_V[self._config >> 11 & 3]
            shunt_v = self._amps() * self._shunt_ohm
            shunt_v = max(-limit, min(limit, shunt_v))
            self._shunt_raw = round(shunt_v / self.SHUNT_LSB_V)
        if mode & 2:
            limit = self.BUS_RANGE_V[self._config >> 13 & 1]
            bus_v = max(0.0, min(limit, self._volts()))
            self._bus_raw = int(math.floor(bus_v / self.BUS_LSB_V + 0.5))
        self._ready = True


def _clamp16(value: int) -> tuple[int, bool]:
    clamped = max(-0x8000, min(0x7FFF, value))
    return clamped, clamped != value


def device(address: int, shunt_ohm: str = "0.1") -> Make:
    """Return the maker of BUS:ADDRESS:ina219[:SHUNT_OHM]. Raises ValueError."""
    ohm = float(shunt_ohm)
    return lambda soc: [battery_monitor(soc, ohm, address)]


def battery_monitor(soc: chip.Soc, shunt_ohm: float = 0.1, address: int = 0x40) -> Ina219:
    """Return an INA219 in the battery's lead.

    It reads single fields, not the guarded block: each is stored atomically, and a
    world stopped in mid-tick must not block the pin daemon.
    """
    world = soc.world
    return Ina219(lambda: world.battery_v, lambda: world.battery_a, shunt_ohm, address)

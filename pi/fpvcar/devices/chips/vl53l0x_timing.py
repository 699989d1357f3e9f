"""Timing of VL53L0X measurements: ST UM2039 and the API. Pure.

Macro periods are in ns, timeouts in macro clocks.
"""

from typing import NamedTuple

START_US, END_US, TCC_US, DSS_US, MSRC_US = 1910, 960, 590, 690, 660
PRE_RANGE_US, FINAL_RANGE_US = 660, 550
BUDGET_START_US = 1320
"""Start overhead that the API assumes when setting a budget; reading one uses another value."""


def macro_period_ns(vcsel_pclks: int) -> int:
    """Return the length of one macro clock at this VCSEL period (pixel clocks)."""
    return (2304 * vcsel_pclks * 1655 + 500) // 1000


def to_us(mclks: int, vcsel_pclks: int) -> int:
    """Convert macro clocks to microseconds."""
    return (mclks * macro_period_ns(vcsel_pclks) + 500) // 1000


def to_mclks(us: int, vcsel_pclks: int) -> int:
    """Convert microseconds to macro clocks."""
    period_ns = macro_period_ns(vcsel_pclks)
    return (us * 1000 + period_ns // 2) // period_ns


def decode_timeout(encoded: int) -> int:
    """Decode a timeout register to macro clocks: low byte * 2^high byte + 1."""
    return ((encoded & 0xFF) << (encoded >> 8)) + 1


def encode_timeout(mclks: int) -> int:
    """Encode macro clocks as a register word, rounded down. Raises ValueError."""
    if not 1 <= mclks <= 0xFF << 16:
        raise ValueError(f"timeout of {mclks} macro clocks: expected 1 to {0xFF << 16}")
    low, high = mclks - 1, 0
    while low > 0xFF:
        low >>= 1
        high += 1
    return high << 8 | low


class Steps(NamedTuple):
    """Enabled steps of a measurement, with their durations."""

    sequence: int
    msrc_mclks: int
    pre_mclks: int
    final_mclks: int
    pre_pclks: int
    final_pclks: int

    def on(self, bit: int) -> bool:
        """Return True if the bit of SEQUENCE_CONFIG is set."""
        return bool(self.sequence >> bit & 1)

    def before_final_us(self, start_us: int) -> int:
        """Return the duration of all steps before the final range."""
        msrc_us = to_us(self.msrc_mclks, self.pre_pclks)
        total = start_us + END_US + FINAL_RANGE_US
        if self.on(4):
            total += msrc_us + TCC_US
        if self.on(3):
            total += 2 * (msrc_us + DSS_US)
        elif self.on(2):
            total += msrc_us + MSRC_US
        if self.on(6):
            total += to_us(self.pre_mclks, self.pre_pclks) + PRE_RANGE_US
        return total

    def budget_us(self) -> int:
        """Return the duration of one measurement."""
        mclks = self.final_mclks - (self.pre_mclks if self.on(6) else 0)
        return self.before_final_us(START_US) + to_us(mclks, self.final_pclks)

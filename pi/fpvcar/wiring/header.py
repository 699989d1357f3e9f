"""Pin assignment of a Raspberry Pi's 40-pin header, the same since the Model B+.

Raspberry Pi documentation: "GPIO and the 40-pin header".
"""

from typing import NamedTuple

ROWS = 20
GPIO_AT = {
    3: 2,
    5: 3,
    7: 4,
    8: 14,
    10: 15,
    11: 17,
    12: 18,
    13: 27,
    15: 22,
    16: 23,
    18: 24,
    19: 10,
    21: 9,
    22: 25,
    23: 11,
    24: 8,
    26: 7,
    27: 0,
    28: 1,
    29: 5,
    31: 6,
    32: 12,
    33: 13,
    35: 19,
    36: 16,
    37: 26,
    38: 20,
    40: 21,
}
"""Pin -> BCM number. Odd pins are the row towards the board's middle, even ones the row at its
edge; pins 1 and 2 are farthest from the USB sockets."""
SUPPLY_AT = {
    1: "3V3",
    2: "5V",
    4: "5V",
    6: "GND",
    9: "GND",
    14: "GND",
    17: "3V3",
    20: "GND",
    25: "GND",
    30: "GND",
    34: "GND",
    39: "GND",
}
PIN_3V3, PIN_5V, PIN_GND = 1, 2, 6
"""Pins at which a rail for several parts begins."""
USED_BY_THE_IMAGE = {
    7: "SPI (spi=on drives it high)",
    8: "SPI (spi=on drives it high)",
    14: "the serial console (UART)",
    15: "the serial console (UART)",
    18: "sound, if it is on",
    19: "sound, if it is on",
}
"""GPIO that Raspberry Pi OS may use for another purpose."""


class Pin(NamedTuple):
    """Pin of the 40-pin header."""

    number: int
    name: str
    """Name of the pin: "GPIO 17", or "3V3", "5V", "GND"."""


PINS = tuple(
    Pin(number, SUPPLY_AT.get(number) or f"GPIO {GPIO_AT[number]}")
    for number in range(1, 2 * ROWS + 1)
)
PIN_OF = {gpio: number for number, gpio in GPIO_AT.items()}
"""Map from BCM number to pin."""

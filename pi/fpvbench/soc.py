"""System on chip of the bench: pins and world in one shared, mapped file.

It takes the place of the chip's registers. Values stay when their writer dies, as DMA
keeps a PWM running after the death of pigpiod. Each field has one writer:

    field                   written by                          read by
    pin mode, pull, out     pigpiod emulator, pinctrl stand-in  world
    pin pwm                 pigpiod emulator                    world
    pin out, pwm            the line's owner (kernel.py)        world
    pin external, outside   any player of the world (drive)     pigpiod emulator
    world                   world                               camera, I2C models
    hat                     PCA9685 model, pinctrl stand-in     world
    hat broken              any player of the world             PCA9685 model
    hat off_percent         world                               world, rig of hil

Every field is naturally aligned, so stores are atomic. The world's block is guarded by
a sequence number that is odd during a write.
"""

import ctypes
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fpvbench.outside import Outside

MAGIC = 0x46505643  # "FPVC"
VERSION = 5
PINS = 54
QPOS_MAX = 64
RANGES_MAX = 8

MODE_INPUT = 0
MODE_OUTPUT = 1
PULL_OFF, PULL_DOWN, PULL_UP = 0, 1, 2
RESET_UP = frozenset((*range(9), 34, 35, 36, *range(46, 54)))
RESET_OFF = frozenset((28, 29, 44, 45))
"""GPIO with a pull-up, or without a pull, after a reset; the others have a pull-down
(BCM2835 ARM Peripherals, table 6-31)."""
RANGE_SENSORS: tuple[tuple[str, float], ...] = (
    ("front", 0.0),
    ("front_left", 35.0),
    ("front_right", -35.0),
    ("rear", 180.0),
)
"""Entries of `World.range_m`, in order: name, bearing in degrees (positive is left)."""
HAT_OUTPUTS, HAT_STEPS, HAT_FULL = 16, 4096, 0x10
HAT_RESET = {0x00: 0x11, 0x01: 0x04, 0x02: 0xE2, 0x03: 0xE4, 0x04: 0xE8, 0x05: 0xE0, 0xFE: 0x1E}
"""Registers of a PCA9685 that are not 0 after its reset."""
FLOATING = 2
"""Value of `external` while nothing outside drives the pin: its pull decides."""


def nearest_range(bearing_deg: float) -> int:
    """Return the index of RANGE_SENSORS with the nearest bearing."""

    def off_deg(index: int) -> float:
        return abs((RANGE_SENSORS[index][1] - bearing_deg + 180.0) % 360.0 - 180.0)

    return min(range(len(RANGE_SENSORS)), key=off_deg)


class Pin(ctypes.Structure):
    """State of a GPIO. `pwm` is on_us << 32 | period_us, 0 without a PWM."""

    _fields_ = [
        ("mode", ctypes.c_uint8),
        ("pull", ctypes.c_uint8),
        ("out", ctypes.c_uint8),
        ("external", ctypes.c_uint8),
        ("pwm", ctypes.c_uint64),
    ]
    mode: int
    pull: int
    out: int
    external: int
    pwm: int

    def level(self) -> int:
        """Return the level that a reader of the pin sees, apart from a running PWM."""
        if self.mode == MODE_OUTPUT:
            return self.out
        if self.external != FLOATING:
            return self.external
        return 1 if self.pull == PULL_UP else 0

    def duty(self) -> float:
        """Return the share of the time for which the pin is driven high, 0 to 1."""
        pwm = self.pwm
        if self.mode == MODE_INPUT:
            return 0.0
        if pwm:  # by DMA on an output, by the PWM hardware in an alternate function
            return (pwm >> 32) / (pwm & 0xFFFFFFFF)
        return float(self.out) if self.mode == MODE_OUTPUT else 0.0


class World(ctypes.Structure):
    """Last tick of the world. Ranges are metres, infinity for no target."""

    _fields_ = [
        ("sequence", ctypes.c_uint64),
        ("time_ns", ctypes.c_uint64),
        ("tick", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("battery_v", ctypes.c_double),
        ("battery_a", ctypes.c_double),
        ("peak_a", ctypes.c_double),
        ("speed_mps", ctypes.c_double),
        ("x_m", ctypes.c_double),
        ("y_m", ctypes.c_double),
        ("yaw_rad", ctypes.c_double),
        ("contact_mps", ctypes.c_double),
        ("hardest_mps", ctypes.c_double),
        ("ranges", ctypes.c_uint64),
        ("range_m", ctypes.c_double * RANGES_MAX),
        ("pan_rad", ctypes.c_double),
        ("tilt_rad", ctypes.c_double),
        ("nq", ctypes.c_uint64),
        ("qpos", ctypes.c_double * QPOS_MAX),
    ]


class Hat(ctypes.Structure):
    """State of a PCA9685: registers and outputs. It is independent of any daemon."""

    _fields_ = [
        ("registers", ctypes.c_uint8 * 256),
        ("steps", ctypes.c_uint16 * HAT_OUTPUTS),
        ("broken", ctypes.c_uint8),
        ("off_percent", ctypes.c_float),
    ]
    broken: int
    off_percent: float
    """Percentage by which the oscillator is faster than 25 MHz."""

    def reset(self) -> None:
        """Reset as after power on: asleep, all outputs off (table 4 and following)."""
        self.registers[:] = [0] * 256
        for register, value in HAT_RESET.items():
            self.registers[register] = value
        self.all_off()

    def all_off(self) -> None:
        """Switch all outputs off, like one byte to ALL_LED_OFF_H."""
        for output in range(HAT_OUTPUTS):
            self.registers[9 + 4 * output] = HAT_FULL
        self.show()

    def show(self) -> None:
        """Update all outputs from the registers at once."""
        awake = not self.registers[0] & 0x10
        self.steps[:] = [self._steps(output) if awake else 0 for output in range(HAT_OUTPUTS)]

    def duty(self, output: int) -> float:
        """Return the share of the time for which an output is high."""
        steps: int = self.steps[output]
        return steps / HAT_STEPS

    def period_us(self) -> float:
        """Return the period of all outputs, by the prescaler."""
        scale: int = self.registers[0xFE]
        return HAT_STEPS * (scale + 1) / (25.0 + 0.25 * self.off_percent)

    def _steps(self, output: int) -> int:
        on_l, on_h, off_l, off_h = self.registers[6 + 4 * output : 10 + 4 * output]
        if off_h & HAT_FULL:
            return 0
        if on_h & HAT_FULL:
            return HAT_STEPS
        on, off = on_l | (on_h & 0xF) << 8, off_l | (off_h & 0xF) << 8
        steps: int = (off - on) % HAT_STEPS
        return steps


class Soc(ctypes.Structure):
    """Layout of the whole file."""

    _fields_ = [
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("pin", Pin * PINS),
        ("world", World),
        ("outside", Outside),
        ("hat", Hat),
    ]


def create(path: Path) -> None:
    """Create the file as after a reset: all pins inputs, with the chip's pulls."""
    soc = Soc(magic=MAGIC, version=VERSION)
    for gpio, pin in enumerate(soc.pin):
        pin.pull = PULL_UP if gpio in RESET_UP else PULL_DOWN
        pin.pull = PULL_OFF if gpio in RESET_OFF else pin.pull
        pin.external = FLOATING
    soc.hat.reset()
    temporary = path.with_suffix(".new")
    temporary.write_bytes(bytes(soc))
    os.replace(temporary, path)


def attach(path: Path) -> Soc:
    """Map the file. Raises OSError if it is absent, ValueError for another format."""
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if size != ctypes.sizeof(Soc):
            expected = ctypes.sizeof(Soc)
            raise ValueError(f"{path}: {size} bytes, expected {expected}")
        mapped = mmap.mmap(file.fileno(), size)
    soc = Soc.from_buffer(mapped)
    if (soc.magic, soc.version) != (MAGIC, VERSION):
        raise ValueError(f"{path}: not a bench of version {VERSION}")
    return soc


@contextmanager
def writing(world: World) -> Iterator[World]:
    """Guard each write of the world by its only writer."""
    world.sequence += 1
    try:
        yield world
    finally:
        world.sequence += 1


def peek_world(soc: Soc) -> World | None:
    """Return a consistent copy, or None if the world died or was stopped during a write."""
    for _ in range(100):
        sequence = soc.world.sequence
        if sequence % 2 == 0:
            copy = World.from_buffer_copy(soc.world)
            if soc.world.sequence == sequence:
                return copy
        time.sleep(0.0001)
    return None


def read_world(soc: Soc) -> World:
    """Return a consistent copy of the world's block; retry during writes."""
    while True:
        copy = peek_world(soc)
        if copy is not None:
            return copy

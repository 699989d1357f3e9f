"""Runs in the VM: place the function of each pin where a Pi has it, in /dev/gpiomem.

Programs that let go of the pins there (the program of the last resort, wheels) so let go of the
pins of the bench's chip. Import this module before attaching to a chip.
"""

import ctypes
import mmap
from pathlib import Path

from fpvbench import soc
from fpvcar.devices.linux import pins_off

with Path(pins_off.DEVICE).open("r+b", buffering=0) as device:
    memory = mmap.mmap(device.fileno(), mmap.PAGESIZE)
registers = (ctypes.c_uint32 * (mmap.PAGESIZE // 4)).from_buffer(memory)
chip: soc.Soc


def place(pin: soc.Pin) -> tuple[int, int]:
    """Return register and shift of a pin's three bits."""
    behind = ctypes.addressof(pin) - ctypes.addressof(chip.pin)
    gpio = behind // ctypes.sizeof(soc.Pin)
    return gpio // 10, gpio % 10 * 3


def mode(pin: soc.Pin) -> int:
    index, shift = place(pin)
    return registers[index] >> shift & 7


def set_mode(pin: soc.Pin, function: int) -> None:
    index, shift = place(pin)
    registers[index] = registers[index] & ~(7 << shift) | function << shift


def attach(path: Path) -> soc.Soc:
    """Attach to the one chip of this process."""
    global chip
    chip = attach_to_file(path)
    return chip


attach_to_file = soc.attach
soc.attach = attach
soc.Pin.mode = property(mode, set_mode)  # type: ignore[assignment]

"""GPIO lines through the kernel's character device, /dev/gpiochipN.

Structures and numbers: Linux uAPI, gpio.h, version 2 (since Linux 5.10). A line belongs
to the file of its request: closing the file, also by SIGKILL, releases the line.
strict.py describes the state of a released output.

    Chip ---- request(gpios) ----> Lines: one file for all of them
    "already in use" <--- the kernel names the holder
"""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from ctypes import Structure, c_char, c_int32, c_uint32, c_uint64
from fcntl import ioctl
from pathlib import Path

from fpvcar.devices.pins import PinsLost, PinsRefused
from fpvcar.runtime.texts import SAYS, VERBATIM, Phrase, Text, os_reason

GPIO_NONE = Phrase(
    "gpio_none", "no GPIO of a Raspberry Pi (found: {found}); without a Pi: fpvcar bench"
)
GPIO_DENIED = Phrase(
    "gpio_denied", "{path}: not allowed: sudo usermod -aG gpio USER, for the user who runs this"
)

TAKEN = Phrase(
    "gpio_taken",
    "GPIO {gpio} is taken by '{holder}': end that program, or switch that part "
    "off in config.txt, or wire and name another pin",
)

INPUT, OUTPUT = 1 << 2, 1 << 3
BOTH_EDGES = 1 << 4 | 1 << 5
PULL_UP, PULL_DOWN = 1 << 8, 1 << 9
LABELS = ("pinctrl-bcm2835", "pinctrl-bcm2711", "pinctrl-rp1")
"""Chip of the 40-pin header: Zero to 3, 4, 5. Its number is not stable."""
_LEVELS, _DEBOUNCE = 2, 3  # gpio_v2_line_attr_id
VALUES = struct.Struct("=QQ")
"""gpio_v2_line_values: levels, and the mask of their lines."""
EVENT = struct.Struct("=QI36x")
"""gpio_v2_line_event: CLOCK_MONOTONIC in ns, RISING or not; then offset and numbers."""
OFFSET_AT = 12
"""Offset of the line's number in an event."""
EVENTS = 64
"""Size of the kernel's event queue."""
NAME_B, LINES_MAX, ATTRIBUTES_MAX = 32, 64, 10


class _ChipInfo(Structure):
    _fields_ = [("name", c_char * NAME_B), ("label", c_char * NAME_B), ("lines", c_uint32)]
    label: bytes
    lines: int


class _Attribute(Structure):
    _fields_ = [("id", c_uint32), ("padding", c_uint32), ("value", c_uint64)]


class _LineAttribute(Structure):
    _fields_ = [("attribute", _Attribute), ("mask", c_uint64)]


class _Config(Structure):
    _fields_ = [
        ("flags", c_uint64),
        ("count", c_uint32),
        ("padding", c_uint32 * 5),
        ("attributes", _LineAttribute * ATTRIBUTES_MAX),
    ]


class _Request(Structure):
    _fields_ = [
        ("offsets", c_uint32 * LINES_MAX),
        ("consumer", c_char * NAME_B),
        ("config", _Config),
        ("count", c_uint32),
        ("events", c_uint32),
        ("padding", c_uint32 * 5),
        ("fd", c_int32),
    ]
    fd: int


class _LineInfo(Structure):
    _fields_ = [
        ("name", c_char * NAME_B),
        ("consumer", c_char * NAME_B),
        ("offset", c_uint32),
        ("count", c_uint32),
        ("flags", c_uint64),
        ("attributes", _Attribute * ATTRIBUTES_MAX),
        ("padding", c_uint32 * 4),
    ]
    consumer: bytes


def _number(direction: int, number: int, size_b: int) -> int:
    """Return an ioctl number like _IOC() of asm-generic/ioctl.h: 2 reads, 3 writes and reads."""
    return direction << 30 | size_b << 16 | 0xB4 << 8 | number


CHIP_INFO = _number(2, 0x01, ctypes.sizeof(_ChipInfo))
LINE_INFO = _number(3, 0x05, ctypes.sizeof(_LineInfo))
REQUEST = _number(3, 0x07, ctypes.sizeof(_Request))
GET_VALUES, SET_VALUES = (_number(3, n, VALUES.size) for n in (0x0E, 0x0F))


class Lines:
    """Lines of one request, by GPIO. Raises OSError if the chip is gone."""

    def __init__(self, fd: int, gpios: Sequence[int]) -> None:
        self.gpios, self._fd = tuple(gpios), fd
        self._bit = {gpio: 1 << index for index, gpio in enumerate(gpios)}

    def fileno(self) -> int:
        """Return the descriptor; readable when `edges` has data."""
        return self._fd

    def set(self, levels: dict[int, int]) -> None:
        """Set some of these outputs with one call to the kernel."""
        high = mask = 0
        for gpio, level in levels.items():
            bit = self._bit[gpio]
            mask |= bit
            high |= bit if level else 0
        ioctl(self._fd, SET_VALUES, VALUES.pack(high, mask))

    def get(self) -> dict[int, int]:
        """Return the level of each line."""
        mask = (1 << len(self.gpios)) - 1
        bits, _ = VALUES.unpack(ioctl(self._fd, GET_VALUES, VALUES.pack(0, mask)))
        return {gpio: int(bool(bits & bit)) for gpio, bit in self._bit.items()}

    def edges(self) -> list[tuple[int, int, int]]:
        """Return the queued edges as (ns, GPIO, level), once `fileno` is readable."""
        data = os.read(self._fd, EVENT.size * EVENTS)
        return [
            (ns, *struct.unpack_from("=I", data, at * EVENT.size + OFFSET_AT), int(rising == 1))
            for at, (ns, rising) in enumerate(EVENT.iter_unpack(data))
        ]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Chip:
    """Open GPIO chip at /dev/gpiochipN. Raises PinsLost."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except PermissionError:
            raise PinsLost(GPIO_DENIED(path=path)) from None
        except OSError as fault:
            raise PinsLost(SAYS(place=path, reason=os_reason(fault))) from None
        try:
            info = self._info()
        except PinsLost:
            self.close()
            raise
        self.label, self.lines = info.label.decode("ascii", "replace"), info.lines

    def check(self) -> None:
        """Raise PinsLost if the chip is gone."""
        self._info()

    def _info(self) -> _ChipInfo:
        info = _ChipInfo()
        try:
            ioctl(self._fd, CHIP_INFO, info)
        except OSError as fault:
            raise PinsLost(SAYS(place=self._path, reason=os_reason(fault))) from None
        return info

    def request(
        self, gpios: Sequence[int], flags: int, consumer: str, debounce_us: int = 0
    ) -> Lines:
        """Request lines, all or none; outputs are low. Raises PinsRefused with the
        holder of a busy line."""
        for gpio in gpios:
            if gpio >= self.lines:
                raise PinsRefused(
                    f"GPIO {gpio}: {self._path} ({self.label}) has 0 to "
                    f"{self.lines - 1}; is this profile for another board? "
                    "fpvcar profile propose"
                )
        request = _Request(consumer=consumer.encode()[: NAME_B - 1], count=len(gpios))
        request.offsets[: len(gpios)] = gpios
        request.config.flags = flags
        if flags & INPUT:
            request.events = EVENTS
        attribute = (_DEBOUNCE, debounce_us) if debounce_us else (_LEVELS, 0)
        if debounce_us or flags & OUTPUT:
            entry = request.config.attributes[0]
            entry.mask = (1 << len(gpios)) - 1
            entry.attribute.id, entry.attribute.value = attribute
            request.config.count = 1
        try:
            ioctl(self._fd, REQUEST, request)
        except OSError as fault:
            raise PinsRefused(self._refusal(gpios, fault)) from None
        return Lines(request.fd, gpios)

    def _refusal(self, gpios: Sequence[int], fault: OSError) -> Text:
        names = "GPIO " + ", ".join(map(str, gpios))
        if fault.errno != errno.EBUSY:
            return SAYS(place=names, reason=os_reason(fault))
        for gpio in gpios:
            holder = self.holder(gpio)
            if holder:
                return TAKEN(gpio=gpio, holder=holder)
        return VERBATIM(text=f"{names}: taken by a program that has just ended")

    def holder(self, gpio: int) -> str:
        """Return the kernel's name of a line's holder; "" for a free line."""
        info = _LineInfo(offset=gpio)
        ioctl(self._fd, LINE_INFO, info)
        return info.consumer.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the chip; requested lines stay."""
        os.close(self._fd)


def find(devices: Path = Path("/dev")) -> Chip:
    """Return the chip of a Pi's header. Raises PinsLost with a list of the chips found."""
    labels, refusal = [], ""
    for path in sorted(devices.glob("gpiochip*")):
        try:
            chip = Chip(path)
        except PinsLost as fault:
            refusal = refusal or str(fault)
            continue
        if chip.label in LABELS:
            return chip
        labels.append(chip.label)
        chip.close()
    if refusal:
        raise PinsLost(refusal)
    raise PinsLost(GPIO_NONE(found=", ".join(labels) or "no gpiochip"))

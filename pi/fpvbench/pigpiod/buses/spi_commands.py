"""SPI by the chip's own hardware: SPIO, SPIC, SPIR, SPIW, SPIX.

If no device answers, MISO has the level of its pull. If a wire joins MISO and MOSI, MISO repeats
the sent bits.
"""

from dataclasses import dataclass

from fpvbench import soc as chip
from fpvbench.pigpiod.buses.spi_buses import AUXILIARY, MAIN, Bus, Devices
from fpvbench.pigpiod.gpio_commands import Handler
from fpvbench.pigpiod.lines import Lines
from fpvbench.pigpiod.pins import Pins
from fpvbench.pigpiod.protocol import Cmd, Err, Outcome, Request, Wait

SLOTS = 32
BAUD_MIN, BAUD_MAX = 32_000, 125_000_000
FLAGS_MAX = 1 << 22
AUX = 1 << 8
SELECT_HIGH, SELECT_FREE = 2, 5
"""Lowest of the flag bits, one per select: active high; left unused."""
WORD_BITS = 16
"""Lowest of six flag bits: the word's length, on the auxiliary bus."""
COUNT_MAX = 65_535
"""Size of pigpiod's buffer in bytes."""
WAIT_US = 1000
"""Transfer time below which the answer is immediate."""


@dataclass(frozen=True, slots=True)
class SpiHandle:
    """Bus, channel and settings of an open handle."""

    bus: Bus
    channel: int
    baud: int
    flags: int


class SpiCommands:
    """Open handles, and the handlers of commands on them."""

    def __init__(self, pins: Pins, lines: Lines, devices: Devices) -> None:
        self._pins, self._lines, self._devices = pins, lines, devices
        self._handles: dict[int, SpiHandle] = {}
        self._modes: dict[Bus, dict[int, int]] = {}
        """Former modes of the pins of each bus in use."""

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        return {
            Cmd.SPIO: self._open,
            Cmd.SPIC: self._close,
            Cmd.SPIR: self._read,
            Cmd.SPIW: self._write,
            Cmd.SPIX: self._exchange,
        }

    def _open(self, request: Request, now_us: int) -> int:
        channel, baud, flags = request.p1, request.p2, request.word()
        bus = AUXILIARY if flags & AUX else MAIN
        if channel >= len(bus.selects):
            return Err.BAD_SPI_CHANNEL
        if not BAUD_MIN <= baud <= BAUD_MAX:
            return Err.BAD_SPI_SPEED
        if flags > FLAGS_MAX:
            return Err.BAD_FLAGS
        if bus not in self._modes:
            self._take_pins(bus, flags, now_us)
        if len(self._handles) >= SLOTS:
            return Err.NO_HANDLE
        number = next(n for n in range(SLOTS) if n not in self._handles)
        self._handles[number] = SpiHandle(bus, channel, baud, flags)
        return number

    def _close(self, request: Request, now_us: int) -> int:
        opened = self._handles.pop(request.p1, None)
        if opened is None:
            return Err.BAD_HANDLE
        if all(handle.bus != opened.bus for handle in self._handles.values()):
            for gpio, mode in self._modes.pop(opened.bus).items():
                if gpio not in _left_alone(opened.bus, opened.flags):
                    self._pins.set_mode_register(gpio, mode, now_us)
        return 0

    def _read(self, request: Request, now_us: int) -> Outcome:
        return self._transfer(request, bytes(min(request.p2, COUNT_MAX)), now_us)

    def _write(self, request: Request, now_us: int) -> Outcome:
        outcome = self._transfer(request, request.ext, now_us)
        return len(outcome) if isinstance(outcome, bytes) else outcome

    def _exchange(self, request: Request, now_us: int) -> Outcome:
        return self._transfer(request, request.ext, now_us)

    def _take_pins(self, bus: Bus, flags: int, now_us: int) -> None:
        gpios = (*bus.selects, bus.miso, bus.mosi, bus.sclk)
        self._modes[bus] = {gpio: self._pins.mode(gpio) for gpio in gpios}
        for number, gpio in enumerate(bus.selects):
            if gpio in _left_alone(bus, flags):
                continue
            if bus is AUXILIARY:
                idle = int(not flags >> SELECT_HIGH + number & 1)
                self._pins.set_level_register(gpio, idle, now_us)
                self._pins.set_mode_register(gpio, chip.MODE_OUTPUT, now_us)
            else:
                self._pins.set_mode_register(gpio, bus.mode, now_us)
        for gpio in (bus.miso, bus.mosi, bus.sclk):
            self._pins.set_mode_register(gpio, bus.mode, now_us)

    def _transfer(self, request: Request, sent: bytes, now_us: int) -> Outcome:
        opened = self._handles.get(request.p1)
        if opened is None:
            return Err.BAD_HANDLE
        if not sent:
            return 0
        bus, select = opened.bus, opened.bus.selects[opened.channel]
        length_us = len(sent) * 8_000_000 // opened.baud + 1
        active = opened.flags >> SELECT_HIGH + opened.channel & 1
        self._lines.pulse(select, now_us, length_us, active)
        device = self._devices.at(select, (bus.miso, bus.mosi, bus.sclk))
        received = self._unanswered(opened, sent, now_us)
        if device is not None:
            received = device.transfer(sent, self._lines.level(bus.miso, now_us))
        result: int | bytes = len(sent) if request.cmd == Cmd.SPIW else received
        if length_us < WAIT_US:
            return result
        return Wait(now_us + length_us, lambda at_us: result)

    def _unanswered(self, opened: SpiHandle, sent: bytes, now_us: int) -> bytes:
        """Return the bytes read if no device answers."""
        bus = opened.bus
        if self._lines.wired(bus.miso, bus.mosi):
            return sent
        level = self._lines.level(bus.miso, now_us)
        bits = opened.flags >> WORD_BITS & 63
        if bus is MAIN or not 0 < bits <= 32:
            return bytes([0xFF * level]) * len(sent)
        size = 1 if bits <= 8 else 2 if bits <= 16 else 4
        count = len(sent) // size
        word = ((1 << bits) - 1) * level
        return word.to_bytes(size, "little") * count + sent[count * size :]


def _left_alone(bus: Bus, flags: int) -> set[int]:
    """Return the selects that the flags exclude from use."""
    return {gpio for number, gpio in enumerate(bus.selects) if flags >> SELECT_FREE + number & 1}

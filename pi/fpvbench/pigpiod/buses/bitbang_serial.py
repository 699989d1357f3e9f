"""Bit-banged serial reads (SLRO, SLR, SLRC, SLRI) from the edges of the alert thread."""

from collections.abc import Callable, Sequence

from fpvbench.pigpiod.buses.bitbang import Use
from fpvbench.pigpiod.edges.notify import Sample
from fpvbench.pigpiod.edges.watchdogs import Watchdogs
from fpvbench.pigpiod.gpio_commands import Handler
from fpvbench.pigpiod.lines import USER_GPIO
from fpvbench.pigpiod.protocol import Cmd, Err, Request

BAUD_MIN, BAUD_MAX = 50, 250_000
DATA_BITS_MAX = 32
BUFFER = 8192
TIMEOUT = 2
"""Value that stands for a level when the watchdog fires."""


class Receiver:
    """Decoder of characters from edges (waveRxSerial in pigpio.c).

    An edge gives the value of the bits before it. A watchdog ends a character if its last bits
    bring no edge. An inverted receiver decodes these bits as 0, because TIMEOUT is inverted along
    with the levels.
    """

    def __init__(self, baud: int, data_bits: int) -> None:
        self.inverted = 0
        self._bits = data_bits
        self._size = 1 if data_bits <= 8 else 2 if data_bits <= 16 else 4
        self._bit_ns = 1_000_000_000 // baud
        self._timeout_ms = max(1, (data_bits + 2) * self._bit_ns // 1_000_000)
        self._bit: int | None = None
        """Index of the next bit, 0 being the start bit, or None between characters."""
        self._start_us = self._next_ns = self._data = self._level = 0
        self._ring = bytearray(BUFFER)
        self._read_at = self._write_at = 0

    def process(self, level: int, at_us: int) -> int | None:
        """Process an edge or TIMEOUT; return the watchdog's new time in ms, or None to keep it."""
        level ^= self.inverted
        if self._bit is None:
            return self._begin(at_us) if level == 0 else None
        former_level = self._level
        if level != TIMEOUT:
            self._level, former_level = level, int(not level)
        self._take_bits(former_level, at_us - self._start_us)
        if self._bit <= self._bits:
            return None
        self._store()
        if level == 0:
            return self._begin(at_us)
        self._bit = None
        return 0

    def read(self, count: int) -> bytes:
        """Return at most `count` bytes of whole characters, up to the ring's end."""
        if self._write_at >= self._read_at:
            ready = self._write_at - self._read_at
        else:
            ready = BUFFER - self._read_at
        end = self._read_at + min(ready, count) // self._size * self._size
        data = bytes(self._ring[self._read_at : end])
        self._read_at = end % BUFFER
        return data

    def _begin(self, at_us: int) -> int:
        self._bit, self._level, self._start_us = 0, 0, at_us
        self._next_ns = self._bit_ns // 2 + 500
        return self._timeout_ms

    def _take_bits(self, level: int, passed_us: int) -> None:
        """Assign this level to all bits whose middle has passed."""
        assert self._bit is not None
        while self._bit <= self._bits and passed_us > self._next_ns // 1000:
            if self._bit == 0:
                self._data = 0
            elif level:
                self._data |= 1 << self._bit - 1
            self._bit += 1
            self._next_ns += self._bit_ns

    def _store(self) -> None:
        """Store a character in the ring, or drop it if the ring is full."""
        end = self._write_at + self._size
        self._ring[self._write_at : end] = self._data.to_bytes(self._size, "little")
        if end % BUFFER != self._read_at:
            self._write_at = end % BUFFER


class SerialReads:
    """Handlers of SLRO, SLR, SLRC and SLRI, and decoders of the pins that they opened."""

    def __init__(self, uses: dict[int, Use], watchdogs: Watchdogs) -> None:
        self._uses, self._watchdogs = uses, watchdogs
        self._receivers: dict[int, Receiver] = {}
        self.bits = 0
        """Pins to watch for the receivers, a bit each."""
        self.changed: Callable[[int], None] = lambda now_us: None
        """Called with the time when `bits` has changed."""

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        return {
            Cmd.SLRO: self._slro,
            Cmd.SLR: self._slr,
            Cmd.SLRC: self._slrc,
            Cmd.SLRI: self._slri,
        }

    def process(self, start_levels: int, samples: Sequence[Sample], now_us: int) -> None:
        """Pass the changes of a batch to the receivers."""
        last_levels = start_levels
        for time_us, levels in samples:
            self._each(levels ^ last_levels, levels, time_us, now_us)
            last_levels = levels

    def time_out(self, bits: int, now_us: int) -> None:
        """Pass a TIMEOUT to the receivers of the watchdogs that have fired."""
        for gpio, receiver in self._receivers.items():
            if bits >> gpio & 1:
                self._watch(gpio, receiver.process(TIMEOUT, now_us), now_us)

    def _each(self, changed: int, levels: int, time_us: int, now_us: int) -> None:
        for gpio, receiver in self._receivers.items():
            if changed >> gpio & 1:
                timeout_ms = receiver.process(levels >> gpio & 1, time_us)
                self._watch(gpio, timeout_ms, now_us)

    def _watch(self, gpio: int, timeout_ms: int | None, now_us: int) -> None:
        if timeout_ms is not None:
            self._watchdogs.set(gpio, timeout_ms, now_us)

    def _slro(self, request: Request, now_us: int) -> int:
        gpio, baud, data_bits = request.p1, request.p2, request.word()
        if gpio >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if not BAUD_MIN <= baud <= BAUD_MAX:
            return Err.BAD_WAVE_BAUD
        if not 1 <= data_bits <= DATA_BITS_MAX:
            return Err.BAD_DATABITS
        if gpio in self._uses:
            return Err.GPIO_IN_USE
        self._uses[gpio] = Use.SERIAL
        self._receivers[gpio] = Receiver(baud, data_bits)
        self._note_bits(now_us)
        return 0

    def _slr(self, request: Request, now_us: int) -> int | bytes:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if not request.p2:
            return Err.BAD_SERIAL_COUNT
        receiver = self._receivers.get(request.p1)
        return receiver.read(request.p2) if receiver else Err.NOT_SERIAL_GPIO

    def _slrc(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if request.p1 not in self._uses:
            return Err.NOT_SERIAL_GPIO
        if self._receivers.pop(request.p1, None):
            del self._uses[request.p1]
            self._watchdogs.set(request.p1, 0, now_us)
            self._note_bits(now_us)
        return 0

    def _slri(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        receiver = self._receivers.get(request.p1)
        if receiver is None:
            return Err.NOT_SERIAL_GPIO
        if request.p2 > 1:
            return Err.BAD_SER_INVERT
        receiver.inverted = request.p2
        return 0

    def _note_bits(self, now_us: int) -> None:
        self.bits = sum(1 << gpio for gpio in self._receivers)
        self.changed(now_us)

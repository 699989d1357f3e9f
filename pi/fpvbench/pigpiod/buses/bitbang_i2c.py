"""Bit-banged I2C: BI2CO, BI2CC, BI2CZ. The pins move, but no device is on the bus.

A bit that is not pulled low reads 1, so a read or a write is not acknowledged; a line that is held
low acknowledges everything.
"""

from collections.abc import Generator
from dataclasses import dataclass

from fpvbench import soc as chip
from fpvbench.pigpiod.buses.bitbang import Bus, TimedPins, Transfer, Use, opened_at, stepwise
from fpvbench.pigpiod.gpio_commands import Handler, permitted
from fpvbench.pigpiod.lines import USER_GPIO, Lines
from fpvbench.pigpiod.pins import Pins
from fpvbench.pigpiod.protocol import Cmd, Err, Outcome, Request

BAUD_MIN, BAUD_MAX = 50, 500_000
END, ESCAPE, START, STOP, ADDRESS, FLAGS, READ, WRITE = range(8)
PROGRAM_MAX = ANSWER_MAX = 32_767
STRETCH_MAX_US = 100_000
"""Longest wait for a clock line that is held low (clock stretching)."""


@dataclass(slots=True)
class BitBangHandle:
    """Open pair of SDA and SCL pins."""

    pins: TimedPins
    sda: int
    scl: int
    bus: Bus
    started: bool = False

    def start(self) -> None:
        """Send a start condition, a repeated one if there was no stop."""
        if self.started:
            self._release(self.sda)
            self.pins.delay()
            self._clock_up()
            self.pins.delay()
        self._drive_low(self.sda)
        self.pins.delay()
        self._drive_low(self.scl)
        self.pins.delay()
        self.started = True

    def stop(self) -> None:
        self._drive_low(self.sda)
        self.pins.delay()
        self._clock_up()
        self.pins.delay()
        self._release(self.sda)
        self.pins.delay()
        self.started = False

    def send(self, byte: int) -> bool:
        """Send a byte; return whether it was acknowledged."""
        for number in range(8):
            self._send_bit(byte >> 7 - number & 1)
        return not self._receive_bit()

    def receive(self, is_last: bool) -> int:
        """Receive a byte; acknowledge it unless it is the last."""
        byte = 0
        for _ in range(8):
            byte = byte << 1 | self._receive_bit()
        self._send_bit(int(is_last))
        return byte

    def _send_bit(self, bit: int) -> None:
        (self._release if bit else self._drive_low)(self.sda)
        self.pins.delay()
        self._clock_up()
        self.pins.delay()
        self._drive_low(self.scl)

    def _receive_bit(self) -> int:
        self._release(self.sda)
        self.pins.delay()
        self._clock_up()
        bit = self.pins.read(self.sda)
        self.pins.delay()
        self._drive_low(self.scl)
        return bit

    def _clock_up(self) -> None:
        self._release(self.scl)
        if not self.pins.read(self.scl):
            self.pins.at_us += STRETCH_MAX_US

    def _release(self, gpio: int) -> None:
        self.pins.mode(gpio, chip.MODE_INPUT)

    def _drive_low(self, gpio: int) -> None:
        self.pins.write(gpio, 0)
        self.pins.mode(gpio, chip.MODE_OUTPUT)


class _Zip:
    """Interpreter of a program of START, STOP, ADDR n, FLAGS n, READ n, WRITE n bytes, END.

    ESC makes the next number two bytes long. The first error ends the program; the bus keeps the
    state that it has then.
    """

    def __init__(self, opened: BitBangHandle, program: bytes, now_us: int) -> None:
        self._opened, self._timed = opened, opened.pins
        self._program, self._at = program[:PROGRAM_MAX], 0
        self._out = bytearray()
        self._address = 0
        self._timed.begin(now_us)

    def run(self) -> Transfer:
        wide, error = False, None
        while error is None and self._at < len(self._program):
            code = self._program[self._at]
            self._at += 1
            if code == END:
                break
            error = yield from self._step(code, wide)
            wide = code == ESCAPE
        yield from self._timed.end()
        return bytes(self._out) if error is None else error

    def _step(self, code: int, wide: bool) -> Generator[int, int, Err | None]:
        if code == START:
            self._opened.start()
        elif code == STOP:
            self._opened.stop()
        elif code in (ADDRESS, FLAGS):
            number = self._number(wide or code == FLAGS)
            if number is None:
                return Err.BAD_I2C_CMD
            self._address = number if code == ADDRESS else self._address
        elif code in (READ, WRITE):
            return (yield from self._transfer(code == READ, self._number(wide)))
        elif code != ESCAPE:
            return Err.BAD_I2C_CMD
        return None

    def _transfer(self, reads: bool, count: int | None) -> Generator[int, int, Err | None]:
        if count is None:
            return Err.BAD_I2C_CMD
        acknowledged = self._opened.send((self._address << 1 | reads) & 0xFF)
        if not count:
            return Err.BAD_I2C_CMD
        if not acknowledged:
            return Err.I2C_READ_FAILED if reads else Err.I2C_WRITE_FAILED
        return (yield from (self._read if reads else self._write)(count))

    def _read(self, count: int) -> Generator[int, int, Err | None]:
        if len(self._out) + count > ANSWER_MAX:
            return Err.BAD_I2C_RLEN
        for remaining in range(count, 0, -1):
            self._out.append(self._opened.receive(remaining == 1))
            yield from self._timed.byte_done()
        return None

    def _write(self, count: int) -> Generator[int, int, Err | None]:
        data = self._program[self._at : self._at + count]
        if len(data) < count:
            return Err.BAD_I2C_WLEN
        self._at += count
        error = None
        for index, byte in enumerate(data):
            # The acknowledgement of the last byte is ignored.
            if not self._opened.send(byte) and index < count - 1:
                error = Err.I2C_WRITE_FAILED
            yield from self._timed.byte_done()
        return error

    def _number(self, wide: bool) -> int | None:
        """Read an instruction's number, or return None if the program ends first."""
        end = self._at + (2 if wide else 1)
        if end > len(self._program):
            return None
        value = int.from_bytes(self._program[self._at : end], "little")
        self._at = end
        return value


class BitBangI2c:
    """Handlers of BI2CO, BI2CC and BI2CZ; `uses` maps each open pin to its interface."""

    def __init__(self, uses: dict[int, Use], pins: Pins, lines: Lines) -> None:
        self._uses, self._pins, self._lines = uses, pins, lines
        self._opened: dict[int, BitBangHandle] = {}

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        return {Cmd.BI2CO: self._open, Cmd.BI2CC: self._close, Cmd.BI2CZ: self._zip}

    def _open(self, request: Request, now_us: int) -> int:
        sda, scl, baud = request.p1, request.p2, request.word()
        if sda >= USER_GPIO or scl >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if not BAUD_MIN <= baud <= BAUD_MAX:
            return Err.BAD_I2C_BAUD
        if sda in self._uses or scl in self._uses or sda == scl:
            return Err.GPIO_IN_USE
        if not (permitted(sda) and permitted(scl)):
            # Unlike pigpio, which omits this check; no bench pin is lost.
            return Err.NOT_PERMITTED
        bus = Bus.open(self._pins, self._uses, {sda: Use.SDA, scl: Use.SCL})
        pins = TimedPins(self._pins, self._lines, baud)
        self._opened[sda] = BitBangHandle(pins, sda, scl, bus)
        for gpio in (sda, scl):
            self._pins.set_mode_register(gpio, chip.MODE_INPUT, now_us)
        return 0

    def _close(self, request: Request, now_us: int) -> int:
        opened = opened_at(self._opened, request, Err.NOT_I2C_GPIO)
        if isinstance(opened, Err):
            return opened
        del self._opened[request.p1]
        opened.bus.close(self._pins, self._uses, now_us)
        return 0

    def _zip(self, request: Request, now_us: int) -> Outcome:
        opened = opened_at(self._opened, request, Err.NOT_I2C_GPIO)
        if isinstance(opened, Err):
            return opened
        if not request.ext:
            return Err.BAD_POINTER
        return stepwise(_Zip(opened, request.ext, now_us).run())

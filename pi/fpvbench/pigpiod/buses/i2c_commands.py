"""I2C commands on the bench's buses (i2c.py), checked in the order of pigpio.c.

SMBus calls become plain transfers, as in the kernel's emulation. Like the BCM2835 driver, this
emulation lacks block reads whose length the device gives.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fpvbench.chips.i2c import Bus, Nack
from fpvbench.pigpiod.gpio_commands import Handler
from fpvbench.pigpiod.protocol import Cmd, CommandError, Err, Request

SLOTS = 512
ADDRESS_MAX = 0x7F
BLOCK_MAX = 32
READ_MAX = 65535
END, ESCAPE, COMBINED_ON, COMBINED_OFF, ADDRESS, FLAGS, READ, WRITE = range(8)
ZIP_READ_MAX = 32767
SEGMENTS_MAX = 42


@dataclass(frozen=True, slots=True)
class I2cHandle:
    """Bus and address of an open handle."""

    bus: Bus
    address: int

    def write(self, *data: int) -> None:
        """Write bytes to the device. Raises Nack."""
        self.bus.write(self.address, bytes(data))

    def read(self, count: int) -> bytes:
        """Read `count` bytes from the device. Raises Nack."""
        return self.bus.read(self.address, count)


Transfer = Callable[[I2cHandle, Request], int | bytes]


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _rs(device: I2cHandle, request: Request) -> int:
    return device.read(1)[0]


def _rb(device: I2cHandle, request: Request) -> int:
    device.write(request.p2)
    return device.read(1)[0]


def _rw(device: I2cHandle, request: Request) -> int:
    device.write(request.p2)
    return _little(device.read(2))


def _pc(device: I2cHandle, request: Request) -> int:
    device.write(request.p2, *request.word().to_bytes(2, "little"))
    return _little(device.read(2))


def _ri(device: I2cHandle, request: Request) -> bytes:
    device.write(request.p2)
    return device.read(request.word())


def _rd(device: I2cHandle, request: Request) -> bytes:
    return device.read(min(request.p2, READ_MAX))


def _pk(device: I2cHandle, request: Request) -> bytes:
    raise Nack("the driver has no block process call")


def _wq(device: I2cHandle, request: Request) -> int:
    if request.p2:
        device.read(0)
    else:
        device.write()
    return 0


def _ws(device: I2cHandle, request: Request) -> int:
    device.write(request.p2)
    return 0


def _wb(device: I2cHandle, request: Request) -> int:
    device.write(request.p2, request.word())
    return 0


def _ww(device: I2cHandle, request: Request) -> int:
    device.write(request.p2, *request.word().to_bytes(2, "little"))
    return 0


def _wk(device: I2cHandle, request: Request) -> int:
    device.write(request.p2, len(request.ext), *request.ext)
    return 0


def _wi(device: I2cHandle, request: Request) -> int:
    device.write(request.p2, *request.ext)
    return 0


def _wd(device: I2cHandle, request: Request) -> int:
    device.write(*request.ext)
    return 0


def _register(request: Request) -> bool:
    return request.p2 <= 0xFF


def _byte(request: Request) -> bool:
    return _register(request) and request.word() <= 0xFF


def _word(request: Request) -> bool:
    return _register(request) and request.word() <= 0xFFFF


def _block(request: Request) -> bool:
    return _register(request) and 1 <= len(request.ext) <= BLOCK_MAX


# command -> (argument check, transfer, error on a missing acknowledgement)
TRANSFERS: dict[int, tuple[Callable[[Request], bool], Transfer, Err]] = {
    Cmd.I2CWQ: (lambda r: r.p2 <= 1, _wq, Err.I2C_WRITE_FAILED),
    Cmd.I2CRS: (lambda r: True, _rs, Err.I2C_READ_FAILED),
    Cmd.I2CWS: (_register, _ws, Err.I2C_WRITE_FAILED),
    Cmd.I2CRB: (_register, _rb, Err.I2C_READ_FAILED),
    Cmd.I2CWB: (_byte, _wb, Err.I2C_WRITE_FAILED),
    Cmd.I2CRW: (_register, _rw, Err.I2C_READ_FAILED),
    Cmd.I2CWW: (_word, _ww, Err.I2C_WRITE_FAILED),
    Cmd.I2CWK: (_block, _wk, Err.I2C_WRITE_FAILED),
    Cmd.I2CRI: (lambda r: _register(r) and 1 <= r.word() <= BLOCK_MAX, _ri, Err.I2C_READ_FAILED),
    Cmd.I2CWI: (_block, _wi, Err.I2C_WRITE_FAILED),
    Cmd.I2CPC: (_word, _pc, Err.I2C_READ_FAILED),
    Cmd.I2CPK: (_block, _pk, Err.I2C_READ_FAILED),
    Cmd.I2CRD: (lambda r: r.p2 >= 1, _rd, Err.I2C_READ_FAILED),
    Cmd.I2CWD: (lambda r: len(r.ext) >= 1, _wd, Err.I2C_WRITE_FAILED),
}


class I2cCommands:
    """Open handles, and the handlers of commands on them, for the given buses only."""

    def __init__(self, buses: dict[int, Bus]) -> None:
        self._buses = buses
        self._handles: dict[int, I2cHandle] = {}

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        return {
            Cmd.I2CO: self._open,
            Cmd.I2CC: self._close,
            Cmd.I2CRK: self._no_block_read,
            Cmd.I2CZ: self._zip,
            **dict.fromkeys(TRANSFERS, self._transfer),
        }

    def _open(self, request: Request, now_us: int) -> int:
        if request.p2 > ADDRESS_MAX:
            return Err.BAD_I2C_ADDR
        if request.word():
            return Err.BAD_FLAGS
        if len(self._handles) >= SLOTS:
            return Err.NO_HANDLE
        if request.p1 not in self._buses:
            return Err.BAD_I2C_BUS
        number = next(n for n in range(SLOTS) if n not in self._handles)
        self._handles[number] = I2cHandle(self._buses[request.p1], request.p2)
        return number

    def _close(self, request: Request, now_us: int) -> int:
        return 0 if self._handles.pop(request.p1, None) else Err.BAD_HANDLE

    def _no_block_read(self, request: Request, now_us: int) -> int:
        return Err.BAD_SMBUS_CMD if request.p1 in self._handles else Err.BAD_HANDLE

    def _transfer(self, request: Request, now_us: int) -> int | bytes:
        device = self._handles.get(request.p1)
        fine, transfer, nack = TRANSFERS[request.cmd]
        if device is None:
            return Err.BAD_HANDLE
        if not fine(request):
            return Err.BAD_PARAM
        try:
            return transfer(device, request)
        except Nack:
            return nack

    def _zip(self, request: Request, now_us: int) -> int | bytes:
        """Answer I2CZ: run a program of reads and writes."""
        device = self._handles.get(request.p1)
        if device is None:
            return Err.BAD_HANDLE
        if not request.ext:
            return Err.BAD_POINTER
        try:
            return _Zip(device, request.ext).run() or 0
        except CommandError as fault:
            return fault.error
        except Nack:
            return Err.BAD_I2C_SEG


class _Zip:
    """Interpreter of a program of END, ESC, ON, OFF, ADDR n, FLAGS n, READ n, WRITE n bytes.

    Reads and writes are executed at the end, after every 42, and at ON or OFF. An error in the
    program leaves the last ones undone.
    """

    def __init__(self, device: I2cHandle, program: bytes) -> None:
        self._device, self._program = device, program
        self._at = self._wanted = 0
        self._segments: list[tuple[I2cHandle, int | bytes]] = []
        """Pending transfers: a device, and the byte count to read or the bytes to write."""
        self._out = bytearray()

    def run(self) -> bytes:
        """Run the program; return the bytes read. Raises CommandError, Nack."""
        wide = False
        while self._at < len(self._program):
            code = self._program[self._at]
            self._at += 1
            if code == END:
                break
            if code == READ:
                self._read(wide)
            elif code == WRITE:
                self._write(wide)
            elif code == ADDRESS:
                address = self._number(wide, Err.BAD_I2C_CMD)
                self._device = I2cHandle(self._device.bus, address)
            elif code == FLAGS:
                self._number(True, Err.BAD_I2C_CMD)
            elif code in (COMBINED_ON, COMBINED_OFF):
                self._transfer()
            elif code != ESCAPE:
                raise CommandError(Err.BAD_I2C_CMD)
            wide = code == ESCAPE
        self._transfer()
        return bytes(self._out)

    def _number(self, wide: bool, error: Err) -> int:
        size = 2 if wide else 1
        if self._at + size > len(self._program):
            raise CommandError(error)
        value = _little(self._program[self._at : self._at + size])
        self._at += size
        return value

    def _read(self, wide: bool) -> None:
        count = self._number(wide, Err.BAD_I2C_RLEN)
        if self._wanted + count >= ZIP_READ_MAX:
            raise CommandError(Err.BAD_I2C_RLEN)
        self._wanted += count
        self._add(count)

    def _write(self, wide: bool) -> None:
        count = self._number(wide, Err.BAD_I2C_WLEN)
        if self._at + count >= len(self._program):
            raise CommandError(Err.BAD_I2C_WLEN)  # i2cZip requires an END behind the data
        self._add(self._program[self._at : self._at + count])
        self._at += count

    def _add(self, segment: int | bytes) -> None:
        self._segments.append((self._device, segment))
        if len(self._segments) >= SEGMENTS_MAX:
            self._transfer()

    def _transfer(self) -> None:
        segments, self._segments = self._segments, []
        for device, segment in segments:
            if isinstance(segment, int):
                self._out += device.read(segment)
            else:
                device.write(*segment)

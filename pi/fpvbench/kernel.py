"""python -m fpvbench.kernel VERB: run a verb of `fpvcar` on the bench's kernel.

The car's own back end runs unchanged. Below it, four calls go to the bench instead of to this
computer:

    gpiochip.find    lines have owners in fpvbench/pigpiod/kernel.py; levels go to the chip's file
    Pulses           the chip makes pulses by itself, so a pulse that a stopped process has begun
                     continues, as a line keeps a level
    smbus2.SMBus     transfers go to the models of the bench's I2C devices
    /sys/class/pwm   kernel_pwm.py: a tree of files; its outputs outlive the process

The real calls and the real thread are tested in a VM (tests/vm_sensors).
"""

import ctypes
import errno
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path
from termios import TIOCOUTQ

import msgspec
import smbus2

from fpvbench import soc as chip
from fpvbench.kernel_pwm import FakePwm
from fpvcar.__main__ import main
from fpvcar.cli import verbs
from fpvcar.devices import backends
from fpvcar.devices.linux import gpio, gpiochip, pins_off, strict
from fpvcar.devices.linux.gpiochip import TAKEN
from fpvcar.devices.linux.pulses import Put
from fpvcar.devices.pins import PinsLost, PinsRefused
from fpvcar.runtime import paths
from fpvcar.runtime.texts import SAYS, Text, os_reason

SOCKET, ROOT = "gpiochip", "root"
ANSWER_S, OUTPUTS_ANSWER_S = 0.5, 0.1
"""Time limits for an answer: a motor may be waiting for an output."""
HANGS_US = 300_000
"""Time for which a write may stay unread; no queue is full by then."""
PULSE_US = 1000
"""Longest pulse of single writes, such as a trigger: a call to this kernel does not lengthen it."""
PACKET_B = 4096
INT = struct.Struct("i")
WRITE = struct.Struct("=QIQ")
"""Write to an output: CLOCK_MONOTONIC in microseconds, GPIO, and a level, or pulses as in
soc.Pin.pwm."""


class Request(msgspec.Struct):
    """First packet of a socket: lines, or the number of a bus. No flags: only their holder."""

    gpios: tuple[int, ...] = ()
    flags: int = 0
    consumer: str = ""
    debounce_us: int = 0
    bus: int | None = None


class Answer(msgspec.Struct):
    """Answer to a request. `error` is an errno; `holder` has a line already."""

    error: int = 0
    holder: str = ""
    levels: tuple[int, ...] = ()


def create(runtime: Path, pwm: Sequence[int]) -> None:
    """Create the kernel's files: it releases the lines of a process that is gone. `pwm`: GPIO
    that are connected to the PWM."""
    file = runtime / ROOT / strict.PARAMETER.format(strict.MODULES[strict.LABEL])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("N\n")
    FakePwm(runtime / "pwm")
    (runtime / "pwm/pins").write_text(" ".join(map(str, pwm)))


def _connect(runtime: Path, answer_s: float) -> socket.socket:
    """Return an own socket to the kernel. Raises OSError."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.settimeout(answer_s)
    try:
        line.connect(str(runtime / SOCKET))
    except OSError:
        line.close()
        raise
    return line


def _ask(runtime: Path, request: Request) -> tuple[socket.socket, Answer]:
    """Return an own socket for a request, and the answer. Raises OSError."""
    output = request.flags & gpiochip.OUTPUT
    line = _connect(runtime, OUTPUTS_ANSWER_S if output else ANSWER_S)
    try:
        line.send(msgspec.json.encode(request))
        answer = msgspec.json.decode(_alive(line.recv(PACKET_B)), type=Answer)
        if answer.error:
            raise OSError(answer.error, os.strerror(answer.error))
    except OSError:
        line.close()
        raise
    return line, answer


def _alive(packet: bytes) -> bytes:
    if not packet:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    return packet


class Lines(gpiochip.Lines):
    """Lines of one request. Raises OSError if the bench's kernel is gone."""

    def __init__(
        self, line: socket.socket, gpios: Sequence[int], levels: Sequence[int], soc: chip.Soc
    ) -> None:
        line.setblocking(False)
        super().__init__(line.detach(), gpios)
        self._soc, self._levels = soc, dict(zip(gpios, levels, strict=False))
        self._read_us = self._time_us = self._told_us = 0
        """Times at which the kernel had read every write, of the last one, and of its end."""

    def set(self, levels: dict[int, int]) -> None:
        """Set some outputs, one after the other; above 1 a level means pulses as in soc.Pin.pwm.

        Each pin can be switched off at any time; for the rest the kernel comes first. Raises
        OSError if it is gone or hangs.
        """
        pins = self._soc.pin
        for number in (number for number, level in levels.items() if not level):
            pins[number].out, pins[number].pwm = 0, 0
        for number, level in levels.items():
            self._tell(number, level)
            if level > 1:
                pins[number].pwm = level
            elif level:
                pins[number].out, pins[number].pwm = 1, 0

    def _tell(self, number: int, level: int) -> None:
        now_us = _clock_us()
        (unread_b,) = INT.unpack(ioctl(self._fd, TIOCOUTQ, bytes(INT.size)))
        if not unread_b:
            self._read_us = now_us
        elif now_us - self._read_us > HANGS_US:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        since_us = now_us - self._told_us
        self._time_us = now_us if since_us > PULSE_US else self._time_us + since_us
        os.write(self._fd, WRITE.pack(self._time_us, number, level))
        self._told_us = _clock_us()

    def get(self) -> dict[int, int]:
        """Return the levels of inputs at their request."""
        return self._levels

    def edges(self) -> list[tuple[int, int, int]]:
        """Return queued edges as (ns, GPIO, level)."""
        edges = super().edges()
        if not edges:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        return edges


class Chip:
    """The bench's GPIO chip. Raises PinsLost."""

    label, lines = strict.LABEL, chip.PINS

    def __init__(self, runtime: Path) -> None:
        self._runtime = runtime
        self._soc = chip.attach(runtime / "soc")
        try:
            self._line = _connect(runtime, ANSWER_S)
        except OSError as fault:
            raise PinsLost(_lost(fault)) from None
        self._line.setblocking(False)

    def check(self) -> None:
        """Raise PinsLost if the bench's kernel is gone."""
        try:
            _alive(self._line.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return
        except OSError as fault:
            raise PinsLost(_lost(fault)) from None

    def request(
        self, gpios: Sequence[int], flags: int, consumer: str, debounce_us: int = 0
    ) -> gpiochip.Lines:
        """Request lines, all or none. Raises PinsRefused with the holder of a busy line."""
        try:
            request = Request(tuple(gpios), flags, consumer, debounce_us)
            line, answer = _ask(self._runtime, request)
        except OSError as fault:
            raise PinsRefused(_lost(fault)) from None
        if answer.holder:
            line.close()
            names = ", ".join(map(str, gpios))
            raise PinsRefused(TAKEN(gpio=names, holder=answer.holder))
        return Lines(line, gpios, answer.levels, self._soc)

    def holder(self, number: int) -> str:
        """Return the name of a line's holder; "" for a free line."""
        line, answer = _ask(self._runtime, Request((number,)))
        line.close()
        return answer.holder

    def close(self) -> None:
        """Close the chip; requested lines stay."""
        self._line.close()


def _clock_us() -> int:
    return time.monotonic_ns() // 1000


def _lost(fault: OSError) -> Text:
    return SAYS(place="gpiochip of the bench", reason=os_reason(fault))


class Pulses:
    """Pulses that the chip makes by itself."""

    def __init__(self, put: Put) -> None:
        self._put = put

    def run(self, number: int, period_s: float, on_s: float) -> None:
        """Drive a pin high for `on_s` out of every `period_s`. Raises PinsLost."""
        try:
            self._put({number: round(on_s * 1e6) << 32 | round(period_s * 1e6)})
        except OSError as fault:
            raise PinsLost(_lost(fault)) from None

    def stop(self, number: int) -> None:
        """Do nothing: the next write ends the pulses."""

    def close(self) -> None:
        """Do nothing: the pulses end with the line's owner."""


class SMBus:
    """Bus with the bench's devices, instead of smbus2's. Raises OSError."""

    runtime: Path
    fd = None

    def __init__(self, bus: int) -> None:
        self._line, _ = _ask(self.runtime, Request(bus=bus))

    def _transfer(self, address: int, written: bytes, count: int = 0) -> bytes:
        self._line.send(bytes((address, count)) + written)
        number, *data = _alive(self._line.recv(PACKET_B))
        if number:
            raise OSError(number, os.strerror(number))
        return bytes(data)

    def read_byte_data(self, address: int, register: int) -> int:
        return self._transfer(address, bytes((register,)), 1)[0]

    def read_word_data(self, address: int, register: int) -> int:
        return int.from_bytes(self._transfer(address, bytes((register,)), 2), "little")

    def read_i2c_block_data(self, address: int, register: int, size: int) -> list[int]:
        return list(self._transfer(address, bytes((register,)), size))

    def i2c_rdwr(self, message: smbus2.i2c_msg) -> None:
        """Answer one message that reads."""
        data = self._transfer(message.addr, b"", message.len)
        ctypes.memmove(message.buf, data, len(data))

    def write_byte_data(self, address: int, register: int, value: int) -> None:
        self._transfer(address, bytes((register, value)))

    def write_word_data(self, address: int, register: int, value: int) -> None:
        self._transfer(address, bytes((register, *value.to_bytes(2, "little"))))

    def write_i2c_block_data(self, address: int, register: int, data: list[int]) -> None:
        self._transfer(address, bytes((register, *data)))

    def close(self) -> None:
        self._line.close()


class Pwm(FakePwm):
    """PWM whose outputs are pins of the bench's chip."""

    def __init__(self, runtime: Path) -> None:
        super().__init__(runtime / "pwm")
        self._soc = chip.attach(runtime / "soc")
        gpios = map(int, (runtime / "pwm/pins").read_text().split())
        self._gpios = {pins_off.PWM_CHANNELS[number][0]: number for number in gpios}

    def changed(self, channel: int) -> None:
        """Show a channel's output at its pin."""
        duty, period = (int(self.value(channel, name)) for name in ("duty_cycle", "period"))
        runs = duty and self.value(channel, "enable") == "1"
        pin = self._soc.pin[self._gpios[channel]]
        pin.out, pin.mode = 0, chip.MODE_OUTPUT
        pin.pwm = duty // 1000 << 32 | period // 1000 if runs else 0


def install(runtime: Path) -> None:
    """Replace the kernel's devices in this process, and in those forked after that."""
    backends.refuse_real_devices()
    verbs.PROGRAM = "fpvbench.kernel"
    SMBus.runtime = runtime
    Pwm(runtime).install()
    gpio.ROOT = runtime / ROOT
    setattr(gpiochip, "find", lambda: Chip(runtime))  # noqa: B010  # mypy: other types
    setattr(gpio, "Pulses", Pulses)  # noqa: B010
    setattr(smbus2, "SMBus", SMBus)  # noqa: B010


if __name__ == "__main__":
    install(paths.runtime_directory())
    sys.exit(main())

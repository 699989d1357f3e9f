"""Pins over the `pigpio` package.

The package is used as it is, but on a socket that we open: its own constructor waits
without a time-out, and starts a notification thread that spins for ever once the
daemon has died. A daemon that hangs still accepts connections; only an answer counts.

After any fault the stream is out of step: close, and connect anew.

A command may be posted: its answer is read with the next command's, so that a thread
wakes once less for it. pigpiod takes the commands of a connection one after the other.
"""

import logging
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pigpio

from fpvcar.devices.pins import PinsLost, PinsRefused, PinsSilent

TIMEOUT_S = 0.1
OTHER_LOOPBACK = {"127.0.0.1": "::1"}
"""pigpiod 79 that is started with -l alone listens at ::1 only, where there is IPv6."""
RECEIVE_BYTES = 4096
COMMAND = struct.Struct("<IIII")
"""Number, two values, length of what follows (pigpio.h, cmdCmd_t)."""
RESULT = struct.Struct("<12xi")
MICS = 46
"""pigpiod waits, in microseconds (pigpio.h); the package does not have it."""
_TIME = "ll" if socket.SO_RCVTIMEO == 20 else "qq"
"""struct timeval; where 32 bits have a time of 64, the option has another number."""
START = (
    "start it: sudo systemctl enable --now pigpiod; where there is none, "
    'as on a Pi 5 and in Trixie: pins.backend = "auto" in the profile'
)
log = logging.getLogger("fpvcar.pins")
Result = TypeVar("Result")


def _connect(host: str, port: int, timeout_s: float) -> socket.socket:
    try:
        return socket.create_connection((host, port), timeout_s)
    except ConnectionRefusedError:
        if host not in OTHER_LOOPBACK:
            raise
    try:
        return socket.create_connection((OTHER_LOOPBACK[host], port), timeout_s)
    except TimeoutError:
        raise
    except OSError as fault:  # a kernel without IPv6, too
        raise ConnectionRefusedError from fault


def set_timeout(connection: socket.socket, timeout_s: float) -> None:
    """By the kernel, of a blocking socket: Python's own asks poll(2) before each call.
    What takes longer is a BlockingIOError."""
    us = max(1, round(timeout_s * 1e6))
    time = struct.pack(_TIME, *divmod(us, 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, time)


class _Socket:
    """A socket whose end is an error: the package would read on for ever.

    It asks for an answer's head and for the rest: both come from one system call.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._ahead = connection, b""
        self.send, self.sendall = connection.send, connection.sendall
        self.close = connection.close

    def recv(self, size: int) -> bytes:
        """Up to `size` bytes; raises ConnectionResetError at the end of the stream."""
        if not self._ahead:
            self._ahead = self._received(RECEIVE_BYTES)
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def exactly(self, size: int) -> bytes:
        """So many bytes; the kernel waits for all. Raises as `recv` does."""
        while len(self._ahead) < size:
            more = size - len(self._ahead)
            self._ahead += self._received(more, socket.MSG_WAITALL)
        return self.recv(size) if size else b""

    def results(self, count: int) -> list[int]:
        """What the next answers say, of which all but the last are no longer than
        their heads. Raises as `recv` does."""
        heads = self.exactly(RESULT.size * count)
        return [result for (result,) in RESULT.iter_unpack(heads)]

    def _received(self, size: int, flags: int = 0) -> bytes:
        data = self._connection.recv(size, flags)
        if not data:
            raise ConnectionResetError("closed by pigpiod")
        return data


class _Line:
    """What the package keeps of a connection: the socket and its lock."""

    def __init__(self, line: _Socket) -> None:
        self.s: _Socket | None = line
        self.l = threading.Lock()  # noqa: E741


class _Client(pigpio.pi):  # type: ignore[misc]  # the package has no types
    """The package's client without its notification thread."""

    def __init__(self, line: _Socket) -> None:
        # deliberately not super().__init__(): see the head of this file
        self.connected, self._notify = True, None
        self.sl = _Line(line)


class PigpioPins:
    """The pins of one pigpiod; also what its I2C bus and lights hang on."""

    def __init__(self, host: str, port: int, timeout_s: float = TIMEOUT_S) -> None:
        """Connects. Raises PinsLost (nobody there) or PinsSilent (it hangs)."""
        self._ranges: dict[int, int] = {}
        self._posted: list[tuple[str, Callable[[int], None] | None]] = []
        self._unsent = b""
        where = f"pigpiod at {host} port {port}"
        try:
            connection = _connect(host, port, timeout_s)
        except TimeoutError:
            raise PinsSilent(f"{where} does not answer") from None
        except ConnectionRefusedError:
            raise PinsLost(f"{where}: Connection refused; {START}") from None
        except OSError as fault:
            raise PinsLost(f"{where}: {fault.strerror or fault}") from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(True)
        set_timeout(connection, timeout_s)
        self.connection, self._line = connection, _Socket(connection)
        self.client = _Client(self._line)
        try:
            self.call(f"{where} does not answer", self.client.get_pigpio_version)
        except (PinsSilent, PinsLost):
            self.close()
            raise

    def call(self, what: str, act: Callable[..., Result], *values: Any) -> Result:
        """One command. Raises PinsSilent or PinsLost with `what` in the text."""
        if self._posted:
            self._try(what, self._settle)
        return self._try(what, act, *values)

    def _try(self, what: str, act: Callable[..., Result], *values: Any) -> Result:
        if not self.client.connected:
            raise PinsLost(f"{what}: connection closed")
        try:
            return act(*values)
        except (TimeoutError, BlockingIOError):
            raise PinsSilent(what) from None
        except pigpio.error as fault:
            raise PinsRefused(f"{what}: {fault}") from None
        except (OSError, struct.error):  # struct: the answer broke off
            raise PinsLost(f"{what}: connection lost") from None

    def post(
        self, what: str, number: int, values: tuple[int, int], data: bytes,
        answered: Callable[[int], None] | None = None,
    ) -> None:  # fmt: skip
        """Sends a command; the next one reads its answer and tells `answered`, else
        raises PinsRefused with `what` for an error. Raises PinsSilent or PinsLost."""
        command = COMMAND.pack(number, *values, len(data)) + data
        self._try(what, self._send, command)
        self._posted.append((what, answered))

    def put_off(self, what: str, seconds: float) -> None:
        """Has pigpiod wait so long before the next command, with which this is sent."""
        self._unsent += COMMAND.pack(MICS, max(0, round(seconds * 1e6)), 0, 0)
        self._posted.append((what, None))

    def _send(self, command: bytes) -> None:
        unsent, self._unsent = self._unsent, b""
        self.connection.sendall(unsent + command)

    def ask(
        self, what: str, number: int, values: tuple[int, int], data: bytes
    ) -> tuple[int, bytes]:
        """A command whose result is the length of what it reads, or an error below 0.
        Its answer, and those to what was posted, come in one wake. Raises PinsFault."""
        command = COMMAND.pack(number, *values, len(data)) + data
        return self._try(what, self._ask, command)

    def _ask(self, command: bytes) -> tuple[int, bytes]:
        self._send(command)
        *results, result = self._line.results(len(self._posted) + 1)
        refused = self._settled(results)
        data = self._line.exactly(max(0, result))
        if refused is not None:
            raise refused
        return result, data

    def _settle(self) -> None:
        """Reads the answers to what was posted; raises the last error."""
        if self._unsent:
            self._send(b"")
        refused = self._settled(self._line.results(len(self._posted)))
        if refused is not None:
            raise refused

    def _settled(self, results: Sequence[int]) -> PinsRefused | None:
        """Tells whoever posted; the last error that nobody took."""
        posted, self._posted = self._posted, []
        refused: PinsRefused | None = None
        for (what, answered), result in zip(posted, results, strict=True):
            if answered is not None:
                answered(result)
            elif result < 0:
                refused = PinsRefused(f"{what}: {pigpio.error_text(result)}")
        return refused

    def write(self, gpio: int, level: int) -> None:
        """Makes the pin a steady output; stops its PWM."""
        self.call(f"write GPIO {gpio}", self.client.write, gpio, level)

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switches steady outputs in the same instant: one register write."""
        bits = sum(1 << gpio for gpio in gpios)
        act = self.client.set_bank_1 if level else self.client.clear_bank_1
        self.call(f"write GPIO {', '.join(map(str, gpios))}", act, bits)

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Sets frequency and, so that no step is lost, the range that it really has."""
        what = f"PWM frequency of GPIO {gpio}"
        self.call(what, self.client.set_PWM_frequency, gpio, hz)
        real = self.call(what, self.client.get_PWM_real_range, gpio)
        self._ranges[gpio] = real
        self.call(what, self.client.set_PWM_range, gpio, real)

    def pwm(self, gpio: int, duty: float) -> None:
        """High for `duty` (0 to 1) of the time; rounded down, but never to nothing."""
        steps = int(duty * self._ranges[gpio] + 1e-6) or (1 if duty > 0.0 else 0)
        self.call(f"PWM GPIO {gpio}", self.client.set_PWM_dutycycle, gpio, steps)

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Sends pulses of that length, 50 a second."""
        act = self.client.set_servo_pulsewidth
        self.call(f"servo on GPIO {gpio}", act, gpio, round(pulse_us))

    def listen(self, gpio: int, steady_us: int) -> None:
        """Makes the pin an input with pull-up, of which PigpioEdges hears only what
        was steady for so long.

        While the filter is being set pigpiod shows the inverse level for `steady_us`
        (alertGlitchFilter, pigpio.c): wait so long before you look.
        """
        what = f"input GPIO {gpio}"
        self.call(what, self.client.set_mode, gpio, pigpio.INPUT)
        self.call(what, self.client.set_pull_up_down, gpio, pigpio.PUD_UP)
        self.call(what, self.client.set_glitch_filter, gpio, steady_us)

    def hear(self, gpio: int) -> None:
        """Makes the pin an input that something else drives, heard at every edge,
        whatever it was before. Unplugged it is low: one that floats invents echoes."""
        what = f"input GPIO {gpio}"
        self.call(what, self.client.set_mode, gpio, pigpio.INPUT)
        self.call(what, self.client.set_pull_up_down, gpio, pigpio.PUD_DOWN)
        self.call(what, self.client.set_glitch_filter, gpio, 0)

    def trigger(self, gpio: int, length_us: int) -> None:
        """Pulls the pin high for so long (1 to 100); a refusal is the next call's."""
        what, values, high = f"trigger GPIO {gpio}", (gpio, length_us), b"\1\0\0\0"
        if self._posted:  # the answer to the last one came long ago
            self._try(what, self._settle)
        self.post(what, pigpio._PI_CMD_TRIG, values, high)

    def check(self) -> None:
        """Asks for the daemon's tick, so as to get an answer."""
        self.call("tick", self.client.get_current_tick)

    def close(self) -> None:
        """Ends the connection; the pins stay as they are."""
        try:
            self.client.stop()
        except OSError as fault:
            log.debug("closing: %s", fault)

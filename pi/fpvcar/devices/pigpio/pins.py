"""Pins over the `pigpio` package.

The package is used unchanged, but on a socket that we open. Its own constructor waits without a
time-out, and starts a notification thread that spins for ever once the daemon has died. A hanging
daemon still accepts connections; only an answer counts.

After any fault the stream is out of step: close it and reconnect.

A command may be posted: its answer is read with the next command's, to save a wake of the thread.
pigpiod executes the commands of a connection one after the other.
"""

import logging
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pigpio

from fpvcar.devices.pins import PinsLost, PinsRefused, PinsSilent
from fpvcar.runtime.texts import SAYS, Phrase, Text, os_reason

LOST = Phrase("pins_lost", "{action}: connection lost")

TIMEOUT_S = 0.1
OTHER_LOOPBACK = {"127.0.0.1": "::1"}
"""Other address for a refused connection: pigpiod 79 started with -l alone listens at ::1 only,
on systems with IPv6."""
RECEIVE_BYTES = 4096
COMMAND = struct.Struct("<IIII")
"""Header of a command: number, two values, length of the extension (pigpio.h, cmdCmd_t)."""
RESULT, RESULT_B = "12xi", 16
MICS = 46
"""Command that makes pigpiod wait, in microseconds (pigpio.h); the package lacks it."""
_TIME = "ll" if socket.SO_RCVTIMEO == 20 else "qq"
"""Format of struct timeval; 32-bit systems with a 64-bit time have another option number."""
POSTED_MOST = 8
"""Limit of posted commands with unread answers."""
HIGH = b"\1\0\0\0"
PIGPIOD_ABSENT = Phrase(
    "pigpiod_absent",
    "pigpiod at {host} port {port}: Connection refused; start it: sudo systemctl enable "
    '--now pigpiod; without pigpiod, as on a Pi 5 and in Trixie: pins.backend = "auto" in '
    "the profile",
)
log = logging.getLogger("fpvcar.pins")
Result = TypeVar("Result")
Posted = tuple[str | Text, Callable[[int], None] | None]


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
    except OSError as fault:  # also for a kernel without IPv6
        raise ConnectionRefusedError from fault


def set_timeout(connection: socket.socket, timeout_s: float) -> None:
    """Set the kernel's time-out on a blocking socket, because Python's own calls poll(2) before
    each call. An expired time-out raises BlockingIOError."""
    us = max(1, round(timeout_s * 1e6))
    time = struct.pack(_TIME, *divmod(us, 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, time)


class _Socket:
    """Socket that raises an error at its end, where the package would read on for ever.

    The package requests an answer's head and its rest separately; both come from one system call.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._ahead = connection, b""
        self.send, self.sendall = connection.send, connection.sendall
        self.close = connection.close

    def recv(self, size: int) -> bytes:
        """Return up to `size` bytes; raises ConnectionResetError at the end of the stream."""
        if not self._ahead:
            self._ahead = self._connection.recv(RECEIVE_BYTES)
        if not self._ahead:
            raise ConnectionResetError("closed by pigpiod")
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data


class _Line:
    """Connection in the package's form: the socket and its lock."""

    def __init__(self, line: _Socket) -> None:
        self.s: _Socket | None = line
        self.l = threading.Lock()  # noqa: E741


class _Client(pigpio.pi):  # type: ignore[misc]  # the package has no types
    """Client of the package without its notification thread."""

    def __init__(self, line: _Socket) -> None:
        # deliberately not super().__init__(): see the head of this file
        self.connected, self._notify = True, None
        self.sl = _Line(line)


class PigpioPins:
    """Pins of one pigpiod; its connection also serves the I2C bus and the lights."""

    def __init__(self, host: str, port: int, timeout_s: float = TIMEOUT_S) -> None:
        """Connect. Raises PinsLost (no daemon) or PinsSilent (it hangs)."""
        self._ranges: dict[int, int] = {}
        self._posted: list[Posted] = []
        where = f"pigpiod at {host} port {port}"
        silent = Text(
            "pigpiod_silent", "pigpiod at {host} port {port} does not answer", host=host, port=port
        )
        try:
            connection = _connect(host, port, timeout_s)
        except TimeoutError:
            raise PinsSilent(silent) from None
        except ConnectionRefusedError:
            raise PinsLost(PIGPIOD_ABSENT(host=host, port=port)) from None
        except OSError as fault:
            raise PinsLost(SAYS(place=where, reason=os_reason(fault))) from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(True)
        set_timeout(connection, timeout_s)
        self.connection, self._line = connection, _Socket(connection)
        self.client = _Client(self._line)
        try:
            self.call(silent, self.client.get_pigpio_version)
        except (PinsSilent, PinsLost):
            self.close()
            raise

    def call(self, action: str | Text, act: Callable[..., Result], *values: Any) -> Result:
        """Run one command. The text of PinsSilent or PinsLost contains `action`."""
        self.settle(action)
        return self._try(action, act, *values)

    def _try(self, action: str | Text, act: Callable[..., Result], *values: Any) -> Result:
        if not self.client.connected:
            raise PinsLost(Text("pins_closed", "{action}: connection closed", action=action))
        try:
            return act(*values)
        except (TimeoutError, BlockingIOError):
            self.client.connected = False  # out of step: no further call waits for it
            raise PinsSilent(action) from None
        except pigpio.error as fault:
            raise PinsRefused(f"{action}: {fault}") from None
        except (OSError, struct.error):  # struct: the answer broke off
            self.client.connected = False
            raise PinsLost(LOST(action=action)) from None

    def post(
        self,
        action: str | Text,
        commands: bytes,
        count: int = 1,
        refused: Callable[[int], None] | None = None,
    ) -> None:
        """Send so many commands without reading their answers.

        The next call reads them; for an error it calls `refused`, or raises PinsRefused with
        `action` if there is no callback. Raises PinsSilent or PinsLost.
        """
        self._posted += [(action, refused)] * count
        try:
            self.connection.sendall(commands)
        except BlockingIOError:
            raise PinsSilent(action) from None
        except OSError:
            raise PinsLost(LOST(action=action)) from None

    def exchange(
        self,
        action: str | Text,
        commands: bytes,
        count: int,
        reads: bool = False,
        after_s: float = 0.0,
    ) -> tuple[tuple[int, ...], bytes]:
        """Send so many commands in one packet, executed by pigpiod `after_s` from now; return
        their results.

        The thread wakes once. With `reads` the result of the last command is the length of its
        data, also returned. Raises PinsFault; a result below 0 is left to the caller.

        This is one function, because in cold caches a nested call costs as much as a system call.
        """
        posted, self._posted = self._posted, []
        earlier = len(posted)
        if after_s > 0.0:
            commands = COMMAND.pack(MICS, round(after_s * 1e6), 0, 0) + commands
            earlier += 1
        total = earlier + count
        try:
            self.connection.sendall(commands)
            heads = self.connection.recv(RESULT_B * total, socket.MSG_WAITALL)
            if len(heads) < RESULT_B * total:
                heads += self._receive_rest(RESULT_B * total - len(heads))
            results = struct.unpack("<" + RESULT * total, heads)
            data = b""
            if reads and results[-1] > 0:
                data = self.connection.recv(results[-1], socket.MSG_WAITALL)
                if len(data) < results[-1]:
                    data += self._receive_rest(results[-1] - len(data))
        except BlockingIOError:
            raise PinsSilent(action) from None
        except OSError:
            raise PinsLost(LOST(action=action)) from None
        if posted and min(results) < 0:
            self._raise_refusals(posted, results)
        return results[earlier:], data

    def _receive_rest(self, size: int) -> bytes:
        """Return `size` bytes, at least 1; the kernel waits for all. Raises OSError."""
        data = b""
        while len(data) < size:
            chunk = self.connection.recv(size - len(data), socket.MSG_WAITALL)
            if not chunk:
                raise ConnectionResetError("closed by pigpiod")
            data += chunk
        return data

    def _raise_refusals(self, posted: Sequence[Posted], results: Sequence[int]) -> None:
        """Report errors to the callbacks of posted commands; raise the last error without a
        callback."""
        fault: PinsRefused | None = None
        for (action, refused), result in zip(posted, results, strict=False):
            if result >= 0:
                continue
            if refused is not None:
                refused(result)
            else:
                fault = PinsRefused(f"{action}: {pigpio.error_text(result)}")
        if fault is not None:
            raise fault

    def settle(self, action: str | Text) -> None:
        """Read the answers to posted commands. Raises PinsFault."""
        if self._posted:
            self.exchange(action, b"", 0)

    def write(self, gpio: int, level: int) -> None:
        """Make the pin a steady output and stop its PWM."""
        self.call(f"write GPIO {gpio}", self.client.write, gpio, level)

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switch steady outputs in the same instant, by one register write."""
        bits = sum(1 << gpio for gpio in gpios)
        act = self.client.set_bank_1 if level else self.client.clear_bank_1
        self.call(f"write GPIO {', '.join(map(str, gpios))}", act, bits)

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Set the frequency and the range that it really has, so that no step is lost."""
        action = f"PWM frequency of GPIO {gpio}"
        self.call(action, self.client.set_PWM_frequency, gpio, hz)
        real = self.call(action, self.client.get_PWM_real_range, gpio)
        self._ranges[gpio] = real
        self.call(action, self.client.set_PWM_range, gpio, real)

    def pwm(self, gpio: int, duty: float) -> None:
        """Set the pin high for `duty` (0 to 1) of the time; rounded down, but never to zero."""
        steps = int(duty * self._ranges[gpio] + 1e-6) or (1 if duty > 0.0 else 0)
        self.call(f"PWM GPIO {gpio}", self.client.set_PWM_dutycycle, gpio, steps)

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Send pulses of that length, 50 a second; 0 ends them with a whole one."""
        act = self.client.set_servo_pulsewidth
        self.call(f"servo on GPIO {gpio}", act, gpio, round(pulse_us))

    def input_pull_up(self, gpio: int, steady_us: int) -> None:
        """Make the pin an input with pull-up; PigpioEdges reports only levels steady for so long.

        While the filter is being set pigpiod reports the inverse level for `steady_us`
        (alertGlitchFilter, pigpio.c): wait as long before reading.
        """
        action = f"input GPIO {gpio}"
        self.call(action, self.client.set_mode, gpio, pigpio.INPUT)
        self.call(action, self.client.set_pull_up_down, gpio, pigpio.PUD_UP)
        self.call(action, self.client.set_glitch_filter, gpio, steady_us)

    def input_pull_down(self, gpio: int) -> None:
        """Make the pin an input with reports of every edge, regardless of its previous mode.

        The pull-down keeps an unplugged pin low: a floating pin would give false echoes.
        """
        action = f"input GPIO {gpio}"
        self.call(action, self.client.set_mode, gpio, pigpio.INPUT)
        self.call(action, self.client.set_pull_up_down, gpio, pigpio.PUD_DOWN)
        self.call(action, self.client.set_glitch_filter, gpio, 0)

    def trigger(self, gpio: int, length_us: int, after_s: float = 0.0) -> None:
        """Set the pin high for so long (1 to 100), `after_s` from now: pigpiod waits. One of the
        next calls raises a refusal."""
        action = f"trigger GPIO {gpio}"
        if not after_s or len(self._posted) >= POSTED_MOST:
            self.settle(action)  # the answers to the last one came long ago
        wait = COMMAND.pack(MICS, round(after_s * 1e6), 0, 0)
        trigger = COMMAND.pack(pigpio._PI_CMD_TRIG, gpio, length_us, len(HIGH))
        self.post(action, wait + trigger + HIGH, 2)

    def check(self) -> None:
        """Query the daemon's tick, to check that it answers."""
        self.call("tick", self.client.get_current_tick)

    def close(self) -> None:
        """Close the connection; the pins keep their state."""
        try:
            self.client.stop()
        except OSError as fault:
            log.debug("closing: %s", fault)

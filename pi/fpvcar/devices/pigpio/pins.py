"""Pins, lights and I2C over the `pigpio` package; the dead man stored in its daemon.

The package is used as it is, but on a socket that we open: its own constructor waits
without a time-out, and starts a notification thread that spins for ever once the
daemon has died. A daemon that hangs still accepts connections; only an answer counts.

After any fault the stream is out of step: close, and connect anew.
"""

import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pigpio

from fpvcar.config import Profile
from fpvcar.devices.pins import PinsLost, PinsRefused, PinsSilent

TIMEOUT_S = 0.1
RECEIVE_BYTES = 4096
log = logging.getLogger("fpvcar.pins")
Result = TypeVar("Result")


class _Socket:
    """A socket whose end is an error: the package would read on for ever.

    It asks for an answer's head and for the rest: both come from one system call.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._ahead = connection, b""
        self.send, self.sendall = connection.send, connection.sendall
        self.close = connection.close

    def recv(self, size: int) -> bytes:
        """As socket.recv; raises ConnectionResetError at the end of the stream."""
        if not self._ahead:
            self._ahead = self._connection.recv(RECEIVE_BYTES)
            if not self._ahead:
                raise ConnectionResetError("closed by pigpiod")
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data


class _Line:
    """What the package keeps of a connection: the socket and its lock."""

    def __init__(self, connection: socket.socket) -> None:
        self.s: _Socket | None = _Socket(connection)
        self.l = threading.Lock()  # noqa: E741


class _Client(pigpio.pi):  # type: ignore[misc]  # the package has no types
    """The package's client without its notification thread."""

    def __init__(self, connection: socket.socket) -> None:
        # deliberately not super().__init__(): see the head of this file
        self.connected, self._notify = True, None
        self.sl = _Line(connection)


class PigpioPins:
    """The pins of one pigpiod; also what its I2C bus and lights hang on."""

    def __init__(self, host: str, port: int, timeout_s: float = TIMEOUT_S) -> None:
        """Connects. Raises PinsLost (nobody there) or PinsSilent (it hangs)."""
        self._ranges: dict[int, int] = {}
        where = f"pigpiod at {host} port {port}"
        try:
            connection = socket.create_connection((host, port), timeout_s)
        except TimeoutError:
            raise PinsSilent(f"{where} does not answer") from None
        except OSError as fault:
            raise PinsLost(f"{where}: {fault.strerror or fault}") from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.client = _Client(connection)
        try:
            self.call(f"{where} does not answer", self.client.get_pigpio_version)
        except (PinsSilent, PinsLost):
            self.close()
            raise

    def call(self, what: str, act: Callable[..., Result], *values: Any) -> Result:
        """One command. Raises PinsSilent or PinsLost with `what` in the text."""
        if not self.client.connected:
            raise PinsLost(f"{what}: connection closed")
        try:
            return act(*values)
        except TimeoutError:
            raise PinsSilent(what) from None
        except pigpio.error as fault:
            raise PinsRefused(f"{what}: {fault}") from None
        except (OSError, struct.error):  # struct: the answer broke off
            raise PinsLost(f"{what}: connection lost") from None

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
        whatever it was before."""
        what = f"input GPIO {gpio}"
        self.call(what, self.client.set_mode, gpio, pigpio.INPUT)
        self.call(what, self.client.set_pull_up_down, gpio, pigpio.PUD_OFF)
        self.call(what, self.client.set_glitch_filter, gpio, 0)

    def close(self) -> None:
        """Ends the connection; the pins stay as they are."""
        try:
            self.client.stop()
        except OSError as fault:
            log.debug("closing: %s", fault)


# --- the dead man: a script that pigpiod runs, whoever lives or dies ----------
#
# p0 heartbeat number (ours)  p1 ticks of patience  p7 MAGIC  p8 1 = tripped
# p9 ticks spent tripped      v0 number last seen   v1 ticks left
# It starts tripped, and while tripped stops the pins anew every tick. `bc1` first: it
# releases a brake in one instant; pin by pin it would drive the motor for a moment.
# Then both `p` and `w`: a `w` that meets the start of a PWM can leave its on-bits set;
# the next `p 0` clears them. Every register has one writer, so a race loses nothing.

TICK_MS, PATIENCE_TICKS = 20, 9  # trips 200-220 ms after the last heartbeat
MAGIC = 0x57484C53  # "WHLS": ours, among the 32 scripts that a daemon can hold
RUNNING = 2
START_S = 0.5
_SLOTS = 32
_INITIALISING = 0


def script(gpios: Sequence[int]) -> str:
    """The text of the dead man that stops these pins."""
    bits = sum(1 << gpio for gpio in gpios)
    stops = " ".join([f"bc1 {bits}", *(f"p {gpio} 0 w {gpio} 0" for gpio in gpios)])
    return (
        f"tag 0 mils {TICK_MS} lda p0 cmp v0 jz 1 "
        "sta v0 ld v1 p1 ld p8 0 jmp 0 "
        f"tag 1 dcr v1 jp 0 {stops} ld v1 0 ld p8 1 inr p9 jmp 0"
    )


class ScriptDeadMan:
    """The script in its slot. Only one process may hold it: `wheels` has a lock."""

    def __init__(self, pins: PigpioPins, gpios: Sequence[int]) -> None:
        """Stores and starts it, in place of any that a former process left."""
        self._pins, self._client = pins, pins.client
        self._beat = 0
        self._remove_old()
        text = script(gpios)
        self._id = self._call("store", self._client.store_script, text)
        self._started(lambda status: status != _INITIALISING)
        start = [0, PATIENCE_TICKS, 0, 0, 0, 0, 0, MAGIC, 1]
        self._call("start", self._client.run_script, self._id, start)
        self._started(lambda status: status == RUNNING)

    def feed(self) -> None:
        """Puts the stop off by another 200 ms."""
        self._beat = self._beat % 0x7FFFFFFF + 1
        self._call("feed", self._client.update_script, self._id, [self._beat])

    def awake(self) -> bool:
        """True when it runs and is not tripped. Raises PinsLost if it does not run."""
        status, values = self._status(self._id)
        if status != RUNNING or len(values) < 10:
            raise PinsLost(f"the dead man's script does not run (status {status})")
        return values[8] == 0

    def remove(self) -> None:
        """Frees its slot; only while the motors stand."""
        self._call("remove", self._client.delete_script, self._id)

    def _call(self, what: str, act: Callable[..., Result], *values: Any) -> Result:
        return self._pins.call(f"dead man: {what}", act, *values)

    def _status(self, slot: int) -> tuple[int, Sequence[int]]:
        found: tuple[int, Sequence[int]]
        found = self._call("status", self._client.script_status, slot)
        return found

    def _remove_old(self) -> None:
        for slot in range(_SLOTS):
            status, values = self._status(slot)
            if status >= 0 and len(values) > 7 and values[7] == MAGIC:
                self._call("remove", self._client.delete_script, slot)

    def _started(self, reached: Callable[[int], bool]) -> None:
        until_s = time.monotonic() + START_S
        while not reached(self._status(self._id)[0]):
            if time.monotonic() > until_s:
                raise PinsLost("the dead man's script does not start")
            time.sleep(0.001)


class PigpioBoard:
    """The motor pins of one car on pigpiod, and their dead man."""

    def __init__(self, profile: Profile) -> None:
        """Connects, switches the motors off, arms the dead man. Raises PinsFault."""
        gpios = profile.motor_pins()
        self.pins = PigpioPins(profile.pins.host, profile.pins.port)
        try:
            for gpio in gpios:
                self.pins.write(gpio, 0)
            self.dead_man = ScriptDeadMan(self.pins, gpios)
        except (PinsSilent, PinsLost):
            self.pins.close()
            raise

    def close(self) -> None:
        """Ends the connection; the dead man stays."""
        self.pins.close()

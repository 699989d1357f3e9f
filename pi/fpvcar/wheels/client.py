"""Client of `wheels` in `run`: sends setpoints, reads answers, never waits.

absent --- connected, first answer --> ok --- unanswered for 150 ms, EAGAIN --> hung (any) <--
closed; tried again every 100 ms            any answer --> ok

Calls `Rescue` after 0.25 s without an answer, with the socket open or after it closed in the middle
of a drive. By then the dead man behind the pins has switched the motors off, unless its daemon
hangs, too.
"""

import asyncio
import contextlib
import logging
import socket
from pathlib import Path
from typing import Literal

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.drive import mixing
from fpvcar.drive.control import Control
from fpvcar.runtime.texts import Text
from fpvcar.wheels.pins_off_client import ask_helper, peer_pid
from fpvcar.wire.errors import WireError
from fpvcar.wire.wheels import (
    PACKET_MAX,
    Answer,
    EscPulses,
    ServosWhy,
    Setpoint,
    Status,
    pack_angles,
    pack_setpoint,
    parse_packet,
)

LEASE_NS, REST_LEASE_NS = 120_000_000, 140_000_000
"""Validity of a moving setpoint, and of zero, which is sent more rarely without a driver. A
moving setpoint is renewed after 45 ms at the latest."""
HUNG_NS = 150_000_000
MUTE_NS = 250_000_000
"""Longer than the dead man's time-out, which is at most 220 ms."""
MUTE_AGAIN_NS = 1_000_000_000
"""Interval between calls of `rescue`: a helper may hang, but a daemon needs time to start."""
RETRY_S = 0.1
ANSWERS_MOST = 64
"""Maximum of answers read at once: usually two or three are pending, more if the loop was late."""
State = Literal["ok", "absent", "hung"]
Servos = Literal["ok"] | Text
log = logging.getLogger("fpvcar.wheels")


class Rescue:
    """Call of the helper if `wheels` is mute, unless the motors are proven off. Needs a running
    event loop.

    The helper ends the pin daemon, and with it sensors and buttons. After `wheels` was killed, the
    dead man has stopped the motors, and the daemon confirms it. A daemon that hangs or has ended
    does not answer; then the helper is called.
    """

    def __init__(self, profile: Profile, helper: Path) -> None:
        """Create the check; `helper` is the helper's socket."""
        self._profile, self._helper = profile, helper
        self._check: asyncio.Task[None] | None = None

    def call(self, pid: int) -> None:
        """Start a check of `wheels`, process `pid`, unless one is under way; return at once."""
        if self._check is None or self._check.done():
            self._check = asyncio.get_running_loop().create_task(self._run(pid))

    async def _run(self, pid: int) -> None:
        try:
            off = await backends.motors_proven_off(self._profile)
        except Exception as fault:
            log.error("cannot check whether the motors are off: %r", fault)
            off = False
        if not off:
            ask_helper(self._helper, pid)


class WheelsClient:
    """Client with one connection at a time to the socket at `path`; connects in `run`.

    `profile` is the one of `wheels`, if calibration may change the car's.
    """

    def __init__(self, path: Path, rescue: Rescue, profile: Profile | None = None) -> None:
        self.state: State = "absent"
        self._path, self._profile = path, profile
        self._pulses: EscPulses | None = None
        self._servos: Servos = "ok"
        self._control: Control | None = None
        self._socket: socket.socket | None = None
        self._ended: asyncio.Future[None] | None = None
        self._seq = 0
        self._unanswered_ns: int | None = None
        self._rescue, self._asked_ns, self._pid = rescue, -MUTE_AGAIN_NS, 0
        self._sent_motion = self._moves = False
        self._lost_ns: int | None = None
        """Time since which a car that moved has no connection to its wheels."""

    def tune(self, profile: Profile) -> None:
        """Send the pulses of an ESC in this version of the car's profile from now on."""
        if self._profile is not None:
            self._pulses = mixing.pulses_apart(self._profile.motors, profile.motors)

    async def run(self, control: Control) -> None:
        """Connect and reconnect for ever. `control` gets every answer and pin fault, and every
        change of `state`."""
        self._control = control
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                await self._serve(connection)
            except (OSError, WireError):
                pass  # closed, refused, absent, or another program at the other end
            finally:
                self._socket = None
                connection.close()
            self._set("absent")
            await asyncio.sleep(RETRY_S)

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        connection.setblocking(False)
        await loop.sock_connect(connection, str(self._path))
        self._pid = peer_pid(connection)
        self._ended = loop.create_future()
        self._socket, self._unanswered_ns, self._lost_ns = connection, None, None
        self._servos = "ok"
        await self._ended

    def read_answers(self, to_end: bool = False) -> None:
        """Read the pending answers; senders call this for each setpoint.

        The loop does not wake for each answer. Packets after the answer to the newest setpoint wait
        for the next call: another recv() that finds the socket empty would cost as much as all the
        answers. This delays no stop: `wheels` stops the motors before it sends the answer, and then
        refuses motion until it has had a zero. `to_end` reads those packets, too: a servo obeys its
        next angle, so the stop must come first. An error here ends `_serve`.
        """
        connection, ended, control = self._socket, self._ended, self._control
        if connection is None or ended is None or ended.done() or control is None:
            return
        try:
            for _ in range(ANSWERS_MOST):
                if self._take(connection.recv(PACKET_MAX), control) and not to_end:
                    break
        except BlockingIOError:
            pass
        except Exception as fault:
            self._socket = None  # now: the caller goes on to decide and to send
            self._set("absent")
            ended.set_exception(fault)

    def _take(self, packet: bytes, control: Control) -> bool:
        """Pass a packet to the gate's owner; return True for the answer to the newest setpoint,
        the last one expected."""
        if not packet:
            raise ConnectionResetError("closed by the wheels")
        answer = parse_packet(packet)
        if isinstance(answer, ServosWhy):
            self._servos = answer.text or "ok"
            return False
        if not isinstance(answer, Answer):
            control.wheels_fault(answer)
            return False
        self._unanswered_ns = None
        at_rest = answer.seq == self._seq and not self._sent_motion
        if at_rest or answer.status == Status.STOPPED:
            self._moves = False
        if self.state != "ok":
            self._set("ok")
        control.wheels_answer(answer)
        return answer.seq == self._seq and answer.status != Status.STOPPED

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        """Send a setpoint with its lease. Returns False if it could not be sent."""
        sent = self._send(duties, now_ns)
        since_ns = self._lost_ns if self._socket is None else self._unanswered_ns
        if since_ns is not None and now_ns - since_ns >= MUTE_NS and self.state != "ok":
            self._call_rescue(now_ns)
        return sent

    def aim(self, angles: tuple[float, ...]) -> None:
        """Send angles of servos that do not steer. A full or closed socket drops them: their owner
        repeats them."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.send(pack_angles(angles))

    def servo_state(self) -> Servos:
        """Return the state of servos that do not steer."""
        return self._servos

    def _call_rescue(self, now_ns: int) -> None:
        if now_ns - self._asked_ns >= MUTE_AGAIN_NS:
            self._asked_ns = now_ns
            self._rescue.call(self._pid)

    def _send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        if self._socket is None:
            if self._moves and self._lost_ns is None:
                self._lost_ns = now_ns
            return False
        self._sent_motion = any(duties)
        self._moves = self._moves or self._sent_motion
        self._seq = (self._seq + 1) & 0xFFFFFFFF
        lease_ns = LEASE_NS if self._sent_motion else REST_LEASE_NS
        setpoint = Setpoint(self._seq, now_ns + lease_ns, duties, self._pulses)
        try:
            self._socket.send(pack_setpoint(setpoint))
        except BlockingIOError:
            self._set("hung")
            return False
        except OSError:
            return False  # `run` is about to receive this error
        if self._unanswered_ns is None:
            self._unanswered_ns = now_ns
        elif now_ns - self._unanswered_ns > HUNG_NS and not _waits(self._socket):
            self._set("hung")
        return True

    def _set(self, state: State) -> None:
        if state != self.state:
            self.state = state
            if self._control is not None:
                self._control.wheels_state(state)


def _waits(connection: socket.socket) -> bool:
    """Return True for a pending answer: then our own loop is late, not the wheels."""
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except OSError:
        return False

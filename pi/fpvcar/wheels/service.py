"""Socket, signals, lock and clock around `Wheels`: the thin shell of the process.

Only poll() waits; its time-out is the next due time. An answer that the client does not read is
dropped. Each round of the loop feeds the unit's watchdog, if there is one.
"""

import fcntl
import logging
import os
import select
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from fpvcar.runtime import sd_notify
from fpvcar.runtime.clock import ClockNs
from fpvcar.runtime.texts import Text
from fpvcar.wheels.controller import Wheels
from fpvcar.wheels.servos import ServoThread
from fpvcar.wire.wheels import (
    SETPOINT,
    Answer,
    Status,
    WheelsReason,
    pack_answer,
    pack_servos,
    pack_why,
    parse_angles,
)

SOCKET = "wheels.sock"
PACKETS_MAX = 1024
"""Limit of packets read in one round; a socket holds some 280."""
log = logging.getLogger("fpvcar.wheels")


class Service:
    """Server at RUNTIME/wheels.sock. Raises OSError if another process holds it."""

    def __init__(
        self, wheels: Wheels, runtime: Path, clock_ns: ClockNs, servos: ServoThread | None = None
    ) -> None:
        """`servos` gets the angles of servos that do not steer."""
        self._wheels, self._clock_ns, self._servos = wheels, clock_ns, servos
        self._ending = self._hung_up = False
        self._told: Text | None = None
        self._told_servos: Text | None = None
        self._client: socket.socket | None = None
        self._unit = sd_notify.Heartbeat(sd_notify.watchdog_ns())
        self._lock = (runtime / "wheels.lock").open("w")
        path = runtime / SOCKET
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise OSError(f"{path}: another `fpvcar wheels` has the wheels") from None
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        path.chmod(0o660)
        self._listener.listen(4)
        self._listener.setblocking(False)
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._listener, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)

    def __enter__(self) -> "Service":
        signal.set_wakeup_fd(self._waker)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the car, brake until the brake is released, then close everything."""
        signal.set_wakeup_fd(-1)
        self._answer(self._wheels.stop(WheelsReason.EXIT, self._clock_ns()))
        while self._wheels.braking:
            select.select([], [], [], 0.002)
            self._wheels.tick(self._clock_ns())
        self._wheels.close(self._clock_ns())
        if self._servos is not None:
            self._servos.close()
        self._drop()
        self._listener.close()
        os.close(self._wake)
        os.close(self._waker)
        self._lock.close()

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending = True

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        self._wheels.tick(self._clock_ns())
        sd_notify.notify("READY=1")
        while not self._ending:
            self._unit.beat(self._clock_ns())
            self._round()

    def _round(self) -> None:
        ready = {fd for fd, _ in self._poll.poll(self._timeout_ms())}
        if self._wake in ready:
            os.read(self._wake, 64)  # a full pipe would make poll return at once, always
        # the client first: if it has gone, the new connection can be accepted
        if self._client is not None and self._client.fileno() in ready:
            self._read(self._client)
        if self._listener.fileno() in ready:
            self._accept()
        self._answer(self._wheels.tick(self._clock_ns()))

    def _timeout_ms(self) -> int | None:
        dues = [d for d in (self._wheels.due_ns, self._unit.due_ns) if d is not None]
        if not dues:
            return None
        return max(0, -((self._clock_ns() - min(dues)) // 1_000_000))

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return  # the peer has closed already
        if self._client is not None:
            client.close()
            if not self._hung_up:
                log.warning(
                    "closed the connection of a second client; the first is still connected"
                )
            self._hung_up = True
            return
        client.setblocking(False)
        self._client, self._hung_up = client, False
        self._told = self._told_servos = None
        self._poll.register(client, select.POLLIN)
        self._send(self._wheels.connected(self._clock_ns()))

    def _read(self, client: socket.socket) -> None:
        """Read until the socket is empty. If it is closed, discard the packets read."""
        packets: list[bytes] = []
        try:
            while len(packets) < PACKETS_MAX:
                packet = client.recv(SETPOINT.size * 2)
                if not packet:
                    raise ConnectionResetError
                angles = parse_angles(packet) if self._servos is not None else None
                if self._servos is None or angles is None:
                    packets.append(packet)
                else:
                    self._servos.aim(angles)
        except BlockingIOError:
            pass
        except OSError:
            self._drop()
            self._answer(self._wheels.stop(WheelsReason.CLOSED, self._clock_ns()))
            return
        if packets:
            self._answer(self._wheels.receive(packets, self._clock_ns()))

    def _answer(self, answers: Sequence[Answer]) -> None:
        """Send answers; a stop among them is one for the servos, too."""
        if self._servos is not None and any(one.status == Status.STOPPED for one in answers):
            self._servos.stop()
        self._send(answers)

    def _send(self, answers: Sequence[Answer]) -> None:
        if self._client is None:
            return
        try:
            for answer in answers:
                self._client.send(pack_answer(answer))
            if self._told != self._wheels.why:
                self._client.send(pack_why(self._wheels.why))
                self._told = self._wheels.why
            fault = self._servos.fault if self._servos is not None else None
            if self._told_servos != fault:
                self._client.send(pack_servos(fault))
                self._told_servos = fault
        except OSError:
            return  # full: the client's loss; closed: poll will report it

    def _drop(self) -> None:
        if self._client is not None:
            self._poll.unregister(self._client)
            self._client.close()
            self._client = None

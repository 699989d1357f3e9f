"""Guardian: a second process that stops the motors when `wheels` cannot, for back ends whose chip
or kernel keeps the last duty for ever (PCA9685, lgpio, kernel PWM).

    wheels                                    guardian
    Guardian(prepare)  --- fork --->          prepare() opens the chip -> off
                       <--- READY ---         (or dies, with the reason)
    feed()             --- FEED --->          watches for PATIENCE_S from now on
    rest()             --- REST --->          stops watching: the motors stand
    remove()           --- END --->           ends without any action
                       <--- one byte for each, so that its silence is noticed

    silent for PATIENCE_S                     SIGKILL to wheels, then off(),
                                              and once more when wheels is dead
    wheels gone: the socket is closed         off()

It kills first, because a hung `wheels` may resume between two of its own writes; a
write already under way is still completed. It is forked, not started: it is ready at
once and shares memory with `wheels`.

An old guardian could switch off a chip that the next `wheels` already drives: a chip on
a bus, unlike lines of the kernel, has no owner. There both take turns on a lock.
"""

import fcntl
import gc
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from fpvcar.devices.pins import PinsLost
from fpvcar.runtime import mlock
from fpvcar.runtime.clock import Clock

PATIENCE_S = 0.2
"""A setpoint lasts for 0.12 s, and then `wheels` itself stops the car: after a
longer silence it hangs."""
ANSWER_S = 0.1
"""A guardian that answers later than this hangs; then the motors would outlive `wheels`."""
START_S = 2.0
AGAIN_S, GIVES_UP_S = 0.01, 30.0
"""Retry interval and limit of `off`: a hung bus may recover."""
DIES_S = 0.2
"""A call to the bus cannot be interrupted and may take 50 ms (linux/i2c.py)."""
TURN_S, KILLED_S = 0.2, 0.1
"""Time to wait for a previous guardian to finish, and then for its death."""
READY, FEED, REST, END = b"Y", b"F", b"R", b"E"
SILENT = f"wheels was silent for {PATIENCE_S} s and is killed"
FIRST_FD, FDS = 3, 65536
"""No unit opens more files. A unit's system call filter may forbid asking for the limit."""
log = logging.getLogger("fpvcar.wheels")

_unreaped: list[int] = []
"""Guardians left running, to be reaped once they have ended."""
Off = Callable[[], None]
"""Function that switches the motors off regardless of all other state; may raise anything."""
Prepare = Callable[[], Off]
"""Function that opens the chip in the guardian."""


class Guardian:
    """Dead man of a back end without one of its own."""

    def __init__(
        self, prepare: Prepare, clock_s: Clock = time.monotonic, turn: int | None = None
    ) -> None:
        """`prepare()` runs in the guardian, which inherits no file of this process except `turn`,
        and reopens the chip. Raises PinsLost if that fails. Call it before motors move."""
        _unreaped[:] = [pid for pid in _unreaped if not _reaped(pid, os.WNOHANG)]
        self._clock_s, self._ours = clock_s, True
        self._sent = self._answered = 0
        self._asked_s: float | None = None
        self._fed: int | None = None
        """Number of the first feeding since the last rest."""
        self._line, guardian_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _become(guardian_end, parent, prepare, () if turn is None else (turn,))
        guardian_end.close()
        if turn is not None:
            os.pwrite(turn, str(self.pid).encode(), 0)
        self._line.settimeout(START_S)
        try:
            answer = self._line.recv(1024)
        except OSError as fault:
            answer = str(fault).encode()
        if answer != READY:
            self.kill()
            reason = answer.decode(errors="replace") or "it died"
            from fpvcar.runtime.texts import Text  # not above: see _gone

            raise PinsLost(
                Text("guardian_none", "no guardian for the motors: {reason}", reason=reason)
            )
        self._line.setblocking(False)

    def feed(self) -> None:
        """Postpone the stop by PATIENCE_S. Raises PinsLost if the guardian is dead or hung."""
        self._send(FEED)
        if self._fed is None:
            self._fed = self._sent

    def awake(self) -> bool:
        """Return True once the guardian watches."""
        self._read_answers()
        return self._fed is not None and self._answered >= self._fed

    def rest(self) -> None:
        """Report that the motors stand: silence is allowed until the next feeding."""
        if self._fed is not None:
            self._fed = None
            self._send(REST)

    def remove(self) -> None:
        """End the guardian: the motors stand and will not be driven."""
        with suppress(PinsLost):
            self._send(END)
        self.kill()

    def leave(self) -> None:
        """Leave the guardian behind with motors that may run: it switches them off."""
        self._line.close()
        if self._ours:
            self._ours = False
            _unreaped.append(self.pid)

    def kill(self) -> None:
        """Kill the guardian, which may hang. Only once, as its pid may be reused."""
        self._line.close()
        if self._ours:
            self._ours = False
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            _reaped(self.pid)

    def _send(self, command: bytes) -> None:
        self._read_answers()
        now_s = self._clock_s()
        if self._asked_s is not None and now_s - self._asked_s > ANSWER_S:
            from fpvcar.runtime.texts import Text  # not above: see _gone

            raise PinsLost(Text("guardian_hangs", "the guardian of the motors hangs"))
        try:
            self._line.send(command)
        except OSError:
            raise _gone() from None
        self._sent += 1
        if self._asked_s is None:
            self._asked_s = now_s

    def _read_answers(self) -> None:
        try:
            answers = self._line.recv(1024)
        except BlockingIOError:
            return
        except OSError:
            answers = b""
        if not answers:
            raise _gone()
        self._answered += len(answers)
        self._asked_s = None if self._answered == self._sent else self._clock_s()


def _gone() -> PinsLost:
    from fpvcar.runtime.texts import Text  # not above: the guardian's process must stay small

    return PinsLost(Text("guardian_gone", "the guardian of the motors is gone"))


def _reaped(pid: int, options: int = 0) -> bool:
    """Return True if a child has ended; it is then reaped."""
    try:
        return os.waitpid(pid, options)[0] == pid
    except ChildProcessError:
        return True


def take_turn(path: Path) -> int:
    """Wait for the lock that guardians share and take it. Returns a descriptor that
    the next guardian holds while it lives; the caller closes its own copy.

    A guardian that takes too long hangs and is killed: its successor switches everything off before
    anything else. Raises PinsLost if it survives, or without a lock.
    """
    try:
        turn = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        from fpvcar.runtime.texts import SAYS, os_reason  # not above: see _gone

        raise PinsLost(SAYS(place=path, reason=os_reason(fault))) from None
    if not _locked(turn, TURN_S):
        predecessor = os.pread(turn, 20, 0).decode()
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(predecessor), signal.SIGKILL)
        if not _locked(turn, KILLED_S):
            os.close(turn)
            raise PinsLost(f"the previous guardian, process {predecessor}, does not end")
    os.ftruncate(turn, 0)
    return turn


def _locked(turn: int, within_s: float) -> bool:
    until_s = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                return False
            time.sleep(AGAIN_S)
        else:
            return True


def _become(
    line: socket.socket, parent: int, prepare: Prepare, kept_fds: tuple[int, ...]
) -> NoReturn:
    """Run the forked process to its end; no code of the parent runs after it."""
    status = 1
    try:
        # finalizers of the parent's objects would close descriptors of this process
        gc.disable()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # the guardian ends when wheels does
            signal.signal(number, signal.SIG_IGN)
        wheels = os.pidfd_open(parent)
        if os.getppid() == parent:
            _close_other_fds(line.fileno(), wheels, *kept_fds)
            mlock.lock()
            _guard(line, wheels, prepare)
        status = 0
    except BaseException as fault:  # reported to the parent, which waits for READY
        with suppress(OSError):
            line.send(f"{type(fault).__name__}: {fault}".encode()[:1000])
    finally:
        os._exit(status)


def _close_other_fds(*kept_fds: int) -> None:
    """Close the parent's files: its lock would otherwise outlive it here."""
    start = FIRST_FD
    for fd in sorted(kept_fds):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, FDS)


def _guard(line: socket.socket, wheels: int, prepare: Prepare) -> None:
    """Watch until told to end, or until the motors had to be switched off."""
    off = prepare()
    try:
        reason = _watch(line)
    except OSError as fault:  # a peer that dies with unread data resets the socket
        reason = f"wheels is gone ({fault.strerror})"
    if reason == SILENT:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(wheels, signal.SIGKILL)
    if reason is not None:
        _switch_off(off, prepare, reason, wheels)


def _watch(line: socket.socket) -> str | None:
    """Return the reason for switching the motors off; None if told to end."""
    line.setblocking(True)
    line.send(READY)
    poll, until_s = select.poll(), None
    poll.register(line, select.POLLIN)
    while True:
        left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
        if not poll.poll(None if left_s is None else left_s * 1000.0):
            return SILENT
        commands = line.recv(1024)
        if not commands:
            return "wheels is gone"
        newest = commands[-1:]
        if newest == END:
            return None
        until_s = time.monotonic() + PATIENCE_S if newest == FEED else None
        line.send(commands)


def _switch_off(off: Off, prepare: Prepare, reason: str, wheels: int) -> None:
    """Switch off first and log afterwards. A killed `wheels` may have a write under
    way that arrives later, so switch off again after its death."""
    try:
        off = _call_off(off, prepare)
        if reason == SILENT:
            select.select([wheels], [], [], DIES_S)
            _call_off(off, prepare)
    except Exception as fault:
        log.error("guardian: %s; the motors are NOT off: %s", reason, fault)
    else:
        log.warning("guardian: %s; the motors are off", reason)


def _call_off(off: Off | None, prepare: Prepare) -> Off:
    """Try until it works, reopening the chip each time. Returns the working
    function; raises the last fault after GIVES_UP_S."""
    start_s = time.monotonic()
    while True:
        try:
            off = off or prepare()
            off()
        except Exception:
            off = None
            if time.monotonic() - start_s > GIVES_UP_S:
                raise
            time.sleep(AGAIN_S)
        else:
            return off

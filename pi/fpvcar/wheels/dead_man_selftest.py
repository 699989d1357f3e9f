"""Test of a car's dead man without motion: python -m fpvcar.wheels.dead_man_selftest

    feed, until it is awake -> "fed" -> silence ... -> "tripped", or the guardian kills

The motors stand all the while: no duty is ever set. With --turn each motor turns forward, then
back, for the requested time. SIGINT, SIGTERM, SIGHUP, an exception and the death of the parent all
stop the motors first; after SIGKILL the dead man stops them.

While `wheels` runs, it owns its pins and its dead man. Another dead man of the same kind, over no
pins, then shows that this machine meets its requirements ("beside").
"""

import argparse
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from fpvcar import config
from fpvcar.config import profiles, raspberry_pi_os
from fpvcar.devices import backends
from fpvcar.devices.motors.esc import AWAKE_S as ESC_AWAKE_S
from fpvcar.devices.pins import DeadMan, PinsFault
from fpvcar.drive import mixing
from fpvcar.wheels.controller import Wheels
from fpvcar.wheels.pins_off_client import MotorAccess, write_pins
from fpvcar.wire.wheels import Answer, Setpoint, Status, pack_setpoint

AWAKE_S, TRIPPED_S = 3.0, 5.0
POLL_S, FEED_S = 0.005, 0.02
WHOLE, BESIDE, FED, TRIPPED = "whole", "beside", "fed", "tripped"
TURNED = "turned"
SHARE = 0.5
"""Speed of a turning motor, as a share between its dead band and its limit."""
STAND_S = 0.3
TRIES = 3
"""Number of tries: a busy machine misses a deadline, and the wheels stop."""
LEASE_NS = 100_000_000
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndRequest:
    """Request to end early: a signal, or the death of the parent process.

    The signal handler only sets a flag. An exception raised in it could cut a command to the pin
    daemon in half, and the stop that follows would be out of step.
    """

    def __init__(self, parent: int) -> None:
        """Install the handlers, so only in the main thread."""
        self._parent, self._signal = parent, 0
        for number in ENDINGS:
            signal.signal(number, self._record)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self._signal = number

    def check(self) -> None:
        """Raise InterruptedError once there is a request."""
        if self._signal:
            raise InterruptedError(f"ended by {signal.Signals(self._signal).name}")
        if os.getppid() != self._parent:
            raise InterruptedError(f"the parent, process {self._parent}, has ended")


def report(line: str) -> None:
    """Print a line for the parent at once, since a kill may be the next event."""
    print(line, flush=True)


@contextlib.contextmanager
def locked(runtimes: Sequence[Path]) -> Iterator[bool]:
    """Take the locks of `wheels`; yield True while no other process has them. Yields False, too,
    if the lock belongs to another user and cannot be checked. Raises OSError."""
    with contextlib.ExitStack() as stack:
        try:
            for runtime in runtimes:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                lock = os.open(runtime / "wheels.lock", flags, 0o600)
                stack.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            yield False
        else:
            yield True


def prove(dead_man: DeadMan, end_request: EndRequest) -> None:
    """Feed the dead man until it is awake, then wait for it to trip.

    A guardian kills this process: that is the proof. Raises PinsFault, InterruptedError.
    """
    until_s = time.monotonic() + AWAKE_S
    dead_man.feed()
    while not dead_man.awake():
        if time.monotonic() > until_s:
            return
        end_request.check()
        time.sleep(POLL_S)
        dead_man.feed()
    report(FED)
    fed_s = time.monotonic()
    while time.monotonic() - fed_s < TRIPPED_S:
        if not dead_man.awake():
            report(f"{TRIPPED} {time.monotonic() - fed_s:.3f}")
            return
        end_request.check()
        time.sleep(POLL_S)


def trip(profile: config.Profile, runtimes: Sequence[Path], end_request: EndRequest) -> None:
    """Run the test, with the motors' own dead man if no other process has it. Raises PinsFault,
    OSError."""
    # Without the lock file of an earlier `wheels`, one may be running with its lock elsewhere.
    has_lock = any((runtime / "wheels.lock").exists() for runtime in runtimes)
    with locked(runtimes) if has_lock else contextlib.nullcontext(False) as free:
        report(WHOLE if free else BESIDE)
        if not free:
            spare = backends.open_dead_man(profile)
            try:
                prove(spare, end_request)
            finally:
                # keep the fault of `prove`, which is reported
                with contextlib.suppress(PinsFault):
                    spare.remove()
            return
        board = backends.open_motors(profile, runtimes[0])
        try:
            prove(board.dead_man, end_request)
        finally:
            board.close()


def turn(
    profile: config.Profile, runtimes: Sequence[Path], turn_s: float, end_request: EndRequest
) -> None:
    """Turn one motor after the other, as in a drive: by setpoints with a deadline, through the
    lease. Raises OSError while `wheels` runs, InterruptedError."""
    with locked(runtimes) as free:
        if not free:
            raise OSError(
                "`fpvcar wheels` holds the motor pins, or only root may take them: sudo "
                "systemctl stop fpvcar-wheels; sudo fpvcar doctor --move"
            )
        own_pins = runtimes[0] == Path("/") / raspberry_pi_os.RUNTIME
        wheels = Wheels(profile, MotorAccess(profile, runtimes[0], own_pins))
        write_pins(runtimes[0], *backends.stops(profile))
        try:
            wheels.tick(time.monotonic_ns())
            for index, name in enumerate(profile.motors.names):
                motor, full_v = profile.motors.pair[index], profile.battery.full_v
                duty = mixing.duty(SHARE, motor, full_v)
                arms_s = motor.arm_s + ESC_AWAKE_S if isinstance(motor, config.EscMotor) else 0.0
                _hold_duty(wheels, index, 0.0, arms_s, end_request)
                for _ in range(TRIES):
                    refusal = _both_ways(wheels, index, duty, turn_s, end_request)
                    if not refusal:
                        break
                report(f"{TURNED} {name} {refusal}")
        finally:
            wheels.close(time.monotonic_ns())


def _both_ways(
    wheels: Wheels, index: int, duty: float, turn_s: float, end_request: EndRequest
) -> str:
    """Turn a motor forward, then back; return "" or the reason of a refusal."""
    for share in (0.0, duty, 0.0, -duty, 0.0):
        refusal = _hold_duty(wheels, index, share, turn_s if share else STAND_S, end_request)
        if refusal:
            return refusal
    return ""


def _hold_duty(
    wheels: Wheels, index: int, duty: float, hold_s: float, end_request: EndRequest
) -> str:
    """Hold one motor at a duty for `hold_s`; return "" or the reason of a refusal."""
    end_s, refusal = time.monotonic() + hold_s, ""
    duties = (duty, 0.0) if index == 0 else (0.0, duty)
    while time.monotonic() < end_s:
        now_ns = time.monotonic_ns()
        setpoint = Setpoint(now_ns // 1_000_000 & 0xFFFFFFFF, now_ns + LEASE_NS, duties)
        refusal = _refusal(wheels, wheels.receive([pack_setpoint(setpoint)], now_ns))
        if refusal and duty:
            return refusal
        end_request.check()
        time.sleep(FEED_S)
    return refusal


def _refusal(wheels: Wheels, answers: list[Answer]) -> str:
    newest = answers[-1]
    if newest.status == Status.APPLIED:
        return ""
    return str(wheels.why or newest.reason.name.lower())


def main() -> int:
    """Run the command line; faults go to stderr."""
    parser = argparse.ArgumentParser(
        "python -m fpvcar.wheels.dead_man_selftest", description=__doc__
    )
    parser.add_argument("--profile", type=Path, required=True)
    parser.add_argument(
        "--runtime",
        type=Path,
        required=True,
        action="append",
        metavar="DIR",
        help="directory of the lock of `wheels`; repeat for each other possible one",
    )
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--turn", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument(
        "--parent",
        type=int,
        default=os.getppid(),
        metavar="PID",
        help="ends when this process is no longer the parent",
    )
    arguments = parser.parse_args()
    end_request = EndRequest(arguments.parent)
    try:
        profile = profiles.load(arguments.profile, arguments.overrides)
        if arguments.turn > 0.0:
            turn(profile, arguments.runtime, arguments.turn, end_request)
        else:
            trip(profile, arguments.runtime, end_request)
    except (config.ConfigError, OSError, PinsFault) as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

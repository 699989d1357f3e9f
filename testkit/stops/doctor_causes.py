"""Rows of the table "Who stops the car" for `fpvcar doctor --move`, at the emulator's pins.

Where no `wheels` runs, doctor turns the motors by a process of its own,
wheels/dead_man_selftest.py.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fpvcar.hil.stop_causes import NOTICED_S
from testkit.harness import PinWatch, wait_for
from testkit.pins.wheels import BENCH, START_S, Chip
from testkit.stops.stopping import Cause

ENDS_S = 5.0
"""Longest time for doctor to end on a loaded machine; it hung for 20 s once."""
HELD_S = 30.0
MOVE = """
import sys
from fpvcar.__main__ import main
from fpvcar.doctor import running_system
running_system.TURN_S = float(sys.argv.pop(1))
sys.exit(main())
"""


@dataclass
class Move:
    """A doctor that turns a motor, and its helper process for that."""

    doctor: "subprocess.Popen[bytes]"
    trip: int


def _children(pid: int) -> list[int]:
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in words]


def _trip_of(doctor: "subprocess.Popen[bytes]") -> int:
    for pid in _children(doctor.pid):
        if b"fpvcar.wheels.dead_man_selftest" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise AssertionError("doctor has no process at the motors")


def _lives(pid: int) -> bool:
    """Return whether a process runs. A zombie that its new parent has yet to reap does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _timed(act: Callable[[], None]) -> int:
    now_ns = time.monotonic_ns()
    act()
    return now_ns


def _terminal(number: signal.Signals) -> Callable[[Move], int]:
    """Send the signal to doctor's process group, as a key at a terminal does."""
    return lambda move: _timed(lambda: os.killpg(move.doctor.pid, number))


def _trip(number: signal.Signals) -> Callable[[Move], int]:
    return lambda move: _timed(lambda: os.kill(move.trip, number))


def _rows(
    name: str, act: Callable[[signal.Signals], Callable[[Move], int]], *numbers: signal.Signals
) -> tuple[Cause[Move], ...]:
    return tuple(
        Cause(f"doctor --move: {name} {number.name}", NOTICED_S, None, act(number))
        for number in numbers
    )


INT, TERM, HUP, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL
CAUSES = (
    *_rows("terminal sends", _terminal, INT, TERM, HUP, KILL),
    *_rows("motor process gets", _trip, INT, TERM, HUP, KILL),
    Cause(
        "doctor --move: motor process hangs", NOTICED_S, None, _trip(signal.SIGSTOP), _trip(KILL)
    ),
)


def run_one(chip: Chip, home: Path, cause: Cause[Move]) -> float:
    """Return seconds from the cause to motors off; all processes end, and no motor is driven."""
    chip.runtime.joinpath("wheels.lock").touch()
    env = {
        **os.environ,
        "RUNTIME_DIRECTORY": str(chip.runtime),
        "STATE_DIRECTORY": str(home),
        "TMPDIR": str(home),
    }
    doctor = subprocess.Popen(
        [
            sys.executable,
            "-c",
            MOVE,
            str(HELD_S),
            "doctor",
            "--move",
            f"--profile={BENCH}",
            f"--set=pins.port = {chip.port}",
            "--json",
        ],
        env=env,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    trip: int | None = None
    try:
        with PinWatch(chip.soc, (17, 27, 24, 23)) as watch:
            assert not watch.now.driving, "it turned before doctor asked"
            wait_for(lambda: watch.now.driving, "nothing turns", START_S)
            trip = found = _trip_of(doctor)
            now_ns = cause.fail(Move(doctor, found))
            wait_for(lambda: not watch.now.driving, f"{cause.name}: it turns on")
            cause.mend(Move(doctor, found))
            doctor.wait(ENDS_S)
            wait_for(lambda: not _lives(found), "the motor process lives on")
            time.sleep(0.1)
            assert not watch.now.driving, f"{cause.name}: it turns again"
            return watch.stopped_after_s(now_ns)
    finally:
        for pid in (trip, doctor.pid):
            if pid is not None and _lives(pid):
                os.kill(pid, signal.SIGKILL)
        doctor.wait()

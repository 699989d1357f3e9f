"""Guardian with real processes that are killed, stopped and orphaned; a file records `off`."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testkit.pins.wheels import START_S, until

from fpvcar.devices.guardian import ANSWER_S, FEED, TURN_S, Guardian, Off, _guard, take_turn
from fpvcar.devices.pins import PinsLost

WATCHED_S = 0.8
"""Patience of a process and its guardian: a busy machine may delay either for longer than the
PATIENCE_S and ANSWER_S of a car."""
WHEELS = """
import sys, time
from pathlib import Path
from fpvcar.devices import guardian as module
from fpvcar.devices.guardian import Guardian
from tests.unit.devices.test_guardian import switch
module.PATIENCE_S = module.ANSWER_S = float(sys.argv[5])
guardian = Guardian(switch(Path(sys.argv[1]), int(sys.argv[2])))
for step in range(int(sys.argv[3])):
    guardian.feed()
    if step == 0:
        print(guardian.pid, flush=True)
    time.sleep(0.02)
print("silent", flush=True)
if sys.argv[4] == "rest":
    guardian.rest()
time.sleep(60)
"""


def switch(path: Path, failures: int = 0) -> Callable[[], Off]:
    """Return a factory whose `off` fails `failures` times, and then makes the file."""

    left = [failures]

    def prepare() -> Off:
        broken = left[0] > 0  # the `off` made now keeps this state
        left[0] -= 1

        def off() -> None:
            if broken:
                raise OSError("the bus hangs")
            path.write_text("off")

        return off

    return prepare


class Wheels:
    """Process that feeds a guardian, then is silent."""

    def __init__(self, path: Path, feeds: int, then: str, failures: int, patience_s: float) -> None:
        words = [str(failures), str(feeds), then, str(patience_s)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", WHEELS, path, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.guardian = int(self.process.stdout.readline())

    def says(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"


Start = Callable[..., Wheels]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Wheels] = []

    def begin(
        feeds: int, then: str = "", failures: int = 0, patience_s: float = WATCHED_S
    ) -> Wheels:
        made.append(Wheels(tmp_path / "off", feeds, then, failures, patience_s))
        return made[-1]

    yield begin
    for one in made:
        one.process.kill()
        one.process.communicate()


def gone(pid: int) -> bool:
    """Return True if no such process exists, or it is a zombie that was not waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_silent_process_is_killed_and_motors_are_off(start: Start, tmp_path: Path) -> None:
    wheels = start(5)
    wheels.says("silent")
    until((tmp_path / "off").exists, START_S, "it does not switch off")
    assert wheels.process.wait(START_S) == -signal.SIGKILL


def test_last_write_of_killed_process_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL does not wait; a bus call of the victim may be finished after our own."""
    victim = subprocess.Popen(["sleep", "60"])
    dead: list[bool] = []

    def off() -> None:
        dead.append(victim.poll() is not None)
        if len(dead) == 1:
            threading.Timer(0.02, victim.kill).start()

    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *given: None)
    monkeypatch.setattr("fpvcar.devices.guardian.DIES_S", START_S)
    ours, theirs = socket.socketpair()
    process = os.pidfd_open(victim.pid)
    with ours, theirs, open(process, "rb"):
        ours.send(FEED)
        _guard(theirs, process, lambda: off)
    assert dead == [False, True]


def test_stopped_process_is_killed(start: Start, tmp_path: Path) -> None:
    wheels = start(1000)
    os.kill(wheels.process.pid, signal.SIGSTOP)
    until((tmp_path / "off").exists, START_S, "it does not switch off")
    assert wheels.process.wait(START_S) == -signal.SIGKILL
    until(lambda: gone(wheels.guardian), START_S, "it stays")


def test_death_of_killed_process_is_seen_at_once(start: Start, tmp_path: Path) -> None:
    wheels = start(1000, patience_s=60.0)
    wheels.process.kill()
    until((tmp_path / "off").exists, START_S, "it waits for a feeding")


def test_resting_process_may_be_silent(start: Start, tmp_path: Path) -> None:
    wheels = start(5, "rest")
    wheels.says("silent")
    time.sleep(WATCHED_S * 2)
    assert not (tmp_path / "off").exists() and wheels.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_guardian_outlives_signals_that_end_a_unit(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    """systemd sends SIGTERM to the whole group; the guardian must end last."""
    wheels = start(1000)
    os.kill(wheels.guardian, number)
    time.sleep(0.05)
    wheels.process.kill()
    until((tmp_path / "off").exists, START_S, "it does not switch off")


def test_failing_bus_is_reopened_and_retried(start: Start, tmp_path: Path) -> None:
    wheels = start(1000, failures=10)
    wheels.process.kill()
    until((tmp_path / "off").exists, START_S, "it gave up")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a guardian from killing this process, which a busy machine may delay."""
    monkeypatch.setattr("fpvcar.devices.guardian.PATIENCE_S", 600.0)


@pytest.fixture
def guardian(tmp_path: Path, patient: None) -> Iterator[Guardian]:
    made = Guardian(switch(tmp_path / "off"))
    yield made
    made.kill()


def test_guardian_is_awake_once_it_has_answered(guardian: Guardian) -> None:
    assert not guardian.awake(), "nothing is fed yet"
    guardian.feed()
    until(guardian.awake, START_S, "it does not answer")
    guardian.rest()
    assert not guardian.awake(), "it watches no more"
    guardian.feed()
    until(guardian.awake, START_S, "it does not answer again")
    guardian.rest()


def test_hanging_guardian_is_noticed(guardian: Guardian) -> None:
    guardian.feed()
    until(guardian.awake, START_S, "it does not answer")
    os.kill(guardian.pid, signal.SIGSTOP)
    guardian.feed()
    assert guardian.awake(), "it had answered before"
    time.sleep(ANSWER_S * 1.5)
    with pytest.raises(PinsLost, match="hangs"):
        guardian.feed()


def test_killed_guardian_is_noticed(guardian: Guardian) -> None:
    os.kill(guardian.pid, signal.SIGKILL)
    until(lambda: gone(guardian.pid), START_S, "it lives")
    with pytest.raises(PinsLost, match="is gone"):
        guardian.feed()


@pytest.mark.usefixtures("patient")
def test_removed_guardian_switches_nothing(tmp_path: Path) -> None:
    guardian = Guardian(switch(tmp_path / "off"))
    guardian.feed()
    guardian.remove()
    assert not Path(f"/proc/{guardian.pid}").exists()
    assert not (tmp_path / "off").exists()


def test_left_guardian_switches_off(tmp_path: Path) -> None:
    guardian = Guardian(switch(tmp_path / "off"))
    guardian.leave()
    until((tmp_path / "off").exists, START_S, "it does not switch off")
    os.waitpid(guardian.pid, 0)


def test_left_guardian_is_reaped_by_the_next(tmp_path: Path) -> None:
    guardian = Guardian(switch(tmp_path / "off"))
    guardian.leave()
    until(lambda: gone(guardian.pid), START_S, "it stays")
    Guardian(switch(tmp_path / "off")).kill()
    assert not Path(f"/proc/{guardian.pid}").exists()


def test_ended_guardian_is_not_killed_again(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number may belong to another process by then."""
    guardian.remove()
    killed: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "kill", lambda pid, number: killed.append(pid))
        guardian.kill()
        guardian.leave()
    assert killed == []


def test_failed_preparation_raises_pins_lost() -> None:
    def prepare() -> Off:
        raise OSError("no such bus")

    with pytest.raises(PinsLost, match="no guardian for the motors: OSError: no such"):
        Guardian(prepare)


def test_guardian_holds_no_file_of_its_parent(tmp_path: Path) -> None:
    """The lock of a dead process is free."""
    with (tmp_path / "lock").open("w"):
        guardian = Guardian(switch(tmp_path / "off"))
    opened = {os.readlink(one) for one in Path(f"/proc/{guardian.pid}/fd").iterdir()}
    guardian.remove()
    assert str(tmp_path / "lock") not in opened


def slow(path: Path, takes_s: float) -> Callable[[], Off]:
    """Return a factory whose `off` takes `takes_s`, and then makes the file."""

    def off() -> None:
        time.sleep(takes_s)
        path.write_text("off")

    return lambda: off


def test_next_guardian_waits_until_the_previous_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier guardian would switch off the pins that the next one drives."""
    # a busy machine runs the earlier one late
    monkeypatch.setattr("fpvcar.devices.guardian.TURN_S", START_S)
    turn = take_turn(tmp_path / "lock")
    before = Guardian(slow(tmp_path / "off", TURN_S / 2), turn=turn)
    os.close(turn)
    before.leave()
    os.close(take_turn(tmp_path / "lock"))
    assert (tmp_path / "off").exists()


def test_slow_guardian_is_ended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a busy machine ends a process late
    monkeypatch.setattr("fpvcar.devices.guardian.KILLED_S", START_S)
    turn = take_turn(tmp_path / "lock")
    before = Guardian(slow(tmp_path / "off", 60.0), turn=turn)
    os.close(turn)
    before.leave()
    os.close(take_turn(tmp_path / "lock"))
    until(lambda: gone(before.pid), START_S, "it lives")  # the lock goes a little earlier
    assert not (tmp_path / "off").exists()


def test_lock_that_cannot_be_taken_raises_pins_lost(tmp_path: Path) -> None:
    turn = take_turn(tmp_path / "lock")
    with pytest.raises(PinsLost, match="the previous guardian"):
        take_turn(tmp_path / "lock")
    os.close(turn)
    with pytest.raises(PinsLost, match=r"absent/lock: No such file"):
        take_turn(tmp_path / "absent" / "lock")

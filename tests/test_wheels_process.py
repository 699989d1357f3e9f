"""The real wheels process on the emulated chip: pull every plug, watch the pins.

The times are the design's plus a margin for a busy machine; `make bench` measures.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fpvcar import config, paths, wire
from fpvcar.bench import soc as chip
from fpvcar.wire import Status, WheelsReason

MARGIN_S = 0.4
START_S = 20.0
PINS = config.load(paths.HARDWARE / "bench.toml").motor_pins()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def until(holds: Callable[[], bool], within_s: float, what: str) -> float:
    """Waits; the seconds that it took. Fails with `what` after `within_s`."""
    start_s = time.monotonic()
    while not holds():
        assert time.monotonic() - start_s < within_s, what
        time.sleep(0.001)
    return time.monotonic() - start_s


class Rig:
    """Emulator, wheels and a driver, each a process; the chip to look at."""

    def __init__(self, runtime: Path) -> None:
        self.runtime, self.port = runtime, free_port()
        self.processes: list[subprocess.Popen[str]] = []
        chip.create(runtime / "soc")
        self.soc = chip.attach(runtime / "soc")
        self.helper = socket.socket(socket.AF_UNIX)
        self.helper.bind(str(runtime / "pins-off.sock"))
        self.helper.listen()
        self.helper.setblocking(False)
        self.pigpiod = self.start_pigpiod()
        self.wheels = self.start_wheels()

    def _start(self, *argv: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def start_pigpiod(self) -> subprocess.Popen[str]:
        process = self._start(
            "fpvcar.bench.pigpiod", f"--soc={self.runtime / 'soc'}",
            f"--port={self.port}",
        )  # fmt: skip

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        until(listens, START_S, "no emulator")
        return process

    def start_wheels(self) -> subprocess.Popen[str]:
        process = self._start(
            "fpvcar.wheels", f"--profile={paths.HARDWARE / 'bench.toml'}",
            f"--runtime={self.runtime}", f"--set=pins.port = {self.port}",
        )  # fmt: skip
        return process

    def drive(self, duty: float = 0.3) -> subprocess.Popen[str]:
        driver = self._start("tests.wheels_driver", str(self.runtime), str(duty))
        assert driver.stdout and driver.stdout.readline() == "driving\n"
        until(lambda: self.powered, 1.0, "it does not drive")
        return driver

    @property
    def powered(self) -> bool:
        """True when a motor is driven; braked, coasting and let go are not."""
        duties: list[float] = [self.soc.pin[gpio].duty() for gpio in PINS]
        return duties[0] != duties[1] or duties[2] != duties[3]

    def stands(self, within_s: float) -> None:
        until(lambda: not self.powered, within_s + MARGIN_S, "the car runs on")

    def stays(self, for_s: float) -> None:
        until_s = time.monotonic() + for_s
        while time.monotonic() < until_s:
            assert not self.powered, "the car moved by itself"
            time.sleep(0.001)

    def asked(self) -> bool:
        """True once for every call for the helper."""
        try:
            self.helper.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        self.helper.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    try:
        yield rig
    finally:
        rig.end()


class Client:
    """Speaks to the wheels packet by packet."""

    def __init__(self, runtime: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(START_S)
        path = str(runtime / "wheels.sock")

        def connects() -> bool:
            return self._socket.connect_ex(path) == 0

        until(connects, START_S, "no wheels")
        self.seq = 0

    def hear(self) -> wire.Answer | None:
        packet = self._socket.recv(64)
        return wire.parse_answer(packet) if packet else None

    def send(self, duty: float) -> wire.Answer | None:
        self.seq += 1
        deadline_ns = time.monotonic_ns() + 100_000_000
        setpoint = wire.Setpoint(self.seq, deadline_ns, (duty, 0.0))
        self._socket.send(wire.pack_setpoint(setpoint))
        while True:
            answer = self.hear()
            if answer is None or answer.status != Status.STOPPED:
                return answer

    def close(self) -> None:
        self._socket.close()


def test_client_killed(rig: Rig) -> None:
    driver = rig.drive()
    driver.kill()
    rig.stands(0.05)


def test_client_stopped(rig: Rig) -> None:
    driver = rig.drive()
    os.kill(driver.pid, signal.SIGSTOP)
    rig.stands(0.15)
    os.kill(driver.pid, signal.SIGCONT)  # it wants 0.3 still, and gets it not
    rig.stays(0.5)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_wheels_killed_or_hung(rig: Rig, number: signal.Signals) -> None:
    driver = rig.drive()
    os.kill(rig.wheels.pid, number)
    rig.stands(0.3)
    if number == signal.SIGSTOP:
        time.sleep(0.3)
        os.kill(rig.wheels.pid, signal.SIGCONT)
        rig.stays(0.5)
    driver.kill()


def test_wheels_start_again_after_a_kill(rig: Rig) -> None:
    rig.drive().kill()
    rig.wheels.kill()
    rig.wheels.wait()
    rig.wheels = rig.start_wheels()
    rig.drive()


def test_wheels_end_politely(rig: Rig) -> None:
    rig.drive(-0.3)
    rig.wheels.terminate()
    rig.stands(0.05)
    assert rig.wheels.wait(5) == 0
    assert [rig.soc.pin[gpio].level() for gpio in PINS] == [0, 0, 0, 0]


def test_pigpiod_killed_then_back(rig: Rig) -> None:
    client = Client(rig.runtime)
    until(lambda: _applied(client.send(0.0)), START_S, "never ready")
    rig.pigpiod.kill()
    rig.pigpiod.wait()
    answer = client.send(0.0)
    assert answer and answer.reason == WheelsReason.PINS_LOST
    assert not rig.asked(), "its own unit lets go of the pins"
    rig.pigpiod = rig.start_pigpiod()
    until(lambda: _applied(client.send(0.0)), START_S, "not connected again")
    client.close()
    rig.drive()


def test_pigpiod_killed_while_driving_keeps_the_duty(rig: Rig) -> None:
    """Without the unit's stand-in DMA runs on: why ExecStopPost is there."""
    rig.drive()
    rig.pigpiod.kill()
    rig.pigpiod.wait()
    time.sleep(0.5)
    assert rig.powered
    rig.pigpiod = rig.start_pigpiod()
    rig.stands(2.0)


def test_pigpiod_hangs(rig: Rig) -> None:
    driver = rig.drive()
    os.kill(rig.pigpiod.pid, signal.SIGSTOP)
    until(rig.asked, 0.12 + MARGIN_S, "the helper was not asked")
    assert rig.powered, "DMA keeps the PWM running"
    driver.kill()
    client = Client(rig.runtime)
    told = client.hear()
    assert told and told.status == Status.STOPPED
    answer = client.send(0.0)
    assert answer and answer.reason == WheelsReason.PINS_LOST
    client.close()
    os.kill(rig.pigpiod.pid, signal.SIGCONT)
    rig.stands(1.0)
    rig.drive()


def _applied(answer: wire.Answer | None) -> bool:
    time.sleep(0.01)
    return answer is not None and answer.status == Status.APPLIED


def test_second_client_is_hung_up_on(rig: Rig) -> None:
    first = Client(rig.runtime)
    told = first.hear()
    assert told and told.reason == WheelsReason.START
    second = Client(rig.runtime)
    assert second.hear() is None
    second.close()
    until(lambda: _applied(first.send(0.0)), START_S, "the first was harmed")
    first.close()


def test_client_that_never_reads_holds_nobody_up(rig: Rig) -> None:
    client = Client(rig.runtime)
    until(lambda: _applied(client.send(0.0)), START_S, "never ready")
    for _ in range(2000):
        client.seq += 1
        deadline_ns = time.monotonic_ns() + 100_000_000
        setpoint = wire.Setpoint(client.seq, deadline_ns, (0.3, 0.0))
        client._socket.send(wire.pack_setpoint(setpoint))
    until(lambda: rig.powered, 1.0, "it does not drive")
    rig.stands(0.15)
    client.close()


def test_second_wheels_is_refused(rig: Rig) -> None:
    Client(rig.runtime).close()
    other = rig.start_wheels()
    _, said = other.communicate(timeout=START_S)
    assert other.returncode == 1 and "another `fpvcar wheels`" in said


def test_no_pigpiod_is_said(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable, "-m", "fpvcar.wheels",
            f"--profile={paths.HARDWARE / 'bench.toml'}", f"--runtime={tmp_path}",
            f"--set=pins.port = {free_port()}",
        ],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "Connection refused" in said and "trying again" in said
    finally:
        process.kill()
        process.communicate()


def test_it_is_small(rig: Rig) -> None:
    rig.drive()
    status = Path(f"/proc/{rig.wheels.pid}/status").read_text()
    resident_kb = int(status.split("VmRSS:")[1].split()[0])
    assert resident_kb <= 25 * 1024
    modules = subprocess.run(
        [sys.executable, "-c", _MODULES], capture_output=True, text=True, check=True
    )
    assert modules.stdout.strip() == "[]"


_MODULES = """
import sys
import fpvcar.wheels, fpvcar.wheels_socket, fpvcar.devices.pigpio_pins
heavy = {"asyncio", "aiohttp", "numpy", "mujoco", "av", "ssl"}
print(sorted(heavy & sys.modules.keys()))
"""

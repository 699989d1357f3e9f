"""Processes on an emulated chip, for tests: pigpiod, wheels, driver; plugs to pull."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from fpvbench import soc as chip
from fpvbench.world.bridge import Wiring
from fpvcar.config import profiles
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text
from fpvcar.wire.wheels import (
    PACKET_MAX,
    Answer,
    ServosWhy,
    Setpoint,
    Status,
    pack_angles,
    pack_setpoint,
    parse_packet,
)
from testkit.network.ports import free_port

MARGIN_S = 5.0
"""Allowance for a busy machine. tests/e2e/stops measure how soon a car stops."""
START_S = 20.0
STEADY = 6
DRIVERS = 5
BENCH = paths.HARDWARE / "bench.toml"


def until(
    holds: Callable[[], object], within_s: float = 20.0, what: str = "nothing happened"
) -> float:
    """Wait for a condition; return the seconds that it took. Fails with `what` after `within_s`."""
    start_s = time.monotonic()
    while not holds():
        assert time.monotonic() - start_s < within_s, what
        time.sleep(0.001)
    return time.monotonic() - start_s


class Chip:
    """Emulated chip and its pigpiod; ends all started processes."""

    def __init__(self, runtime: Path, *options: str, host: str = "127.0.0.1") -> None:
        self.runtime, self.port = runtime, free_port()
        self.processes: list[subprocess.Popen[str]] = []
        self._options, self._host = options, host
        chip.create(runtime / "soc")
        self.soc = chip.attach(runtime / "soc")
        self.pigpiod = self.start_pigpiod()

    def start(self, *argv: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return process

    def start_pigpiod(self) -> subprocess.Popen[str]:
        process = self.start(
            "fpvbench.pigpiod",
            f"--soc={self.runtime / 'soc'}",
            f"--port={self.port}",
            *self._options,
        )

        def listens() -> bool:
            with contextlib.suppress(OSError):
                socket.create_connection((self._host, self.port)).close()
                return True
            return False

        until(listens, START_S, "no emulator")
        return process

    def kill_pigpiod(self) -> None:
        self.pigpiod.kill()
        self.pigpiod.wait()

    def restart_pigpiod(self) -> None:
        self.pigpiod = self.start_pigpiod()

    def stop_pigpiod(self) -> None:
        """Hang pigpiod: it accepts, and never answers. All its threads are stopped on return."""
        os.kill(self.pigpiod.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pigpiod.pid, os.WSTOPPED | os.WNOWAIT)

    def continue_pigpiod(self) -> None:
        """Let pigpiod continue after a hang."""
        os.kill(self.pigpiod.pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        for process in reversed(self.processes):  # a guardian needs its daemon
            process.kill()
            process.communicate()


class Rig(Chip):
    """Chip, wheels and a driver, each a process of its own."""

    def __init__(
        self,
        runtime: Path,
        profile: Path = BENCH,
        overrides: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        super().__init__(runtime, *options)
        self._overrides = overrides
        self.profile = profiles.load(profile, overrides)
        self._path, self._wiring = (profile, Wiring(self.profile.motors, self.profile.pca9685.oe))
        self.helper = socket.socket(socket.AF_UNIX)
        self.helper.bind(str(runtime / "pins-off.sock"))
        self.helper.listen()
        self.helper.setblocking(False)
        self.wheels = self.start_wheels()

    def start_wheels(self) -> subprocess.Popen[str]:
        process = self.start(
            "fpvcar.wheels",
            f"--profile={self._path}",
            f"--runtime={self.runtime}",
            f"--set=pins.port = {self.port}",
            *(f"--set={line}" for line in self._overrides),
        )
        return process

    def drive(self, duty: float = 0.3) -> subprocess.Popen[str]:
        """Start a driver. Start another one if a busy machine made a setpoint late, which stops
        the car for good, and `wheels` again, as its unit does, if their guardian killed them."""
        for _ in range(DRIVERS):
            if self.wheels.poll() is not None:
                self.wheels = self.start_wheels()
            driver = self.start("testkit.pins.wheels_driver", str(self.runtime), str(duty))
            assert driver.stdout is not None
            said, _, _ = select.select([driver.stdout], [], [], START_S)
            if said and driver.stdout.readline() == "driving\n":
                with contextlib.suppress(AssertionError):
                    until(lambda: self.powered, 1.0, "it does not drive")
                    return driver
            driver.kill()
            driver.wait()
        raise AssertionError("it does not drive")

    def drive_until(
        self, fault: Callable[[], object], mend: Callable[[], object]
    ) -> "subprocess.Popen[str]":
        """Drive, and bring a fault that leaves the motors on. Mend it, and repeat both, if a busy
        machine had stopped the car before the fault. Returns the driver."""
        for _ in range(DRIVERS):
            driver = self.drive()
            fault()
            if self.powered:
                return driver
            driver.kill()
            mend()
        raise AssertionError("it does not drive on")

    @property
    def powered(self) -> bool:
        """Return True if a motor is driven; braked, coasting and let go do not count."""
        drive, steer, *_ = self._wiring.bridges(self.soc)
        return bool(drive.drive or steer.drive)

    def stands(self, within_s: float) -> None:
        until(lambda: not self.powered, within_s + MARGIN_S, "the car runs on")

    def stays(self, for_s: float) -> None:
        """Check that the car does not move for 30 ms on end.

        The emulator switches the pins of a bank one after the other.
        """
        until_s = time.monotonic() + for_s
        seen = 0
        while time.monotonic() < until_s:
            seen = seen + 1 if self.powered else 0
            assert seen < STEADY, "the car moved by itself"
            time.sleep(0.005)

    def asked(self) -> bool:
        """Return True once for every call for the helper."""
        try:
            self.helper.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def end(self) -> None:
        super().end()
        self.helper.close()


class Client:
    """Client that sends to the wheels packet by packet."""

    def __init__(self, runtime: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(START_S)
        path = str(runtime / "wheels.sock")

        def connects() -> bool:
            return self._socket.connect_ex(path) == 0

        until(connects, START_S, "no wheels")
        self.seq = 0
        self.why: Text | None = None
        self.servos: Text | None = None

    def hear(self) -> Answer | None:
        while packet := self._socket.recv(PACKET_MAX):
            heard = parse_packet(packet)
            if isinstance(heard, Answer):
                return heard
            if isinstance(heard, ServosWhy):
                self.servos = heard.text
            else:
                self.why = heard
        return None

    def flood(self, duty: float, packets: int) -> None:
        """Send packets without reading answers."""
        for _ in range(packets):
            self.seq += 1
            deadline_ns = time.monotonic_ns() + 100_000_000
            setpoint = Setpoint(self.seq, deadline_ns, (duty, 0.0))
            self._socket.send(pack_setpoint(setpoint))

    def send(self, duty: float) -> Answer | None:
        self.flood(duty, 1)
        while True:
            answer = self.hear()
            if answer is None or answer.status != Status.STOPPED:
                return answer

    def aim(self, *angles: float) -> None:
        """Send angles of the servos that do not steer."""
        self._socket.send(pack_angles(angles))

    def close(self) -> None:
        self._socket.close()

"""The bench as a rig: an emulated car of its own, with the emulator's pins beside it.

The car is a plain `fpvcar bench` on free ports, with its own home directory. Pins that
a rig wires together are wired by the emulator.
"""

import collections
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fpvbench import kernel
from fpvbench import soc as chip
from fpvbench.outside import drive
from fpvbench.supervisor import emulated_pins
from fpvbench.world.bridge import Wiring
from fpvcar.config import EscMotor, HatEsc, Profile, profiles
from fpvcar.devices.pins import Edges
from fpvcar.hil import browsers
from fpvcar.hil.driver import wait_for
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.pin_recorder import EscDuties, Scope
from fpvcar.hil.results import RigKind
from fpvcar.hil.rig import MissingPart
from fpvcar.runtime import pdeathsig

READY_S, END_S, BACK_S, FOUND_S = 40.0, 15.0, 15.0, 20.0
TARGET_M, SLOWLY, STANDS_MPS = 0.9, 0.5, 0.001
LOWEST, HIGHEST = 21000, 31000
KERNEL_US = 20_000
"""Period of the kernel's PWM for a servo."""
LATE_US = 60_000
"""Age beyond which an edge of the PCA9685 is dropped: pigpiod keeps those of 120 ms."""
SCREEN_S, SAMPLE_S = 0.09, 0.0005
"""Delay of the simulated light sensor, and the interval at which it samples the LED."""
STRIP = 'camera.source = "strip"'
LACKING = {
    "radio": "no radio: the bench's driver comes over this computer's loopback",
    "metal": "only a real Raspberry Pi can confirm it",
}
Overrides = tuple[str, ...]


def free_ports(count: int) -> list[int]:
    """Return the first of `count` consecutive free ports: http, https, pigpiod. Raises OSError."""
    lowest = LOWEST + os.getpid() % 4000
    for port in range(lowest, HIGHEST):
        try:
            for candidate in range(port, port + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", candidate))
        except OSError:
            continue
        return list(range(port, port + count))
    raise OSError(f"no {count} free ports from {lowest} to {HIGHEST}")


def pulsed_by_chip(profile: Profile) -> bool:
    """Return whether a PCA9685 or the kernel's PWM makes the pulses of an ESC. The pin daemon
    does not see them, so the rig plays them on the input."""
    esc = profile.motors.esc
    return esc is not None and (isinstance(esc, HatEsc) or esc.output in profile.pins.pwm)


def wires(profile: Profile) -> Iterator[tuple[int, int]]:
    """Yield the pairs of pins that a rig wires together."""
    rig = profile.rig
    if not pulsed_by_chip(profile):
        yield from zip(profile.motor_pins(), rig.loops, strict=False)
    for servo in list(profile.servos.values())[:1]:
        if servo.signal is not None and rig.servo is not None:
            yield servo.signal, rig.servo
    if rig.out is not None and rig.back is not None:
        yield rig.out, rig.back
    if rig.echo is not None:
        for sensor in profile.sensors.ultrasound.values():
            yield sensor.echo, rig.echo
            break


def below(pid: int) -> Iterator[int]:
    """Yield the process ids of all descendants of a process."""
    children: list[int] = []
    with contextlib.suppress(OSError):  # the process is gone
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    for child in children:
        yield child
        yield from below(child)


def delays_s(pid: int) -> dict[Path, float]:
    """Return the time each thread of a process was runnable without a core, in seconds: the second
    figure of schedstat, in ns (kernel: Documentation/scheduler/sched-stats.rst)."""
    delays: dict[Path, float] = {}
    # the process is gone, or the kernel does not count
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            delays[task] = int((task / "schedstat").read_text().split()[1]) / 1e9
    return delays


def waits_s(root: int) -> Callable[[], float]:
    """Return a function that gives the time the processes below `root` have waited
    for a core since this call. Each process counts its worst thread; the
    processes add up, because one waits for the other."""
    before_s = {task: delay_s for pid in below(root) for task, delay_s in delays_s(pid).items()}

    def since() -> float:
        return sum(
            max((after - before_s.get(task, 0.0) for task, after in delays.items()), default=0.0)
            for delays in map(delays_s, below(root))
        )

    return since


class BenchRig(Rig):
    """Rig of a running bench."""

    where: RigKind = "bench"

    def __init__(
        self, profile: Path, overrides: Overrides, runtime: Path, port: int, person: bool = False
    ) -> None:
        super().__init__(profiles.load(profile, overrides), port, person)
        self._runtime = runtime
        self._soc = chip.attach(runtime / "soc")
        motors, hat = self.profile.motors, self.profile.pca9685
        self._wiring = Wiring(motors, hat.oe, self.profile.hat_hz())

    def lacks(self, part: str) -> str:
        """Return the reason why a part is missing."""
        if part == "browser" and not self.person and browsers.program() is None:
            return browsers.NONE
        return LACKING.get(part) or self.unwired(part)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Scope]:
        """Poll the emulated chip itself: it outlives every daemon."""
        pins = [self._soc.pin[gpio] for gpio in self.profile.motor_pins()]
        esc = self.profile.motors.esc
        poll = (
            (lambda: tuple(pin.duty() for pin in pins))
            if esc is None
            else EscDuties(lambda: self._wiring.pulse_us(esc, self._soc), esc)
        )
        with Scope(poll) as scope:
            yield scope

    def signal(self, unit: str, number: signal.Signals) -> int:
        """Send a signal to a unit; "camera" is a child process of `run`."""
        pids = self._cameras() if unit == "camera" else [self._pid(unit)]
        now_ns = time.monotonic_ns()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return now_ns

    @contextlib.contextmanager
    def edges(self, gpios: Sequence[int], by: Profile | None = None) -> Iterator[Edges]:
        """Read edges; those of the light sensor, and of an output of a PCA9685, are simulated."""
        rig, esc = self.profile.rig, self.profile.motors.esc
        with contextlib.ExitStack() as stack:
            if esc and pulsed_by_chip(self.profile) and set(rig.loops[:1]) & set(gpios):
                stack.enter_context(self._chip_pulses(esc, rig.loops[0]))
            if rig.led is not None and rig.photodiode is not None and rig.photodiode in gpios:
                stack.enter_context(self._screen(rig.led, rig.photodiode))
            yield stack.enter_context(super().edges(gpios, by))

    @contextlib.contextmanager
    def _screen(self, led: int, photodiode: int) -> Iterator[None]:
        """Drive the light sensor's pin as the LED's was SCREEN_S ago: this shows that the timing
        is right, not how late a picture is."""
        end = threading.Event()

        def follow() -> None:
            lit, due = 0, collections.deque[tuple[float, int]]()
            drive(self._soc, photodiode, lit)
            while not end.wait(SAMPLE_S):
                now_s, level = time.monotonic(), self._soc.pin[led].level()
                if level != lit:
                    lit = level
                    due.append((now_s + SCREEN_S, lit))
                if due and now_s >= due[0][0]:
                    drive(self._soc, photodiode, due.popleft()[1])

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    @contextlib.contextmanager
    def _chip_pulses(self, esc: EscMotor, gpio: int) -> Iterator[None]:
        """Drive a pin as the output of a chip, with the period of its own clock."""
        end = threading.Event()

        def follow() -> None:
            start_us = time.monotonic_ns() // 1000
            while not end.is_set():
                on_chip = isinstance(esc, HatEsc)
                start_us += round(self._soc.hat.period_us()) if on_chip else KERNEL_US
                late_us = time.monotonic_ns() // 1000 - start_us
                width_us = round(self._wiring.pulse_us(esc, self._soc))
                if width_us and late_us < LATE_US:
                    drive(self._soc, gpio, 1, start_us)
                    drive(self._soc, gpio, 0, start_us + width_us)
                end.wait(max(0.0, -late_us / 1e6))

        drive(self._soc, gpio, 0)
        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def _pid(self, unit: str) -> int:
        pids: list[int] = []

        def runs() -> bool:
            pid = json.loads((self._runtime / "units.json").read_bytes())[unit]
            pids[:] = [pid] if pid is not None else []
            return bool(pids)

        wait_for(runs, f"{unit} does not run", BACK_S)
        return pids[0]

    def _cameras(self) -> list[int]:
        """Return the process ids of the camera: children of `run`."""
        run = self._pid("run")
        children = Path(f"/proc/{run}/task/{run}/children").read_text().split()
        cameras = []
        for pid in map(int, children):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"camera\0bench\0" in command:
                cameras.append(pid)
        if not cameras:
            raise MissingPart("no camera's process below `run`")
        return cameras

    def waited_s(self) -> Callable[[], float]:
        """Return a counter of waiting time over everything the suite has started:
        the bench and a browser."""
        return waits_s(os.getpid())

    def close_contact(self, closed: bool) -> None:
        """Change the world outside the chip."""
        assert self.contact is not None
        drive(self._soc, self.contact, 0 if closed else chip.FLOATING)

    def range_m(self, sensor: str) -> float:
        """Return the true range. The car first drives to a place where a wall is a target."""
        index = chip.nearest_range(self.profile.sensors.tof[sensor].bearing_deg)

        def range_m() -> float:
            return float(chip.read_world(self._soc).range_m[index])

        if range_m() > TARGET_M:
            with self.driver() as driver:
                driver.ready().drive(SLOWLY, 0.0)
                wait_for(lambda: range_m() < TARGET_M, "no wall ahead", FOUND_S)
                driver.drive(0.0, 0.0)
                wait_for(self._stands, "the car rolls on")
        return range_m()

    def _stands(self) -> bool:
        return bool(abs(chip.read_world(self._soc).speed_mps) < STANDS_MPS)

    def amps(self) -> float:
        """Return the current of the emulated battery."""
        return float(chip.read_world(self._soc).battery_a)

    def rest(self) -> None:
        """Also release the contact, so that no button stays pushed."""
        super().rest()
        if self.contact is not None:
            self.close_contact(False)


@contextlib.contextmanager
def bench(
    profile: Path,
    overrides: Overrides,
    home: Path,
    person: bool = False,
    pins: str = "",
    really: Overrides = (),
) -> Iterator[BenchRig]:
    """Start a bench and yield it when it is ready; stop it afterwards. `pins`, `really`: as its
    options. Raises OSError with the last lines of its log."""
    port, _, pigpio_port = free_ports(3)
    runtime, log = home / "run", home / "log"
    lines = (STRIP, f"pins.port = {pigpio_port}", *overrides)
    lines += tuple(emulated_pins(profiles.load(profile, lines), pins))
    wire_options = [
        f"--wire={first},{second}" for first, second in wires(profiles.load(profile, lines))
    ]
    argv = [
        sys.executable,
        "-m",
        "fpvcar",
        "bench",
        f"--port={port}",
        f"--profile={profile}",
        *(f"--set={line}" for line in lines),
        *(f"--really={line}" for line in really),
        *wire_options,
    ]
    env = {**os.environ, "RUNTIME_DIRECTORY": str(runtime)}
    env["STATE_DIRECTORY"] = str(home / "state")
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            pdeathsig.with_pdeathsig(argv),
            stdout=log_file,
            stderr=subprocess.STDOUT,
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        wait_for(
            lambda: b"is ready" in log.read_bytes() or process.poll() is not None,
            "the bench did not start",
            READY_S,
        )
        if process.poll() is not None:
            raise OSError(f"the bench ended: {log.read_text(errors='replace')[-500:]}")
        rig = BenchRig(profile, lines, runtime, port, person)
        if rig.profile.pins.backend == "linux":
            kernel.install(runtime)
        yield rig
    finally:
        pdeathsig.end(process, END_S)

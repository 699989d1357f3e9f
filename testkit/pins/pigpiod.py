"""Emulator of pigpiod for tests: as a process, and as a core with a clock by hand.

emulator = start_emulator(tmp_path)     # .port, .soc, .process, .close()
core = make_core(tmp_path)              # core(Cmd.WRITE, 17, 1) -> result
core.run(20_000)                        # 20 ms later
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fpvbench import soc as chip
from fpvbench.chips.i2c import Bus
from fpvbench.pigpiod.buses.spi_buses import SpiDevice
from fpvbench.pigpiod.daemon import AttachedDevices, Client, Daemon, Pipes, Ultrasonic
from fpvbench.pigpiod.edges.notify import REPORT
from fpvbench.pigpiod.protocol import Cmd, Outcome, Request, Wait, signed

READY = "pigpiod emulator: listening on "
START_US = 1_000_000


@dataclass
class Emulator:
    """Running emulator; `soc` is the chip that it drives."""

    process: "subprocess.Popen[str]"
    port: int
    soc: chip.Soc

    def close(self) -> int:
        """End the process in order; return its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(60.0)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


def start_emulator(tmp_path: Path, *options: str, port: int = 0, fresh: bool = True) -> Emulator:
    """Start `python -m fpvbench.pigpiod` and wait until it listens."""
    path = tmp_path / "soc"
    if fresh or not path.exists():
        chip.create(path)
    argv = [sys.executable, "-m", "fpvbench.pigpiod", "--soc", str(path)]
    process = subprocess.Popen(
        [*argv, "--port", str(port), *options], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith(READY):
        process.stdout.close()
        raise RuntimeError(f"exit status {process.wait(60.0)}")
    return Emulator(process, int(line.rsplit(":", 1)[1]), chip.attach(path))


@contextmanager
def emulator(tmp_path: Path, *options: str) -> Iterator[Emulator]:
    """Run `start_emulator` for a with statement."""
    running = start_emulator(tmp_path, *options)
    try:
        yield running
    finally:
        running.close()


@dataclass(frozen=True)
class Report:
    """Notification sent to a client."""

    sequence: int
    flags: int
    tick: int
    levels: int


@dataclass(eq=False)
class Reader:
    """Client that opened NOIB; `level_edges` are the edges it received."""

    handle: int = -1
    data: bytearray = field(default_factory=bytearray)

    def take(self) -> list[Report]:
        """Return the reports since the last call."""
        reports = [Report(*entry) for entry in REPORT.iter_unpack(bytes(self.data))]
        self.data.clear()
        return reports

    def edges(self, gpio: int) -> list[tuple[int, int]]:
        """Return (tick, level of a pin) of the changes since the last call."""
        return [(r.tick, r.levels >> gpio & 1) for r in self.take() if r.flags == 0]


class Core:
    """Daemon without sockets; time stands until `run`."""

    def __init__(self, soc: chip.Soc, attached: AttachedDevices) -> None:
        self.soc, self.now_us = soc, START_US
        self.daemon = Daemon(soc, attached, self.now_us)

    def __call__(self, cmd: int, p1: int = 0, p2: int = 0, ext: bytes = b"") -> int:
        """Return a command's result, after its wait if it has one."""
        outcome = self.raw(cmd, p1, p2, ext)
        return signed(outcome if isinstance(outcome, int) else len(outcome))

    def raw(self, cmd: int, p1: int = 0, p2: int = 0, ext: bytes = b"") -> int | bytes:
        """Return a command's result or payload."""
        outcome = self.start(cmd, p1, p2, ext)
        while isinstance(outcome, Wait):
            self.run(outcome.until_us - self.now_us)
            outcome = outcome.finish(self.now_us)
        return outcome

    def start(self, cmd: int, p1: int = 0, p2: int = 0, ext: bytes = b"") -> Outcome:
        """Start a command; return its outcome without waiting."""
        request = Request(cmd, p1 & 0xFFFFFFFF, p2 & 0xFFFFFFFF, ext)
        return self.daemon.execute(None, request, self.now_us)

    def run(self, for_us: int) -> None:
        """Advance the time; run each due event at its time."""
        until_us = self.now_us + for_us
        while True:
            due_us = self.daemon.due_us(self.now_us)
            if due_us is None or due_us > until_us:
                break
            self.now_us = max(due_us, self.now_us)
            self.daemon.advance(self.now_us)
        self.now_us = until_us

    def reader(self, bits: int) -> Reader:
        """Open a connection that gets reports of these GPIO."""
        reader = Reader()

        def sink(data: bytes) -> bool:
            reader.data += data
            return True

        request = Request(Cmd.NOIB)
        outcome = self.daemon.execute(Client(sink), request, self.now_us)
        assert isinstance(outcome, int)
        reader.handle = outcome
        assert self(Cmd.NB, reader.handle, bits) == 0
        return reader


def words(*values: int) -> bytes:
    """Return an extension of u32 values."""
    return b"".join((value & 0xFFFFFFFF).to_bytes(4, "little") for value in values)


def checks(*rows: tuple[Any, ...]) -> list[tuple[str, int, int, int, bytes]]:
    """Return (command, p1, p2, result, extension) from rows of a command and its
    (p1, p2, result) or (p1, p2, result, extension)."""
    return [
        (command, p1, p2, result, *(extension or [b""]))
        for command, *cases in rows
        for p1, p2, result, *extension in cases
    ]


def make_core(
    tmp_path: Path,
    buses: dict[int, Bus] | None = None,
    ultrasonics: Sequence[Ultrasonic] = (),
    pipes: Pipes | None = None,
    wires: Sequence[tuple[int, int]] = (),
    spi: Mapping[int, SpiDevice] | None = None,
) -> Core:
    """Make a core on a fresh chip."""
    path = tmp_path / "soc"
    chip.create(path)
    attached = AttachedDevices(buses or {1: Bus()}, ultrasonics, pipes or Pipes(), wires, spi or {})
    return Core(chip.attach(path), attached)


def stored_wave(core: Core, *pulses: tuple[int, int, int]) -> int:
    """Store a wave of (on, off, microseconds); return its number."""
    core(Cmd.WVNEW)
    assert core(Cmd.WVAG, 0, 0, words(*sum(pulses, ()))) >= 0
    return core(Cmd.WVCRE)


def square(core: Core, high_us: int, low_us: int, pin: int = 1 << 4) -> int:
    """Store a wave that is high, then low; return its number."""
    return stored_wave(core, (pin, 0, high_us), (0, pin, low_us))


def grid(time_us: int) -> int:
    """Round a time up to the 5 us at which waves change levels."""
    return -(-time_us // 5) * 5

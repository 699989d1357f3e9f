"""A real bench in real processes, and a watch on the motor pins of its chip."""

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fpvbench import soc as chip
from fpvcar.config import profiles
from fpvcar.drive import saved
from fpvcar.hil.pin_recorder import Scope
from fpvcar.runtime import paths
from testkit.network.ports import free_port

T = TypeVar("T")
READY_S = 60.0
NO_GUARD = '--set=guard.mode = "off"'
"""Measurements of stops drive at full throttle, wherever the car stands. An option that sets the
guard again wins."""
GUARD = '--set=guard.mode = "limit"'
"""The guard's setting in the bench's profile."""
STRIP = '--set=camera.source = "strip"'
"""A camera that renders no world: it starts at once, costs little, and fills the bitrate with
any content. For tests that do not look at the room."""
FEW = ("--set=camera.width = 320", "--set=camera.height = 240", "--set=camera.fps = 10")
"""Few pictures, for tests that look at the room, but not closely."""
SMALL = (STRIP, *FEW)
"""Few pictures: encoder, decoder and page cost a third. For tests that look at no picture."""


def wait_for(
    what: Callable[[], bool], words: str, timeout_s: float = 20.0, every_s: float = 0.01
) -> float:
    """Wait until `what()` holds; return the seconds it took. Fails with `words`."""
    start = time.monotonic()
    while not what():
        if time.monotonic() - start > timeout_s:
            raise AssertionError(f"{words}: not within {timeout_s} s")
        time.sleep(every_s)
    return time.monotonic() - start


def usual_s(one_run: Callable[[], float], limit_s: float) -> float:
    """Return the time of a run, or, if it exceeds its limit, the median of three more: a busy
    machine delays one run or another, a fault most. `make benchmark` reports the worst."""
    first_s = one_run()
    if first_s <= limit_s:
        return first_s
    more_s = [one_run() for _ in range(3)]
    print(f"late: {first_s:.3f} s; measured again: {more_s}")
    return statistics.median(more_s)


def apart(work: Callable[[], T]) -> T:
    """Run work in a thread. The main thread may have Playwright's event loop, and then no other."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run tasks of this event loop; cancel them at the end."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@contextmanager
def beside() -> Iterator[Callable[[Coroutine[Any, Any, None]], None]]:
    """Run an event loop in a thread; yield a function that runs work there and waits for it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(20.0)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class PinWatch(Scope):
    """Watch on the chip's motor pins (forward, reverse, left, right); keeps each change."""

    def __init__(self, soc: chip.Soc, pins: Sequence[int]) -> None:
        super().__init__(self.duties)
        self._soc, self._pins = soc, pins

    def duties(self) -> tuple[float, ...]:
        """Return the present duties of the motor pins."""
        return tuple(self._soc.pin[gpio].duty() for gpio in self._pins)

    def faults(self) -> list[str]:
        """Return the faults of an ESC's pulses; other motors have none."""
        return []

    def stopped_after_s(self, since_ns: int) -> float:
        """Return the seconds from `since_ns` to the last time at which the pins drove."""
        assert not self.now.driving, f"the motors still run: {self.now}"
        return super().stopped_after_s(since_ns)


class RunningBench:
    """`fpvcar bench` as a user starts it, on free ports, with a home of its own."""

    def __init__(
        self,
        home: Path,
        *options: str,
        env: dict[str, str] | None = None,
        make: bool = False,
        named: bool = True,
    ) -> None:
        """Start the bench; `make` starts it by `make run`, as in the README.

        A car that is not `named` asks its first driver for a name.
        """
        self.port = free_port()
        self.pigpio_port = free_port()
        self.runtime = home / "run"
        self.state = home / "state"
        self.log_path = home / "log"
        self.url = f"http://localhost:{self.port}/"
        if named and not self.state.exists():
            self.state.mkdir(mode=0o700)
            own = profiles.load(paths.HARDWARE / "bench.toml").car.name
            saved.write(self.state / saved.FILE, saved.SavedSettings(car=saved.SavedName(own, own)))
        self.pins = profiles.load(paths.HARDWARE / "bench.toml").motor_pins()
        argv = [
            sys.executable,
            "-m",
            "fpvcar",
            "bench",
            "-v",
            f"--port={self.port}",
            f"--set=pins.port = {self.pigpio_port}",
            NO_GUARD,
            *options,
        ]
        if make:
            argv = [
                "make",
                "run",
                "BROWSER=0",
                f"PORT={self.port}",
                f"PIGPIO_PORT={self.pigpio_port}",
                f"STORE={home / 'store'}",
                f"STATION_PORT={free_port()}",
                *options,
            ]
        argv = ["setpriv", "--pdeathsig=TERM", *argv]  # a killed test leaves no bench
        self._log = self.log_path.open("wb")
        self.process = subprocess.Popen(
            argv,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[1],
            start_new_session=True,
            env={
                **os.environ,
                "RUNTIME_DIRECTORY": str(self.runtime),
                "STATE_DIRECTORY": str(self.state),
                **(env or {}),
            },
        )

    def wait_ready(self) -> "RunningBench":
        """Wait until the page can be opened."""
        wait_for(
            lambda: "is ready" in self.log() or self.process.poll() is not None,
            "the bench did not start",
            READY_S,
        )
        assert self.process.poll() is None, self.log()
        self.soc = chip.attach(self.runtime / "soc")
        return self

    def log(self) -> str:
        """Return all output so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def pid(self, unit: str) -> int:
        """Return the process id of pigpiod, world, wheels or run; wait until it runs (again)."""

        found: list[int] = []

        def runs() -> bool:
            pid = json.loads((self.runtime / "units.json").read_text())[unit]
            found.extend([pid] if pid is not None else [])
            return bool(found)

        wait_for(runs, f"{unit} is not running")
        return found[0]

    def kill(self, unit: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal; return CLOCK_MONOTONIC in ns just before."""
        pid, now_ns = self.pid(unit), time.monotonic_ns()
        os.kill(pid, number)
        return now_ns

    def children(self) -> list[int]:
        """Return every live process of this bench, including the camera."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environ = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"RUNTIME_DIRECTORY={self.runtime}".encode() in environ and state != "Z":
                found.append(int(entry.name))
        return found

    def cameras(self) -> list[int]:
        """Return the camera process, a child of `run`."""
        found = []
        for pid in self.children():
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"camera\0bench\0" in command:
                found.append(pid)
        assert found, "no camera process"
        return found

    def watch(self) -> PinWatch:
        """Return a watch on the motor pins."""
        return PinWatch(self.soc, self.pins)

    def world(self) -> chip.World:
        """Return the world's last tick."""
        return chip.read_world(self.soc)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the bench as a user would; return the exit status."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)  # as a terminal does
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"Ctrl-C did not end it:\n{self.log()}") from None
        finally:
            self._log.close()
        return status


@contextmanager
def started(home: Path, *options: str) -> Iterator[RunningBench]:
    """Start a bench, and end it after the block. Its output is printed for a test that fails."""
    bench = RunningBench(home, *options)
    try:
        yield bench.wait_ready()
    finally:
        bench.stop()
        print(bench.log())

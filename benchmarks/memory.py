"""Resident memory with a driver and a viewer; checks for heavy libraries."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from testkit.cameras.camera import Camera
from testkit.harness import GUARD

from benchmarks.rig import Settings, opened, running
from benchmarks.rows import Aim, Result, Row, row


def resident_mb(pid: int) -> float:
    """Return VmRSS of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no memory")


def share_mb(pid: int) -> float:
    """Return Pss of a process in MB: shared pages are divided among their users."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no memory")


HEAVY = ("numpy", "mujoco", "libav", "OpenGL")


def heavy(pid: int) -> list[str]:
    """Return the heavy libraries that a process has mapped."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return [name for name in HEAVY if name in maps]


GUARDED = """
import sys
import fpvcar.wheels.__main__
from fpvcar.runtime import mlock
from fpvcar.devices.guardian import Guardian
from fpvcar.devices.linux import gpio
mlock.lock()
guardian = Guardian(lambda: lambda: None)
print(guardian.pid, flush=True)
sys.stdin.read()
guardian.remove()
"""
"""Imports of `wheels` on systems that need a guardian."""
UNITS = 90
"""Number of units from a camera: three seconds of pictures."""


def guardian() -> Row:
    """Measure a guardian forked from a process as large as `wheels`, with only these two
    running."""
    with subprocess.Popen(
        [sys.executable, "-c", GUARDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as wheels:
        assert wheels.stdin is not None and wheels.stdout is not None
        share = [share_mb(int(wheels.stdout.readline()))]
        wheels.stdin.close()
    return row("memory", "guardian, its share", "MB", share, Aim(worst=8.0))


def camera(board: str, name: str) -> Row:
    """Measure the real picamera2 with a fake libcamera."""
    source = Camera(
        "--width=640", "--height=480", program="testkit.cameras.fake_picamera", PICAMERA_BOARD=board
    )
    try:
        for _ in range(UNITS):
            source.record()
        resident = [resident_mb(source.process.pid)]
    finally:
        source.close()
    return row("memory", f"camera picamera2, {name}, resident", "MB", resident)


def rows(settings: Settings) -> Iterator[Result]:
    """Measure `run` and `wheels` with one driver who watches; then their helpers alone."""
    yield guardian()
    yield camera("pi5", "libx264")
    with settings.chromium() as browser, running(GUARD) as bench, opened(browser, bench.url):
        time.sleep(5.0)
        for unit, limit in (("run", 45.0), ("wheels", 20.0)):
            pid = bench.pid(unit)
            resident, mapped = [resident_mb(pid)], ", ".join(heavy(pid))
            yield row(
                "memory",
                f"{unit}, resident",
                "MB",
                resident,
                Aim(worst=limit),
                f"has {mapped} mapped" if mapped else "",
            )

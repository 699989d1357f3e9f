"""Duration of `fpvcar replay` over ten minutes of a drive in ten files."""

import itertools
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from testkit import mcaps
from testkit.mcaps import BEGAN_NS, Drive, McapFile
from testkit.recorder.recording import DELTA, KEY

from fpvcar.runtime.units import SECOND_NS

MINUTES, RUNS = 10, 3
FPS, UNIT = 30, 2_000_000 // 8 // 30
FILE_NS = 60 * SECOND_NS


def units() -> Iterator[tuple[bool, bytes]]:
    """Yield undecodable units of 2 Mbit/s; a key frame each second."""
    noise = random.Random(2).randbytes(UNIT)
    for number in itertools.count():
        key = number % FPS == 0
        yield key, (KEY if key else DELTA) + noise


def drive(folder: Path) -> int:
    """Write the drive by the real gate with a guard that limits; return its bytes."""
    logging.getLogger("fpvcar.gate").setLevel(logging.ERROR)  # many events in it
    car = Drive(1)
    steps, size, at = car.go(MINUTES * 60.0), 0, 0
    film = list(mcaps.filmed(car.captures, units()))
    for number in range(MINUTES):
        start_ns, first = BEGAN_NS + number * FILE_NS, at
        while at < len(steps) and (steps[at].now_ns + mcaps.OFFSET_NS < start_ns + FILE_NS):
            at += 1
        pictures = [picture for picture in film if start_ns <= picture.log_ns < start_ns + FILE_NS]
        contents = [
            *pictures,
            *mcaps.step_messages(steps[first:at]),
            *mcaps.measured(60.0, number * 60.0),
        ]
        mcap_file = McapFile(contents, number + 1, car.profile)
        size += mcap_file.to(folder / f"{mcaps.RECORDING}-{number + 1:04d}.mcap").stat().st_size
    return size


def seconds() -> tuple[list[float], str]:
    """Return the duration of each run, including the program's start, and the output of the
    last."""
    with tempfile.TemporaryDirectory(prefix="fpvcar-bench-") as place:
        size, times_s, speed = drive(Path(place)), [], ""
        for _ in range(RUNS):
            began_s = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "fpvcar", "replay", place], capture_output=True, text=True
            )
            times_s.append(time.monotonic() - began_s)
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
            speed = done.stdout.partition(": ")[2].partition(" (")[0]
        return times_s, f"{speed}; {size / 1e6:.0f} MB"

"""Recordings of drives for datasets, and the foreign programs that read the results."""

import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fpvcar.drive import gate
from fpvcar.recordings import messages, names
from fpvcar.runtime.units import SECOND_NS
from testkit import mcaps
from testkit.mcaps import BEGAN_NS, Logged, McapFile
from testkit.recorder.recording import step

VALIDATORS = Path(sys.prefix) / "validators"
"""Packages of requirements-validators.lock: see tools/setup.sh."""
STEPS = 30


def driven(
    seconds: float, start_s: float = 0.0, driver: str = "Ann", seed: int = 1, stops: bool = True
) -> Iterator[Logged]:
    """Yield a turn of one driver without its pictures: wishes, ranges, volts, and one stop."""
    chance = random.Random(seed)
    yield mcaps.logged(messages.DRIVER, start_s, messages.Turn(driver, "takes the wheel"))
    throttle = steer = 0.0
    count = round(seconds * STEPS)
    for number in range(count):
        at_s = start_s + number / STEPS
        throttle = 0.5 + 0.4 * math.sin(at_s * 1.3 + seed) + chance.uniform(-0.05, 0.05)
        steer = 0.8 * math.cos(at_s * 0.7 + seed) + chance.uniform(-0.05, 0.05)
        stopped = stops and count // 2 <= number < count // 2 + 5
        hold = gate.Hold(gate.Cause.ESTOP, driver) if stopped else None
        now_ns = round((100 + at_s) * SECOND_NS)
        more = {
            "wish": messages.Wish(throttle, steer, 100 + at_s - 0.01),
            "throttle": 0.0 if stopped else throttle * 0.8,
            "steer": steer * 0.9,
            "volts": 7.6 - at_s % 60 / 100 + chance.uniform(-0.05, 0.05),
            "reason": "stopped" if stopped else "driving",
            "after": gate.Latches(None, hold),
        }
        yield mcaps.logged(messages.STEP, at_s, step(now_ns, **more))
        range_m = 1.5 + math.sin(at_s + seed) + chance.uniform(0.0, 0.1)
        yield mcaps.logged("/range/front", at_s, messages.Reading(0.0, range_m))
    released = step(round((100 + start_s + seconds) * SECOND_NS), reason="nobody", wish=None)
    yield mcaps.logged(messages.STEP, start_s + seconds, released)
    yield mcaps.logged(messages.DRIVER, start_s + seconds, messages.Turn(None, "left"))


def filmed(seconds: float, start_s: float = 0.0, **look: int) -> list[Logged]:
    """Return the pictures of a drive, with a key frame each second."""
    start_ns = BEGAN_NS + round(start_s * SECOND_NS)
    look = {"gop": 30, "noise": 60, **look}
    return list(mcaps.pictures(seconds, start_ns, **look))


def drive(folder: Path, number: int = 0, seconds: float = 6.0, driver: str = "Ann") -> Path:
    """Write a recording of one drive in the minute `number`, as one file; return its path."""
    start_s = 60.0 * number
    recording = names.recording_name("Plague", BEGAN_NS + round(start_s * SECOND_NS))
    logged = [*filmed(seconds, start_s), *driven(seconds, start_s, driver, seed=number + 1)]
    return McapFile(logged, recording=recording).to(folder / names.file_name(recording, 1))


def foreign(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python code with the validators' packages; stderr goes to stdout."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(VALIDATORS), "NO_COLOR": "1", "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )

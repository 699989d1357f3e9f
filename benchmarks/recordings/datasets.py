"""Duration of `fpvcar log export` per GB of recordings: with and without `--copy`, and as a tub.

A drive of 2 Mbit/s in files of a minute, by the real gate's record of a scripted driver.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from testkit import mcaps
from testkit.cameras.video_source import encode
from testkit.mcaps import BEGAN_NS, FPS, FRAME_NS, Logged, McapFile
from testkit.recorder import datasets

from benchmarks.rig import Settings, say
from benchmarks.rows import Aim, Row
from fpvcar.recordings import codec, messages
from fpvcar.runtime.units import SECOND_NS

PART = "datasets"
MINUTES = int(os.environ.get("DATASET_MINUTES", "10"))
GB, RUNS = 1e9, 3
FILM, NOISE = 300, 7
"""Pictures that are repeated, and their noise: some 2 Mbit/s at 640x480."""


def pictures(units: tuple[bytes, ...], minute: int) -> Iterator[Logged]:
    """Yield the pictures of a minute, with a key frame each second."""
    for number in range(minute * 60 * FPS, (minute + 1) * 60 * FPS):
        capture_ns = BEGAN_NS + number * FRAME_NS
        data = codec.encode(messages.Picture(capture_ns, units[number % FILM]))
        key = number % FPS == 0
        yield Logged(capture_ns + 15_000_000, messages.CAMERA, data, key, capture_ns)


def record(folder: Path) -> int:
    """Write a drive; return its bytes."""
    units = encode(FILM, gop=FPS, width=640, height=480, noise=NOISE)
    driven = sorted(datasets.driven(MINUTES * 60.0), key=lambda one: one.log_ns)
    minutes = itertools.groupby(driven, lambda one: (one.log_ns - BEGAN_NS) // (60 * SECOND_NS))
    of_minute = {minute: list(group) for minute, group in minutes}
    size = 0
    for minute in range(MINUTES):
        contents = [*pictures(units, minute), *of_minute[minute]]
        file = McapFile(contents, minute + 1, sequence_from=minute * 60 * FPS)
        path = file.to(folder / f"{mcaps.RECORDING}-{minute + 1:04d}.mcap")
        size += path.stat().st_size
    return size


def rows(settings: Settings) -> Iterator[Row]:
    """Yield the seconds per GB of each kind of export."""
    say(f"exporting {MINUTES} minutes as datasets")
    kinds = {
        "LeRobot, --copy": ["--lerobot", "--copy"],
        "LeRobot, encoded": ["--lerobot"],
        "LeRobot, encoded at 160x120": ["--lerobot", "--size=160x120"],
        "Donkeycar": ["--donkey"],
    }
    with tempfile.TemporaryDirectory(prefix="fpvcar-bench-") as place:
        card, out = Path(place, "card"), Path(place, "out")
        card.mkdir()
        size = record(card)
        for name, (kind, *options) in kinds.items():
            values = []
            for _ in range(RUNS if "--copy" in options else 1):
                began_s = time.monotonic()
                subprocess.run(
                    [sys.executable, "-m", "fpvcar", "log", "export", kind, out, *options, card],
                    check=True,
                    capture_output=True,
                )
                values.append((time.monotonic() - began_s) * GB / size)
                shutil.rmtree(out)
            aim = Aim(median=60) if "--copy" in options else Aim()
            note = f"{size / 1e6:.0f} MB of recordings"
            yield Row(PART, f"dataset of 1 GB: {name}", "s", tuple(values), aim, note)

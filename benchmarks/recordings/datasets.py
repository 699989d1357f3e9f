"""Duration of `fpvcar log export` per GB of recordings: with and without `--copy`, and as a tub.

A drive of 3 Mbit/s in files of a minute, with the messages of a scripted driver. Each run is a
process of its own, as at a terminal, and its start counts. Encoding is slow: it gets a part of the
drive.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
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
MINUTES, ENCODED_MINUTES = int(os.environ.get("DATASET_MINUTES", "12")), 2
"""Minutes of the drive: some 260 MB, so that the start of the program is a small share."""
GB, RUNS = 1e9, 3
FILM, NOISE = 300, 8
"""Pictures that are repeated, and their noise: some 3 Mbit/s at 640x480."""


def pictures(units: tuple[bytes, ...], minute: int) -> Iterator[Logged]:
    """Yield the pictures of a minute, with a key frame each second."""
    for number in range(minute * 60 * FPS, (minute + 1) * 60 * FPS):
        capture_ns = BEGAN_NS + number * FRAME_NS
        data = codec.encode(messages.Picture(capture_ns, units[number % FILM]))
        key = number % FPS == 0
        yield Logged(capture_ns + 15_000_000, messages.CAMERA, data, key, capture_ns)


def record(folder: Path) -> list[Path]:
    """Write a drive; return its files in order."""
    units = encode(FILM, gop=FPS, width=640, height=480, noise=NOISE)
    driven = sorted(datasets.driven(MINUTES * 60.0), key=lambda one: one.log_ns)
    minutes = itertools.groupby(driven, lambda one: (one.log_ns - BEGAN_NS) // (60 * SECOND_NS))
    of_minute = {minute: list(group) for minute, group in minutes}
    paths = list[Path]()
    for minute in range(MINUTES):
        contents = [*pictures(units, minute), *of_minute[minute]]
        file = McapFile(contents, minute + 1, sequence_from=minute * 60 * FPS)
        paths.append(file.to(folder / f"{mcaps.RECORDING}-{minute + 1:04d}.mcap"))
    return paths


def seconds(out: Path, paths: Sequence[Path], options: Sequence[str]) -> float:
    """Export the recordings; return the duration. Raises CalledProcessError."""
    kind, *others = options
    began_s = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "fpvcar", "log", "export", kind, out, *others, *paths],
        check=True,
        capture_output=True,
    )
    took_s = time.monotonic() - began_s
    shutil.rmtree(out)
    return took_s


def rows(settings: Settings) -> Iterator[Row]:
    """Yield the seconds per GB of each kind of export."""
    say(f"exporting {MINUTES} minutes as datasets, and {ENCODED_MINUTES} encoded")
    kinds = {
        "LeRobot, --copy": ["--lerobot", "--copy"],
        "LeRobot, encoded": ["--lerobot"],
        "LeRobot, encoded at 160x120": ["--lerobot", "--size=160x120"],
        "Donkeycar": ["--donkey"],
    }
    with tempfile.TemporaryDirectory(prefix="fpvcar-bench-") as place:
        card, out = Path(place, "card"), Path(place, "out")
        card.mkdir()
        recorded = record(card)
        for name, options in kinds.items():
            copied = "--copy" in options
            paths = recorded if copied else recorded[:ENCODED_MINUTES]
            size = sum(path.stat().st_size for path in paths)
            values = tuple(seconds(out, paths, options) * GB / size for _ in range(RUNS))
            aim = Aim(median=60) if copied else Aim()
            note = f"{size / 1e6:.0f} MB of recordings"
            yield Row(PART, f"dataset of 1 GB: {name}", "s", values, aim, note)

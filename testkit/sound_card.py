"""Emulated sound card: programs named aplay and arecord, run by the car as it runs ALSA's."""

import math
import os
import sys
import time
from pathlib import Path

TONE_HZ = 440.0
RATE_HZ = 16000
APLAY = """#!/bin/sh
echo $$ >>"{folder}/pids"
exec cat >>"{folder}/played"
"""
ARECORD = """#!{python} -SE
import os, sys, time
with open("{folder}/pids", "a") as pids:
    print(os.getpid(), file=pids)
with open("{folder}/tone", "rb") as file:
    tone = file.read()
start = time.monotonic()
for number in range(100_000):
    time.sleep(max(0.0, start + number * 0.02 - time.monotonic()))
    sys.stdout.buffer.write(tone[:320])
    sys.stdout.buffer.flush()
    tone = tone[320:] + tone[:320]
"""
HUNG = """#!/bin/sh
echo $$ >>"{folder}/pids"
trap '' TERM
while :; do sleep 60; done
"""
BROKEN = """#!/bin/sh
echo "audio open error: Device or resource busy" >&2
exit 1
"""


def mu_law(level: float) -> int:
    """Return the code of G.711 for a level from -1 to 1."""
    size = min(32635, round(abs(level) * 32768)) + 132
    segment = size.bit_length() - 8
    return ~((0x80 if level < 0 else 0) | segment << 4 | (size >> segment + 3 & 15)) & 0xFF


def linear(code: int) -> float:
    """Return the level of a code of G.711."""
    code = ~code & 0xFF
    size = (((code & 15) << 3) + 132 << (code >> 4 & 7)) - 132
    return (-size if code & 0x80 else size) / 32768


class SoundCard:
    """Folder for PATH with the programs; it has their process ids and the played sound."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        second = (math.sin(2 * math.pi * TONE_HZ * n / RATE_HZ) for n in range(RATE_HZ))
        (folder / "tone").write_bytes(bytes(mu_law(level / 2) for level in second))
        (folder / "pids").touch()
        (folder / "played").touch()
        self.install(aplay=APLAY, arecord=ARECORD)

    @property
    def path(self) -> str:
        """PATH with the programs first."""
        return f"{self.folder}:{os.environ['PATH']}"

    def install(self, **scripts: str) -> None:
        """Write the programs of the card."""
        for name, script in scripts.items():
            file = self.folder / name
            file.write_text(script.format(folder=self.folder, python=sys.executable))
            file.chmod(0o755)

    def remove(self, name: str) -> None:
        """Remove a program of the card."""
        (self.folder / name).unlink()

    def played(self) -> bytes:
        """Return all sound that was played."""
        return (self.folder / "played").read_bytes()

    def started(self) -> int:
        """Return how many times a program was started."""
        return len((self.folder / "pids").read_text().split())

    def running(self) -> list[int]:
        """Return the programs that run now."""
        return [pid for pid in map(int, (self.folder / "pids").read_text().split()) if alive(pid)]


def alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def frequency_hz(sound: bytes) -> float:
    """Return the frequency of a tone in mu-law, by its rising zero crossings."""
    levels = [linear(code) for code in sound]
    rising = [
        n for n, (one, two) in enumerate(zip(levels, levels[1:], strict=False)) if one < 0 <= two
    ]
    return (len(rising) - 1) * RATE_HZ / (rising[-1] - rising[0]) if len(rising) > 2 else 0.0


def now_us() -> int:
    """Return the time of the car's clock."""
    return time.monotonic_ns() // 1000

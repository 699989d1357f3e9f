"""Watcher of LEDs: `python -m benchmarks.leds SOC GPIO...` prints when each is lit.

It runs in its own process, with raised priority if permitted: its delays would be attributed to the
car. One line per change: GPIO, 1 or 0, CLOCK_MONOTONIC in ms.
"""

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from fpvbench import soc as chips

LOOK_S = 0.0005
IN_FRONT = -15


class LedWatch:
    """Times at which each LED was lit, ms, and its current state."""

    def __init__(self, soc: Path, gpios: Sequence[int]) -> None:
        self.lit_ms: dict[int, list[float]] = {gpio: [] for gpio in gpios}
        self.lit = dict.fromkeys(gpios, False)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.leds", str(soc), *map(str, gpios)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=Path(__file__).resolve().parents[1],
        )
        self._thread = threading.Thread(target=self._hear, daemon=True)

    def __enter__(self) -> "LedWatch":
        assert self._process.stdout is not None
        self._process.stdout.readline()  # the watcher has started
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._thread.join()
        self._process.stdout.close()
        self._process.wait()

    def _hear(self) -> None:
        for line in self._process.stdout or ():
            gpio, lit, at_ms = line.split()
            if lit == "1":
                self.lit_ms[int(gpio)].append(float(at_ms))
            self.lit[int(gpio)] = lit == "1"


def main(path: str, *numbers: str) -> None:
    """Print changes until stdin ends."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, IN_FRONT)
        Path("/proc/self/autogroup").write_text(str(IN_FRONT))
    soc = chips.attach(Path(path))
    pins = {int(number): soc.pin[int(number)] for number in numbers}
    lit = dict.fromkeys(pins, False)
    print("begun", flush=True)
    while not select.select([sys.stdin], [], [], LOOK_S)[0]:
        for gpio, pin in pins.items():
            now = pin.duty() > 0.0
            if now is not lit[gpio]:
                lit[gpio] = now
                print(gpio, int(now), time.monotonic() * 1000.0, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

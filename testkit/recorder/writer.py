"""Recorder in a process of its own, for tests that kill it.

`python -m testkit.recorder.writer FOLDER KEY=VALUE...` writes 30 pictures and 50 steps a
second.

Each step is printed on stdout, after it was handed to the recorder: its time in ns
(CLOCK_MONOTONIC), and the recorder's state. SIGTERM seals and ends.
"""

import signal
import sys
import threading
import time
from pathlib import Path

from fpvcar.config import profiles
from fpvcar.recorder.setup import CarRecorder
from fpvcar.recordings import messages
from fpvcar.runtime import paths
from testkit.recorder.recording import DELTA, KEY, played_sources, step

STEP_S, PICTURE_S = 1 / 50, 1 / 30
GOP = 30


def main() -> int:
    folder, *overrides = sys.argv[1:]
    profile = profiles.load(paths.HARDWARE / "bench.toml", overrides)
    size = round(profile.camera.bitrate / 8 * PICTURE_S)
    sources = played_sources()
    recorder = CarRecorder(profile, Path(folder), sources).recorder
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    recorder.start()
    pictures, next_step_s = 0, time.monotonic()
    next_picture_s = next_step_s
    while not ending.is_set():
        now_s = time.monotonic()
        if now_s >= next_picture_s:
            key = pictures % GOP == 0
            unit = (KEY if key else DELTA) + bytes(size)
            recorder.picture(key, time.monotonic_ns(), unit)
            pictures += 1
            next_picture_s += PICTURE_S
        if now_s >= next_step_s:
            now_ns = time.monotonic_ns()
            recorder.put(messages.STEP, step(now_ns), now_ns)
            print(now_ns, recorder.status().state, flush=True)
            next_step_s += STEP_S
        time.sleep(max(0.0, min(next_step_s, next_picture_s) - time.monotonic()))
    recorder.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

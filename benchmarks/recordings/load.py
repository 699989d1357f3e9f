"""Recorder under a drive of so many seconds, faster than real time: prints the CPU of each
second in ms, as JSON. `python -m benchmarks.recordings.load FOLDER SECONDS`

The load is that of a real drive: 30 pictures at 2 Mbit/s, 50 runs of the gate (25 of them by a
wish) with a guard that limits by two ranges, 45 ranges, 12 battery readings, health, latency and a
blinking indicator; one fdatasync every 0.8 s.
"""

import json
import random
import sys
import time
from pathlib import Path

from testkit.recorder.recording import DELTA, KEY, PROFILE, played_sources

from fpvcar.drive import gate, mixing
from fpvcar.drive.control import GateRun
from fpvcar.drive.guard import Free
from fpvcar.recorder.setup import CarRecorder
from fpvcar.recorder.thread import Clock
from fpvcar.recordings import messages
from fpvcar.runtime.units import SECOND_NS
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire import telemetry, up
from fpvcar.wire.buttons import View

TICKS = 50
UNIT = 2_000_000 // 8 // 30
SYNC_TICKS = 40


class Drive:
    """Simulated car on a drive, on a clock that its ticks advance."""

    def __init__(self, folder: Path) -> None:
        self.now_ns, self.ticks = 1000 * SECOND_NS, 0
        ahead_ns = time.time_ns() - self.now_ns
        sources = played_sources(self._ranges, self._measured, self._battery)
        self.car = CarRecorder(
            PROFILE, folder, sources, Clock(lambda: self.now_ns, lambda: self.now_ns + ahead_ns)
        )
        self.feed = self.car.feed
        noise = random.Random(1).randbytes(UNIT)
        self.key, self.delta = KEY + noise, DELTA + noise

    def _ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        front, rear = 1 / 30, 1 / 15
        return (
            telemetry.Range("front", 0.0, 1.234, now_s % front),
            telemetry.Range("rear", 180.0, 0.567, now_s % rear),
        )

    def _measured(self) -> list[telemetry.Measured]:
        """Return readings of a VL53L0X at 30 Hz and an HC-SR04 at 15, by steps of 50."""
        names = [
            name for name, interval in (("front", 2), ("rear", 3)) if self.ticks % interval == 0
        ]
        return [telemetry.Measured(name, 0.0, 1.234, self.now_ns / 1e9) for name in names]

    def _battery(self, now_s: float) -> telemetry.Battery:
        return telemetry.Battery(7.4321, 1.234, 0.567, False, now_s % 0.08)

    def second(self) -> None:
        """Simulate one second of the drive."""
        for tick in range(TICKS):
            self.now_ns += SECOND_NS // TICKS
            self.ticks += 1
            self._tick(tick)
            if self.ticks % SYNC_TICKS == 0:
                self.car.thread.turn()
        for lit in (True, False, True):
            self.feed.panel(View(), (True, False, False, lit))
        report = up.Report("webcodecs", 12.5, 4.25, 29.9, 0)
        self.feed.latency("Ann", True, report, None)
        self.feed._second(lambda: messages.Health("ok", "ok", "ok", 2))

    def _tick(self, tick: int) -> None:
        now_s = self.now_ns / 1e9
        wish = gate.Wish(0.123456789 + tick / 1000, -0.25, now_s)
        latches = gate.Latches(None)
        if tick % 2 == 0:
            drive = up.Drive(self.ticks, now_s * 1000, wish.throttle, wish.steer, 1)
            self.feed.wish(drive, "Ann", "fresh", int(now_s * 1e6))
        if tick * 30 // TICKS != (tick - 1) * 30 // TICKS:
            key = tick == 0
            unit = self.key if key else self.delta
            self.feed.picture(AccessUnit(key, self.now_ns // 1000 - 9000, unit))
        self.feed.step(
            GateRun(
                self.now_ns,
                wish,
                latches,
                gate.World(0.0123456, None, 1.0, Free(0.4321 + tick / 1000, 0.9)),
                "limit",
                self._ranges(now_s),
                7.4321,
                mixing.Slew(0.12, -0.25, now_s - 0.0133),
                gate.Decision(wish.throttle, wish.steer, "driving", latches),
                (0.23456789, -0.3456789),
            )
        )


def main() -> int:
    folder, seconds = Path(sys.argv[1]), int(sys.argv[2])
    drive, costs = Drive(folder), []
    drive.second()  # one-time initialisation
    for _ in range(seconds):
        begin_s = time.process_time()
        drive.second()
        costs.append((time.process_time() - begin_s) * 1000.0)
    assert not drive.feed.broken and drive.car.recorder.dropped == 0
    drive.car.thread._end()
    print(json.dumps(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the camera program, yields its access units, restarts it, says what is wrong.

    child's stdout -> CameraProcess -> Records | Plain -> AccessUnit -> on_unit

Framed programs (`fpvcar camera ...`) take "key" and "bitrate N" on stdin.
"""

import asyncio
import contextlib
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fpvcar.child import CameraProcess
from fpvcar.config import ConfigError, Profile
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.units import Plain, Records, Splitter
from fpvcar.wire.errors import WireError

SILENCE_S = 2.0
START_S = 30.0
"""To the first byte; picamera2 needs 20 s to start on a Pi Zero."""
BACK_OFF_S, BACK_OFF_MOST_S = 0.2, 2.0
CLOSED_S, CLOSED = 0.2, "camera closed its output"
THAW_S = 0.05
WELL_S = 5.0
"""A life of this length with pictures resets the back-off."""
log = logging.getLogger("fpvcar.camera")


def argv_of(profile: Profile, soc: Path | None) -> tuple[list[str], bool]:
    """The camera program of a profile, and whether it is framed.

    `soc`: the emulated chip, for the bench's camera. No program: no camera.
    Raises ConfigError if the bench's camera is wanted without a bench.
    """
    camera = profile.camera
    if camera.command:
        return list(camera.command), False
    if camera.source == "none":
        return [], False
    if soc is None:
        raise ConfigError('camera.source = "bench" needs a bench: run `fpvcar bench`')
    options = {
        "--soc": soc,
        "--width": camera.width,
        "--height": camera.height,
        "--fps": camera.fps,
        "--bitrate": camera.bitrate,
        "--gop-s": camera.gop_s,
        "--source": "world" if camera.source == "bench" else camera.source,
    }
    words = [str(word) for pair in options.items() for word in pair]
    return [sys.executable, "-m", "fpvcar.bench.camera.process", *words], True


class Camera:
    """The camera, whatever becomes of its program. `on_unit` is called on the loop.

    Each life of the program begins, for `on_unit`, with a key frame. An empty argv
    is a car without a camera.
    """

    def __init__(
        self,
        argv: Sequence[str],
        framed: bool,
        on_unit: Callable[[AccessUnit], None],
        silence_s: float = SILENCE_S,
        start_s: float = START_S,
    ) -> None:
        self.argv, self.framed, self._on_unit = list(argv), framed, on_unit
        self.state = "starting" if argv else "none"
        """For the page: "ok", "starting", "none", or "lost: ..." and why."""
        self.process: CameraProcess | None = None
        self.restarts = 0
        self._silence_s, self._start_s = silence_s, start_s
        self._splitter = self._new_splitter()
        self._timer: asyncio.TimerHandle | None = None
        self._fault: asyncio.Future[str] | None = None
        self._bitrate: int | None = None
        self._began_s = self._bytes_s = self._unit_s = 0.0
        self._synced = False
        self._newest_us: int | None = None
        self._stopping = asyncio.Event()

    def age_s(self, now_s: float) -> float | None:
        """Age of the newest picture at CLOCK_MONOTONIC `now_s`; None without one."""
        if self._newest_us is None:
            return None
        return max(0.0, now_s - self._newest_us / 1e6)

    def request_key(self) -> bool:
        """Asks for a key frame. False: the program cannot, or is not there."""
        return self._say("key")

    def set_bitrate(self, bitrate: int) -> bool:
        """Asks for a bitrate in bit/s, now and after a restart. False as above."""
        self._bitrate = bitrate
        return self._say(f"bitrate {bitrate}")

    async def run(self) -> None:
        """Keeps the program running until `stop`, or until it is cancelled."""
        wait_s = BACK_OFF_S
        while self.argv and not self._stopping.is_set():
            reason = await self._live()
            if self._stopping.is_set():
                break
            self.state = f"lost: {reason}"
            self.restarts += 1
            log.warning("camera lost: %s", reason)
            if self._unit_s - self._began_s >= WELL_S:
                wait_s = BACK_OFF_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait_s)
            wait_s = min(BACK_OFF_MOST_S, 2 * wait_s)
        await self._stopping.wait()

    async def stop(self) -> None:
        """Ends the program within 1 s, and `run`."""
        self._stopping.set()
        if self.process is not None:
            await self.process.end()

    async def _live(self) -> str:
        """One life of the program; returns why it ended."""
        loop = asyncio.get_running_loop()
        self._splitter = self._new_splitter()
        self._fault = loop.create_future()
        self._synced = False
        self._began_s, self._bytes_s, self._unit_s = time.monotonic(), 0.0, 0.0
        if shutil.which(self.argv[0]) is None:
            return f"camera program not found: {self.argv[0]}"
        try:
            self.process = CameraProcess(self.argv, self.framed, self._bytes)
        except OSError as fault:
            return f"camera program {self.argv[0]}: {fault.strerror}"
        if self._bitrate is not None:
            self._say(f"bitrate {self._bitrate}")
        try:
            return await self._watch(self.process, self._fault)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            process, self.process = self.process, None
            await process.end()

    def _new_splitter(self) -> Splitter:
        return Records() if self.framed else Plain()

    async def _watch(self, process: CameraProcess, fault: "asyncio.Future[str]") -> str:
        signs: list[asyncio.Future[Any]] = [process.exited, fault]
        while True:
            late = self._late(time.monotonic())
            if isinstance(late, str):
                # We may have slept ourselves: what waits in the pipe counts first.
                await asyncio.sleep(THAW_S)
                late = self._late(time.monotonic())
            if isinstance(late, str):
                return late
            # The first byte and the first unit bring nearer deadlines: look again.
            pause_s = min(late, self._silence_s)
            await asyncio.wait(signs, timeout=pause_s, return_when="FIRST_COMPLETED")
            if process.exited.done():
                status = process.exited.result()
                how = f"exit {status}" if status >= 0 else f"signal {-status}"
                return f"{process.last_line or 'camera program ended'} ({how})"
            if fault.done():
                return fault.result()

    def _late(self, now_s: float) -> float | str:
        """How long to wait for the next sign of life, or what was missed."""
        if not self._bytes_s:
            left_s = self._began_s + self._start_s - now_s
            missed = f"camera wrote nothing for {self._start_s:g} s"
        elif not self._unit_s:
            left_s = self._bytes_s + self._silence_s - now_s
            missed = "camera writes, but no key frame of H.264 (expected Annex B)"
        else:
            left_s = self._unit_s + self._silence_s - now_s
            missed = f"camera silent for {self._silence_s:g} s"
        return left_s if left_s > 0.0 else self._explain(missed)

    def _explain(self, missed: str) -> str:
        line = self.process.last_line if self.process else ""
        return f"{missed}: {line}" if line else missed

    def _bytes(self, data: bytes) -> None:
        """The child wrote; b"": it closed its stdout."""
        now_ns, loop = time.monotonic_ns(), asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        if self._fault is None or self._fault.done():
            return
        if not data:  # its exit, which follows as a rule, says more
            self._deliver(self._splitter.idle(), now_ns)
            self._timer = loop.call_later(CLOSED_S, self._fail, CLOSED)
            return
        self._bytes_s = self._bytes_s or now_ns / 1e9
        try:
            self._deliver(self._splitter.feed(data, now_ns // 1000), now_ns)
        except WireError as fault:
            self._fail(str(fault))
            return
        if self._splitter.idle_s is not None:
            self._timer = loop.call_later(self._splitter.idle_s, self._idle)

    def _idle(self) -> None:
        self._deliver(self._splitter.idle(), time.monotonic_ns())

    def _fail(self, reason: str) -> None:
        if self._fault is not None and not self._fault.done():
            self._fault.set_result(reason)

    def _deliver(self, units: Iterable[AccessUnit], now_ns: int) -> None:
        for unit in units:
            self._synced = self._synced or unit.key
            if self._synced:
                self._unit_s = now_ns / 1e9
                self._newest_us = unit.capture_us
                self.state = "ok"
                self._on_unit(unit)

    def _say(self, line: str) -> bool:
        return self.process is not None and self.process.say(line)

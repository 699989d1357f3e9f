"""Wiring only: builds every part of `run` and hands each its collaborators."""

import asyncio
import gc
import logging
import signal
import ssl
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from fpvcar import __version__, paths, watchdog
from fpvcar.buttons.panel import Panel
from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.drive.control import Control
from fpvcar.drive.saved import Saver
from fpvcar.recorder.feed import Parts
from fpvcar.recorder.setup import CarRecorder
from fpvcar.recordings.library import files_in
from fpvcar.recordings.messages import Health, health_of
from fpvcar.sensors import depth_camera
from fpvcar.sensors.battery import BatterySensor
from fpvcar.sensors.computer import HealthThread
from fpvcar.sensors.depth_camera import DepthCamera
from fpvcar.sensors.ranges import Ranges
from fpvcar.sensors.suite import SensorSuite
from fpvcar.server import access, credentials, listener
from fpvcar.server.hub import Hub
from fpvcar.server.limits import LogRateLimit, connection_limit
from fpvcar.server.metrics import Metrics
from fpvcar.server.recordings_api import Recordings, Shown
from fpvcar.server.routes import Server, own_fault
from fpvcar.video.camera import Camera, argv_of
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Stream
from fpvcar.wheels.client import WheelsClient
from fpvcar.wire import down
from fpvcar.wire.errors import VERSION

DRIVE_EVERY_MS = 40
IDLE_S = 10.0
"""How long a connection may be without a whole request, its first one included."""
LINGER_S = 1.0
SWITCH_S = 0.001
"""A thread that was woken, or the loop, waits so long for another one's Python."""
log = logging.getLogger("fpvcar.run")


@dataclass(frozen=True)
class Options:
    """Where `run` listens, and what the bench tells it. `soc`: the emulated chip."""

    host: str
    port: int
    runtime: Path
    soc: Path | None = None


class Running:
    """All parts of one `run`, made in the order in which they need each other."""

    def __init__(self, profile: Profile, options: Options) -> None:
        self.profile, self.options = profile, options
        self.state_directory = paths.state_directory()
        self.tls = self._tls()
        directory = paths.recordings_directory(profile.recording.directory)
        self._make_video()
        self._make_senses(directory)
        self._make_control()
        self._make_recorder(directory)
        self._make_server()

    def _make_video(self) -> None:
        profile, soc = self.profile, self.options.soc
        self.stream = Stream(most_bitrate=profile.camera.bitrate)
        argv, framed = argv_of(profile, soc)
        self.camera = Camera(argv, framed, self._picture)
        self.stream.source = self.camera

    def _make_senses(self, disk: Path) -> None:
        profile, soc = self.profile, self.options.soc
        self.panel = Panel(profile)
        self.ranges = Ranges(profile)
        looks = depth_camera.argv_of(profile.depth, soc)
        self.eye = DepthCamera(looks, self.ranges.depth)
        self.fuel = BatterySensor(profile)
        self.health = HealthThread(backends.open_computer(disk))
        self.senses = SensorSuite(self.ranges, self.fuel, self.health)

    def _make_control(self) -> None:
        self.wheels = WheelsClient(
            self.options.runtime / "wheels.sock",
            on_answer=lambda answer: self.control.wheels_answer(answer),
            on_state=lambda state: self.control.wheels_state(state),
        )
        self.saver = Saver(self.state_directory)
        self.control = Control(
            self.profile,
            send=self.wheels.send,
            picture_age_s=self.camera.age_s,
            volts=lambda: self.fuel.volts(time.monotonic()),
            ranges=self.ranges.status,
            changed=lambda: self.hub.changed.set(),
            left=self.saver.before,
        )
        self.control.keep = self.saver.put
        self.control.weak = self.health.weak

    def _make_recorder(self, directory: Path) -> None:
        self.recorder = CarRecorder(
            self.profile,
            directory,
            Parts(self.ranges.status, self.senses.battery, self._health,
                  self.camera.request_key, tuple(self.panel.buttons)),
        )  # fmt: skip
        self.control.watcher = self.recorder.feed.step
        self.panel.watcher = self.recorder.feed.panel

    def _make_server(self) -> None:
        profile = self.profile
        door = access.CodeCheck(credentials.load_codes(self.state_directory))
        self.hub = Hub(
            profile, self.control, door, self.panel, self.camera, self.senses,
            self._welcome, recorder=self.recorder.feed,
        )  # fmt: skip
        self.metrics = Metrics(
            self.control, self.senses, self.stream, self.camera, self.hub,
            self.recorder.feed, pins=lambda: self.panel.state,
        )  # fmt: skip
        limits = profile.server
        self.limit = connection_limit(limits.max_connections, limits.max_per_address)
        self.server = Server(
            profile, self.hub, self.stream, paths.WEB, self.status, self.limit.know,
            self.metrics, self.panel, eye=self.eye,
            recordings=Recordings(
                lambda: files_in(self.recorder.directory),
                Shown(profile.car.name, seat=True), door,
                driven=lambda: self.control.decision.reason != "nobody",
            ),
        )  # fmt: skip

    def _picture(self, unit: AccessUnit) -> None:
        self.stream.publish(unit)  # first: nobody waits for the recorder
        self.recorder.feed.picture(unit)

    def _health(self) -> Health:
        return health_of(
            self.camera.state, self.control.wheels, self.panel.state,
            len(self.hub.sessions), self.senses.health(time.monotonic()),
        )  # fmt: skip

    def _tls(self) -> ssl.SSLContext | None:
        if access.is_loopback(self.options.host):
            return None
        names = (access.lan_address(), "localhost", self.profile.car.name.lower())
        try:
            return credentials.server_context(self.state_directory, names)
        except RuntimeError as fault:
            log.warning("https is off: %s", fault)
            return None

    def _welcome(self, code_needed: bool) -> down.Welcome:
        profile = self.profile
        return down.Welcome(
            v=VERSION,
            car=profile.car.name,
            version=__version__,
            clock_us=time.monotonic_ns() // 1000,
            silence_ms=round(profile.gate.silence_s * 1000),
            late_ms=round(profile.gate.late_s * 1000),
            drive_every_ms=DRIVE_EVERY_MS,
            width=profile.camera.width,
            height=profile.camera.height,
            fps=profile.camera.fps,
            https_port=self.options.port + 1 if self.tls else 0,
            code_needed=code_needed,
            has_lights=bool(profile.lights.head),
            has_horn=False,
        )

    def status(self) -> dict[str, object]:
        """What /api/status says."""
        decision, stop = self.control.decision, self.hub.stop()
        now_s = time.monotonic()
        return {
            "car": self.profile.car.name,
            "version": __version__,
            "reason": decision.reason,
            "stop": stop and {"cause": stop.cause, "by": stop.by},
            "duties": self.control.duties,
            "wheels": self.control.wheels,
            "camera": self.camera.state,
            "board": self.panel.state,
            "pages": self.hub.reports(),
            "video": [one.stats(now_s)._asdict() for one in self.stream.viewers],
            "bitrate_wanted": self.stream.bitrate.wanted,
        }

    async def _serve(self) -> None:
        runner = web.AppRunner(
            self.server.application(), access_log=None, shutdown_timeout=0.5,
            keepalive_timeout=IDLE_S, lingering_time=LINGER_S, auto_decompress=False,
        )  # fmt: skip
        logging.getLogger("aiohttp.server").addFilter(own_fault)
        for name in ("socket", "video", "door"):
            logging.getLogger(f"fpvcar.{name}").addFilter(LogRateLimit())
        await runner.setup()
        host, port = self.options.host, self.options.port
        assert runner.server is not None  # made by setup
        door = listener.Listener(self.limit, runner.server)
        try:
            await door.open(host, port)
            if self.tls is not None:
                await door.open(host, port + 1, self.tls)
            log.info("listening on %s:%d", host, port)
            await asyncio.Event().wait()
        finally:
            await door.close()
            await runner.cleanup()

    def jobs(self) -> list[Coroutine[Any, Any, None]]:
        """The loops of `run`. One that ends ends the service."""
        return [
            self.control.run(),
            self.wheels.run(),
            self.camera.run(),
            self.hub.run(),
            self.panel.watch(),
            self.panel.run(),
            self.ranges.watch(),
            self.fuel.watch(),
            self.eye.run(),
            self.health.watch(),
            self.saver.watch(),
            self.recorder.feed.run(),
            self._serve(),
            watchdog.run(watchdog.Watchdog()),
        ]


async def run(profile: Profile, options: Options) -> int:
    """Runs the car until SIGTERM or SIGINT, or until a part of it ends."""
    running = Running(profile, options)
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()  # what lives as long as `run`: to go through it takes a lease's time
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    running.recorder.recorder.start()
    running.saver.start()
    for part in (running.panel, running.ranges, running.fuel, running.health):
        part.start()
    jobs = [asyncio.create_task(job) for job in running.jobs()]
    asked = asyncio.create_task(ended.wait())
    try:
        done, _ = await asyncio.wait([*jobs, asked], return_when="FIRST_COMPLETED")
        for job in done - {asked}:
            fault = job.exception()
            known = fault is None or isinstance(fault, OSError)  # say, a busy port
            log.error("%s", fault or "a part ended", exc_info=None if known else fault)
        return 0 if asked in done else 1
    finally:
        for job in [*jobs, asked]:
            job.cancel()
        await asyncio.gather(*jobs, asked, return_exceptions=True)
        for part in (running.health, running.fuel, running.ranges, running.panel):
            part.stop()
        running.saver.stop()
        running.recorder.recorder.stop()  # last: what the others ended with is in it

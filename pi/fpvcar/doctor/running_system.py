"""Queries of the running machine: programs, pins, buses, camera, card, car.

Each answer is a value, or an `Unasked` with the reason.
"""

import asyncio
import contextlib
import grp
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from fpvcar.config import ConfigError, Profile
from fpvcar.devices import backends
from fpvcar.devices.backends import BackEnd
from fpvcar.devices.i2c import I2cError
from fpvcar.devices.pins import PinsFault
from fpvcar.devices.sensor_modes import ModeReport
from fpvcar.doctor.facts import CardSpeed, DeadManTest, MotorTest, Running
from fpvcar.doctor.report import Answer, Broken, Unasked, Works
from fpvcar.runtime import pdeathsig
from fpvcar.runtime.units import MB
from fpvcar.video import camera as filming
from fpvcar.video.h264 import AccessUnit
from fpvcar.wheels import dead_man_selftest as tripping

COMMAND_S, RUNNING_S, TRIP_S = 5.0, 3.0, 20.0
END_S = 1.0
"""Time that the process at the motors may take to stop them after SIGTERM."""
CAMERA_S = filming.START_S + 2.0
PIECE, PIECES = bytes(256 * 1024), 16
LEAST_FREE_B = 50_000_000
"""Free space below which the speed of the card is not tested."""
TURN_S = 0.4
GROUPS = ("gpio", "i2c")


class RunningSystem:
    """Machine this runs on. `options`: the options that name the profile; `runtimes`: the
    directory of `wheels`, then those of other possible instances."""

    def __init__(self, options: Sequence[str], runtimes: Sequence[Path], port: int) -> None:
        self._options, self._runtimes, self._port = options, runtimes, port

    def command(self, *argv: str) -> str | Unasked:
        """Return the output of a program."""
        program = shutil.which(argv[0])
        if program is None:
            return Unasked(f"{argv[0]} is not installed")
        try:
            done = subprocess.run(
                [program, *argv[1:]],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMMAND_S,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
            )
        except (OSError, subprocess.SubprocessError) as fault:
            return Unasked(f"{argv[0]}: {fault}")
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"{done.returncode}"]
            return Unasked(f"{argv[0]}: {last[0]}")
        return done.stdout

    def backend(self, profile: Profile) -> BackEnd:
        """Return the back end that drives the pins."""
        return backends.pins_backend(profile)

    def pins(self, profile: Profile) -> Answer:
        """Return whether the pins answer."""
        try:
            with contextlib.closing(backends.open_pins(profile)) as pins:
                pins.check()
        except PinsFault as fault:
            return Broken(str(fault))
        except ImportError as fault:
            return Unasked(f"{fault.name} is missing")
        return Works()

    def holders(self, gpios: Sequence[int]) -> dict[int, str] | Unasked:
        """Return the owner of each GPIO."""
        try:
            return backends.pin_holders(gpios)
        except (PinsFault, OSError) as fault:
            return Unasked(str(fault))

    def answering(
        self, profile: Profile, places: Collection[tuple[int, int]]
    ) -> frozenset[tuple[int, int]] | Unasked:
        """Return each (bus, address) that answers to a read of one byte."""
        answering = set()
        try:
            with backends.open_i2c(profile) as opens:
                for place in places:
                    with contextlib.suppress(I2cError):
                        with contextlib.closing(opens(*place)) as device:
                            device.read(0, 1)
                        answering.add(place)
        except PinsFault as fault:
            return Unasked(str(fault))
        except ImportError as fault:
            return Unasked(f"{fault.name} is missing")
        return frozenset(answering)

    def running(self) -> Running | Unasked:
        """Return the state that the car reports."""
        url = f"http://127.0.0.1:{self._port}"
        try:
            status = msgspec.json.decode(_get(f"{url}/api/status"))
            health = _get(f"{url}/healthz").decode(errors="replace")
            version, camera = status["version"], status["camera"]
            mode = msgspec.convert(status.get("mode"), ModeReport | None)
            lowered_rate = str(status.get("lowered_rate", ""))
        except (OSError, msgspec.MsgspecError, KeyError, TypeError):
            return Unasked(f"fpvcar run does not answer at {url}/")
        faults = () if health == "ok\n" else tuple(health.splitlines())
        return Running(str(version), str(camera), faults, mode, lowered_rate)

    def trip(self) -> DeadManTest | Unasked:
        """Feed the dead man, then stop feeding it; the car does not move."""
        with self._wheels_process() as (process, late):
            return _tripped(process, late)

    def turn(self, profile: Profile) -> tuple[MotorTest, ...] | Unasked:
        """Turn each motor for a short time."""
        with self._wheels_process(f"--turn={TURN_S}") as (process, _):
            out, err = process.communicate()
        lines = [line.split(" ", 2) for line in out.splitlines()]
        results = {
            words[1]: Broken(words[2]) if words[2] else Works()
            for words in lines
            if words[0] == tripping.TURNED
        }
        if not results and err:
            return Unasked(err.strip().splitlines()[-1])
        return tuple(
            MotorTest(name, results.get(name, Broken("no result"))) for name in profile.motors.names
        )

    @contextlib.contextmanager
    def _wheels_process(
        self, *more: str
    ) -> "Iterator[tuple[subprocess.Popen[str], threading.Event]]":
        """Start wheels/dead_man_selftest.py, with an event that is set if it took too long.

        The process runs as the user of the motors: files of root's in the run-time directory would
        lock that user out. Its process group is its own: a Ctrl-C reaches doctor alone, and doctor
        ends it here. If doctor itself is killed, the process detects that its parent is gone.
        """
        argv = [sys.executable, "-m", tripping.__name__, *self._options, *more]
        argv += [f"--runtime={runtime}" for runtime in self._runtimes]
        argv += [f"--parent={os.getpid()}"]
        owner = self._runtimes[0].stat()
        switch_user = os.geteuid() == 0 and owner.st_uid != 0
        process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            process_group=0,
            user=owner.st_uid if switch_user else None,
            group=owner.st_gid if switch_user else None,
            extra_groups=_groups() if switch_user else None,
        )
        late = threading.Event()

        def give_up() -> None:
            late.set()
            pdeathsig.end(process, END_S)  # SIGTERM: the process stops the motors

        timer = threading.Timer(TRIP_S, give_up)
        timer.start()
        try:
            with process:
                try:
                    yield process, late
                finally:
                    pdeathsig.end(process, END_S)
        finally:
            timer.cancel()

    def camera(self, profile: Profile) -> Answer:
        """Return whether the camera's process makes a picture."""
        try:
            argv, framed = filming.argv_of(profile, None)
        except ConfigError as fault:
            return Unasked(str(fault))
        if not argv:
            return Unasked("the profile has no camera")
        return asyncio.run(_one_picture(filming.Camera(argv, framed)))

    def speed(self, directory: Path) -> CardSpeed | Unasked:
        """Write 4 MB, each piece until it is on the card."""
        path = directory / f".doctor-{os.getpid()}"
        try:
            if os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize < LEAST_FREE_B:
                return Unasked(f"{directory}: too little free space for a speed test")
            with path.open("xb", buffering=0) as file:
                took_s = [_written_s(file.fileno()) for _ in range(PIECES)]
        except OSError as fault:
            return Unasked(f"{directory}: {fault.strerror}")
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
        return CardSpeed(len(PIECE) * PIECES / MB / sum(took_s), max(took_s))

    def writable(self, state: Path) -> Answer:
        """Return whether the car's folder is writable."""
        path = state / f".doctor-{os.getpid()}"
        try:
            path.touch(exist_ok=False)
            path.unlink()
        except (FileNotFoundError, PermissionError):
            return Unasked(f"{state}: missing or not writable: sudo fpvcar doctor")
        except OSError as fault:
            return Broken(fault.strerror or str(fault))
        return Works()

    def utc_s(self) -> float:
        return time.time()

    def power_save(self, interface: str) -> bool | Unasked:
        """Return whether the Wi-Fi's power save is on."""
        power_save = backends.wifi_power_save(interface)
        if power_save is None:
            return Unasked("the Wi-Fi driver does not report power save")
        return power_save


def _tripped(process: "subprocess.Popen[str]", late: threading.Event) -> DeadManTest:
    """Read the result of the self-test; for the guardian, the proof is that it is killed."""
    fed_s, whole, after_s = None, False, None
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        word, _, rest = line.strip().partition(" ")
        whole = whole or word == tripping.WHOLE
        if word == tripping.FED:
            fed_s = time.monotonic()
        elif word == tripping.TRIPPED:
            after_s = float(rest)
    status, errors = process.wait(), process.stderr.read().strip()
    if late.is_set():
        return DeadManTest(None, whole, f"no answer within {TRIP_S:.0f} s")
    if fed_s is None:
        return DeadManTest(None, whole, errors or "the dead man's switch did not start")
    if status == -signal.SIGKILL:
        return DeadManTest(time.monotonic() - fed_s, whole)
    return DeadManTest(after_s, whole, "" if after_s is not None else errors)


def _groups() -> list[int]:
    """Return the group ids of the units."""
    return [group.gr_gid for group in grp.getgrall() if group.gr_name in GROUPS]


def _get(url: str) -> bytes:
    """Return a page; for /healthz also with status 503. Raises OSError."""
    try:
        with urllib.request.urlopen(url, timeout=RUNNING_S) as answer:
            body: bytes = answer.read()
    except urllib.error.HTTPError as fault:
        if fault.code != 503:
            raise
        return fault.read()
    return body


def _written_s(file: int) -> float:
    start_s = time.monotonic()
    os.write(file, PIECE)
    os.fdatasync(file)
    return time.monotonic() - start_s


async def _one_picture(camera: filming.Camera) -> Works | Broken:
    """Capture video until the first picture."""
    seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(unit: AccessUnit) -> None:
        if not seen.done():
            seen.set_result(None)

    camera.units.subscribe(take)
    job = asyncio.create_task(camera.film())
    until_s = time.monotonic() + CAMERA_S
    while not seen.done() and not camera.status.startswith("lost"):
        if time.monotonic() > until_s:
            break
        await asyncio.wait([seen, job], timeout=0.1, return_when="FIRST_COMPLETED")
    result = Works(camera.sensor) if seen.done() else Broken(camera.status)
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
    return result

"""Supervisor of the camera program: yields its access units, restarts it, reports its faults.

    child's stdout -> ChildProcess -> RecordSplitter | AnnexBSplitter -> AccessUnit -> units

Framed programs (`fpvcar camera ...`) take "key", "bitrate N" and "fps N" on stdin.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from fpvcar import config
from fpvcar.config import ConfigError, Profile
from fpvcar.runtime.child_process import BackOff, Supervisor
from fpvcar.runtime.service import Event
from fpvcar.runtime.texts import STARTING, State, Text
from fpvcar.video import faults, options
from fpvcar.video.access_unit_records import AnnexBSplitter, RecordSplitter, Splitter
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.process import (
    ANY_RATE,
    ENCODER,
    FIXED_RATE,
    MISSING,
    NO_CAMERA,
    PREFIX,
    SENSOR_WORD,
)
from fpvcar.wire.errors import WireError

SILENCE_S = 2.0
REST_S = 0.1
"""Interval at which pictures without a viewer are read in batches."""
START_S = 30.0
"""Time to the first byte; picamera2 needs 20 s to start on a Pi Zero."""
BACK_OFF_S, BACK_OFF_MOST_S = 0.2, 2.0
IN_VAIN_S = {MISSING: 30.0, NO_CAMERA: 5.0}
"""Pauses after exit statuses of our own programs that made no picture. Retries fail until someone
installs or plugs in the missing part, and each start costs a Pi Zero seconds of its processor."""
REFUSED_S = 30.0
"""Pause after a program whose pictures are unusable."""
KEYLESS_S = 30.0
"""Age of the last key frame from which a request restarts a program that takes no requests. The
picture stops for a moment for all viewers; key frames up to 10 s apart are common."""
CLOSED_S = 0.2
WELL_S = 5.0
"""Life of a program, with pictures, that resets the back-off."""
PROCESSES = {
    "picamera2": "fpvcar.video.programs.pi_camera",
    "rpicam": "fpvcar.video.programs.rpicam",
    "v4l2": "fpvcar.video.programs.webcam",
}
"""Camera of the profile -> the module of its process, for the cameras of real cars."""
FIRMWARE_ENCODER = Path("/dev/video11")
"""H.264 encoder of a Pi Zero to 4, as picamera2 and rpicam-apps name it."""
SOFTWARE = "--software"
SENSOR = f"{PREFIX}{SENSOR_WORD}"
SILENT_STARTS = 2
RETRY_S, SILENT_S = 600.0, 30.0
"""Time after which a start uses the board's encoder again, and the pause after neither encoder made
a picture."""
log = logging.getLogger("fpvcar.camera")


def argv_of(
    profile: Profile, soc: Path | None, second: config.Camera | None = None
) -> tuple[list[str], bool]:
    """Return the program of the profile's first camera, or of its `second`, and whether it is
    framed.

    `soc` is the emulated chip, for the bench's camera. An empty program means no camera. Raises
    ConfigError if the bench's camera is requested without a bench.
    """
    camera = second or profile.camera
    module = PROCESSES.get(camera.source)
    if camera.command:
        return list(camera.command), False
    if camera.source == "none":
        return [], False
    if module is not None:
        arguments = [sys.executable, "-m", module, *options.arguments_of(camera)]
        return arguments, True
    if soc is None:
        raise ConfigError('camera.source = "bench" needs a bench: run `fpvcar bench`')
    source = "world" if camera.source == "bench" else camera.source
    arguments = [f"--soc={soc}", f"--source={source}"]
    if second is not None:
        arguments.append("--view=rear")
    elif profile.rig.led is not None:
        arguments.append(f"--led={profile.rig.led}")
    arguments += options.arguments_of(camera, options.BENCH_KEYS)
    return [sys.executable, "-m", "fpvcar", "camera", "bench", *arguments], True


def firmware_encoder(camera: config.Camera) -> Path | None:
    """Return the board's encoder if the camera's program uses it and takes SOFTWARE."""
    uses = camera.source in ("picamera2", "rpicam") and not camera.command
    return FIRMWARE_ENCODER if uses else None


class EncoderChoice:
    """Choice between the board's encoder and libx264 for each start of the camera program.

    After SILENT_STARTS starts in sequence without a picture the board's encoder counts as hung. A
    picture of it clears that. If libx264 is silent, too, the next start tries the board's again.
    """

    def __init__(self, device: Path | None) -> None:
        self.software = False
        """Whether libx264 encodes in this life of the program."""
        self.silent_starts = 0
        self._device, self._failed_s = device, 0.0

    @property
    def hangs(self) -> bool:
        """Whether the board's encoder counts as hung."""
        return self.silent_starts >= SILENT_STARTS

    def begin(self, now_s: float) -> None:
        """Choose for the start at `now_s`."""
        self.software = self.hangs and now_s < self._failed_s + RETRY_S

    def pictured(self) -> None:
        """Accept a picture of the chosen encoder."""
        if not self.software:
            self.silent_starts = 0

    def silent(self, now_s: float) -> float:
        """Accept a start without a picture; return the least pause before the next one."""
        if self.software:
            self._failed_s = now_s - RETRY_S
            return SILENT_S
        if self._device is not None and self._device.exists():
            self.silent_starts, self._failed_s = self.silent_starts + 1, now_s
        return 0.0


class Camera(Supervisor):
    """Camera of the car across restarts of its program. An empty argv means no camera.

    It publishes `units`; those of each life of the program begin with a key frame.
    """

    def __init__(
        self,
        argv: Sequence[str],
        framed: bool,
        silence_s: float = SILENCE_S,
        start_s: float = START_S,
        encoder: Path | None = None,
        name: str = "camera",
    ) -> None:
        """`encoder`: device of the board's encoder, if the program takes SOFTWARE instead; `name`:
        for the log."""
        super().__init__(argv, framed, BackOff(BACK_OFF_S, BACK_OFF_MOST_S), silence_s)
        self.framed, self._name = framed, name
        self.units = Event[AccessUnit]()
        self._watched: Callable[[], bool] = lambda: True
        self.state: State = STARTING if argv else "none"
        self.sensor = ""
        """Sensor of a Pi's camera as libcamera names it, or "" before the program reports it."""
        self.keeps_rate = False
        """Whether the program ignores requests for another rate."""
        self.lowered_rate: Text | None = None
        """Reason for a lower rate than the set one, by frame_rate.py."""
        self._start_s = start_s
        self._choice = EncoderChoice(encoder)
        self._splitter = self._new_splitter()
        self._wishes: dict[str, int] = {}
        self._began_s = self._bytes_s = self._unit_s = 0.0
        self._synced = self._silent = self._key_wanted = False
        self._head = b""
        self._coding = faults.CodingCheck()
        self._warned: Text | None = None
        self._newest_us: int | None = None
        self._stamp_us = 0
        self._initial_state = self.state

    async def film(self, watched: Callable[[], bool] = lambda: True) -> None:
        """Keep the program running. While `watched` returns False, units may arrive REST_S late,
        with correct stamps."""
        self._watched = watched
        await self.run()

    def rest_s(self) -> float:
        """Return the read interval; 0 for a plain program, whose units are stamped and cut on
        arrival."""
        return 0.0 if not self.framed or self._watched() else REST_S

    @property
    def encoder_hangs(self) -> bool:
        """Whether the pictures are of libx264 because the board's encoder hangs."""
        return self.state == "ok" and self._choice.software

    @property
    def warning(self) -> Text | None:
        """Property of the pictures that some viewers cannot show, and the remedy."""
        return self._coding.warning if self.state == "ok" else None

    @property
    def status(self) -> str:
        """State for programs: "ok", "none", "starting", or "lost: ..." with the reason."""
        state = self.state
        return f"lost: {state}" if isinstance(state, Text) and state != STARTING else str(state)

    def age_s(self, now_s: float) -> float | None:
        """Return the age of the newest picture at CLOCK_MONOTONIC `now_s`; None without one."""
        if self._newest_us is None:
            return None
        return max(0.0, now_s - self._newest_us / 1e6)

    def request_key(self) -> bool:
        """Request a key frame. Returns False if the program cannot receive requests or is not
        running. A program that cannot, and has made none for KEYLESS_S, is restarted."""
        if self.process is not None:  # a new viewer may have arrived
            self.process.hurry()
        self._key_wanted = not self.framed
        return self.write_line("key")

    def set_bitrate(self, bitrate: int) -> bool:
        """Request a bitrate in bit/s, now and after a restart. Returns False if it cannot be
        sent now."""
        return self._set("bitrate", bitrate)

    def set_fps(self, most: int) -> bool:
        """Request at most so many pictures a second, now and after a restart. Returns False if it
        cannot be sent now."""
        return self._set("fps", most)

    def _set(self, name: str, value: int) -> bool:
        self._wishes[name] = value
        return self.write_line(f"{name} {value}")

    def rest(self) -> None:
        """Reset the state after a deliberate end of the program."""
        self.state, self._newest_us = self._initial_state, None

    def adjust(self, argv: Sequence[str], line: str) -> None:
        """Change the command line from the next start on; send the running program an equivalent
        line."""
        self.argv = list(argv)
        self.write_line(line)

    def renew(self, argv: Sequence[str]) -> None:
        """Change the command line at once; the picture is interrupted for a moment."""
        self.argv = list(argv)
        self.fail(Text("camera_renewed", "its settings were changed; it is restarted"))

    # Life of the program

    def begin(self, now_s: float) -> None:
        """Reset for a new start: the first accepted unit is a key frame."""
        self._splitter, self._coding = self._new_splitter(), faults.CodingCheck()
        self._synced = self._silent = self._key_wanted = self.keeps_rate = False
        self._head = b""
        self._began_s, self._bytes_s, self._unit_s = now_s, 0.0, 0.0
        self._choice.begin(now_s)

    def command(self) -> list[str]:
        """Return the command line, with SOFTWARE while the board's encoder hangs."""
        return [*self.argv, SOFTWARE] if self._choice.software else self.argv

    def started(self) -> None:
        """Send bitrate and rate, which the new process lacks."""
        for name, value in self._wishes.items():
            self.write_line(f"{name} {value}")

    def reported(self, line: str) -> None:
        """Accept the name of the sensor, and the report of a fixed rate."""
        if self.framed and line.startswith(SENSOR):
            self.sensor = line.removeprefix(SENSOR)
        elif self.framed and line in (f"{PREFIX}{FIXED_RATE}", f"{PREFIX}{ANY_RATE}"):
            self.keeps_rate = line.endswith(FIXED_RATE)

    def late(self, now_s: float) -> float | Text:
        """Return the time left for the next byte or unit, or the fault if it has expired."""
        if not self._bytes_s:
            since_s, most_s = self._began_s, self._start_s
        else:
            since_s, most_s = self._unit_s or self._bytes_s, self._silence_s
        if (left_s := since_s + most_s - now_s) > 0.0:
            return left_s
        if self._bytes_s and not self._unit_s:
            return faults.no_key_frame()
        line, ever = self.line_since(since_s - faults.BEFORE_S), bool(self._bytes_s)
        self._silent = not ever
        return faults.silent(most_s, line, ever, not ever and self._choice.hangs)

    def not_started(self, program: str, fault: OSError | None) -> Text | None:
        """Return the missing program or the error in the command, with the next step."""
        if fault is not None:
            return faults.refused(program, fault)
        return faults.not_started(program)

    def exited(self, status: int) -> Text:
        """Return the cause of the exit, with the last line on stderr if it is recent."""
        if self.framed and not self._unit_s:
            self.back_off.lengthen(IN_VAIN_S.get(status, 0.0))
        self._silent = status == ENCODER
        line = self.line_since(time.monotonic() - faults.LINE_S)
        return faults.exited(status, line)

    def ended(self, reason: Text) -> bool:
        """Log the reason; return whether the program had made pictures for a while.

        There is no picture from now on, so the driver need not wait until the last one is old.
        """
        self._newest_us = None
        if self._silent and not self._unit_s:
            self.back_off.lengthen(self._choice.silent(time.monotonic()))
        if self.state != reason:  # retries may give the same reason
            self.state = reason
            log.warning("%s lost: %s", self._name, reason)
        return self._unit_s - self._began_s >= WELL_S

    def receive(self, data: bytes) -> None:
        """Process the program's bytes; after the last ones it has CLOSED_S to exit."""
        now_ns = time.monotonic_ns()
        if not data:  # the exit, which usually follows, is more informative
            self._deliver(self._splitter.idle(), now_ns)
            self.if_quiet(CLOSED_S, self.fail, faults.closed())
            return
        self._bytes_s = self._bytes_s or now_ns / 1e9
        if not self.framed and len(self._head) <= faults.TS_BYTES:
            self._head += data[: faults.TS_BYTES + 1]
            if fault := faults.foreign_format(self._head):
                self.back_off.lengthen(REFUSED_S)
                self.fail(fault)
                return
        try:
            self._deliver(self._splitter.feed(data, now_ns // 1000), now_ns)
        except WireError as fault:
            self.fail(faults.garbage(fault))
            return
        if self._splitter.idle_s is not None:
            self.if_quiet(self._splitter.idle_s, self._idle)

    def _new_splitter(self) -> Splitter:
        return RecordSplitter() if self.framed else AnnexBSplitter()

    def _idle(self) -> None:
        self._deliver(self._splitter.idle(), time.monotonic_ns())

    def _deliver(self, units: Iterable[AccessUnit], now_ns: int) -> None:
        for unit in units:
            self._synced = self._synced or unit.key
            if self._synced and self._is_usable(unit, now_ns / 1e9):
                self._unit_s = now_ns / 1e9
                unit = self._ascending(unit)
                self._newest_us = unit.capture_us
                self.state = "ok"
                self._choice.pictured()
                self.units.publish(unit)

    def _ascending(self, unit: AccessUnit) -> AccessUnit:
        """Return the unit with a later stamp than the last one. Units of one read have the same;
        a film and a decoder take each time once."""
        self._stamp_us = max(unit.capture_us, self._stamp_us + 1)
        if unit.capture_us == self._stamp_us:
            return unit
        return msgspec.structs.replace(unit, capture_us=self._stamp_us)

    def _is_usable(self, unit: AccessUnit, now_s: float) -> bool:
        """Check a unit's coding; log a new warning. Unusable pictures end the program."""
        coding = self._coding
        coding.note(unit, now_s)
        self._key_wanted = self._key_wanted and not unit.key
        if coding.refusal:
            self.back_off.lengthen(REFUSED_S)
            self.fail(coding.refusal)
        elif self._key_wanted and coding.keyless_s > KEYLESS_S:
            self.fail(faults.rare_keys(KEYLESS_S))
        elif coding.warning and coding.warning != self._warned:
            log.warning("%s: %s", self._name, coding.warning)
        self._warned = coding.warning or self._warned
        return not coding.refusal

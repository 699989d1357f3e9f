"""`fpvcar camera rpicam`: a Pi's own camera by rpicam-vid, for systems without picamera2.

    rpicam-vid -> UDP on loopback -> Receiver -> units -> Record
               -> metadata pipe   -> Stamps   -> times

rpicam-vid takes no requests for a key frame or another bitrate: there is a key frame every `gop_s`,
and at least every UNASKED_GOP_S. Other image settings restart it, and the picture is missing for a
second.
"""

import contextlib
import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterable

from fpvcar.config import NIGHT_S
from fpvcar.config import Camera as CameraConfig
from fpvcar.devices import sensor_modes
from fpvcar.devices.capture import NO_CAMERA, CaptureError, NoCamera, PackageMissing
from fpvcar.runtime.child_process import SILENT
from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvcar.runtime.texts import NOT_INSTALLED, PROGRAM_EXIT, SAYS, Text
from fpvcar.video import h264, options
from fpvcar.video.image_settings import ImageSettings, image_settings_of
from fpvcar.video.process import FIXED_RATE, SENSOR_WORD, Control, Pipes, report, serve, status_of
from fpvcar.video.programs.datagrams import Receiver, Stamps
from fpvcar.wire.camera import Record

CAPTURE_NO_X264 = Text(
    "capture_no_x264",
    "this rpicam-vid has no libx264 to replace a hung encoder; switch the car off and on "
    "again, or sudo apt install rpicam-apps",
)

PROGRAMS = ("rpicam-vid", "libcamera-vid")
PACKAGE = "sudo apt install rpicam-apps-lite"
NOTHING_FOUND = "no cameras available"
LIBAV_CODEC = "--libav-video-codec"
LIST = "--list-cameras"
LISTED = re.compile(r"(?m)^(\d+) : (\w+) \[")
"""Line of a camera: "0 : imx219 [3280x2464 10-bit RGGB] (/base/soc/i2c0mux/i2c@1/imx219@10)"."""
LEAST_BITRATE = 300_000
"""Limit below which the firmware's encoder may hang (rpicam-apps #664)."""
BUFFERS = 3
HELP_S = 20.0
END_S = 1.0
STAMP_S = 0.01
"""Time for which a unit waits for its metadata, written right after it."""


def command(
    program: str,
    help_text: str,
    config: CameraConfig,
    image: ImageSettings,
    port: int,
    metadata: str,
    software: bool = False,
    sensor: str = "",
) -> list[str]:
    """Return the command line. `help_text`: the program's help; `metadata`: the path of the
    metadata pipe; `software`: libx264 encodes; `sensor`: its name, or "".

    The exposure fills the frame time, so at night the rate is lower. libav, which sends on a Pi 5,
    needs the size of a datagram as an option.
    """
    config, mode = sensor_modes.within_mode(sensor, config)
    fps = min(config.fps, 1.0 / NIGHT_S) if image.night else config.fps
    values = {
        "--timeout": 0,
        "--width": config.width,
        "--height": config.height,
        "--mode": f"{mode.width}:{mode.height}:{mode.bits}:P" if mode else "",
        "--framerate": f"{fps:g}",
        "--bitrate": max(config.bitrate, LEAST_BITRATE),
        "--intra": options.unasked_gop(config.gop_s, fps),
        "--codec": "libav" if software else "h264",
        LIBAV_CODEC: "libx264" if software else "",
        "--profile": "baseline",
        "--denoise": "cdn_off",
        "--buffer-count": BUFFERS,
        "--exposure": "long" if image.night else image.exposure,
        "--brightness": f"{image.brightness:g}",
        "--libav-format": "h264",
        "--verbose": 0,
        "--metadata": metadata,
        "--metadata-format": "txt",
        "--camera": config.device or 0,
    }
    flags = ["--nopreview", "--inline", "--flush", "--low-latency"]
    if config.flip in ("horizontal", "both"):
        flags.append("--hflip")
    if config.flip in ("vertical", "both"):
        flags.append("--vflip")
    argv = [program]
    for option, value in values.items():
        if option in help_text and value != "":
            argv += [option, str(value)]
    argv += [flag for flag in flags if flag in help_text]
    return [*argv, "--output", f"udp://127.0.0.1:{port}?pkt_size=65507"]


class Rpicam:
    """Process rpicam-vid and its output. Raises CaptureError, NoCamera, PackageMissing."""

    def __init__(self, config: CameraConfig, software: bool = False) -> None:
        paths = [path for name in PROGRAMS if (path := shutil.which(name))]
        if not paths:
            raise PackageMissing(NOT_INSTALLED(program=PROGRAMS[0], command=PACKAGE))
        self._program, self._config, self._software = paths[0], config, software
        self._help = self._output("--help")
        self._sensor = self._listed_sensor()
        if self._sensor:
            report(f"{SENSOR_WORD}{self._sensor}")
        report(FIXED_RATE)
        if software and LIBAV_CODEC not in self._help:
            raise PackageMissing(CAPTURE_NO_X264)
        self._events = select.epoll()
        self.fd = self._events.fileno()
        self._start(image_settings_of(config))

    def _output(self, option: str) -> str:
        """Return the text that the program prints for an option. Raises CaptureError."""
        argv = [self._program, option]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=HELP_S)
        except subprocess.TimeoutExpired:
            silence = SILENT(seconds=f"{HELP_S:g}")
            raise CaptureError(SAYS(place=" ".join(argv), reason=silence)) from None
        return done.stdout + done.stderr

    def _listed_sensor(self) -> str:
        """Return the sensor of this camera; "" if the program has no list, or no mode."""
        if not all(option in self._help for option in (LIST, "--mode")):
            return ""
        sensors: dict[str, str] = dict(LISTED.findall(self._output(LIST)))
        return sensors.get(self._config.device or "0", "")

    def _start(self, image: ImageSettings) -> None:
        self._image, self._last_line, self._synced, self._lost = image, "", False, 0
        self._sets = h264.ParameterSets()
        self._receiver = Receiver()
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        self._metadata, self._stamps = read_end, Stamps(read_end)
        argv = command(
            self._program,
            self._help,
            self._config,
            image,
            self._receiver.port,
            f"/dev/fd/{write_end}",
            self._software,
            self._sensor,
        )
        self._child = subprocess.Popen(
            with_pdeathsig(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(write_end,),
        )
        os.close(write_end)
        assert self._child.stderr
        self._errors = self._child.stderr.fileno()
        os.set_blocking(self._errors, False)
        for fd in (self._receiver.fileno(), read_end, self._errors):
            self._events.register(fd, select.EPOLLIN)

    def take(self) -> Iterable[Record]:
        """Return the units received; after a loss they wait for a key frame."""
        self._listen()
        arrived = self._receiver.buffers(self._child.pid)
        lost = self._receiver.reassembly.lost
        if lost != self._lost:
            report(f"{lost - self._lost} of rpicam-vid's datagrams lost")
            self._lost, self._synced = lost, False
        records = []
        for buffer in arrived:
            time_us = min(self._stamps.stamp_us(buffer, STAMP_S), buffer.time_us)
            unit = self._sets.ahead_of(buffer.data)
            key = h264.is_key(unit)
            self._synced = self._synced or key
            if self._synced and not h264.SLICES.isdisjoint(h264.nal_types(unit)):
                records.append(Record(key, time_us, unit))
        return records

    def skip(self) -> bool:
        """Discard the pending units; return False, because later units depend on them."""
        self.take()
        return False

    def request_key(self) -> None:
        """Ignore the request: key frames come by `--intra` alone."""

    def set_bitrate(self, bitrate: int) -> None:
        """Ignore the request: a restart at each change would stop the car."""

    def set_fps(self, most: int) -> None:
        """Ignore the request, like one for a bitrate."""

    def set_image(self, settings: ImageSettings) -> None:
        """Restart rpicam-vid for new image settings."""
        if settings != self._image:
            self._end()
            self._start(settings)

    def _listen(self) -> None:
        """Read the program's stderr and metadata; raise its last line as an error if it has
        ended."""
        self._stamps.read()
        try:
            data = os.read(self._errors, 1 << 16)
        except BlockingIOError:
            return
        for line in data.decode("utf-8", "replace").splitlines():
            if line.strip():
                self._last_line = line.strip()
                report(self._last_line)
        if not data:
            status = self._child.wait()
            if NOTHING_FOUND in self._last_line:
                number = self._config.device or 0
                raise NoCamera(NO_CAMERA(program=PROGRAMS[0], number=number))
            cause = PROGRAM_EXIT(program=PROGRAMS[0], status=status)
            raise CaptureError(SAYS(place=cause, reason=self._last_line))

    def _end(self) -> None:
        for fd in (self._receiver.fileno(), self._metadata, self._errors):
            self._events.unregister(fd)
        self._child.send_signal(2)  # SIGINT lets it close the camera
        try:
            self._child.wait(END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        assert self._child.stderr
        self._child.stderr.close()
        os.close(self._metadata)
        self._receiver.close()

    def close(self) -> None:
        """End rpicam-vid, so that the camera is free for other programs."""
        self._end()
        self._events.close()


def main(argv: list[str] | None = None) -> int:
    """Run the process. Returns 0 when a pipe ended; other statuses as in process.py."""
    config, software = options.parse_pi("rpicam", "A Pi's own camera, by rpicam-vid.", argv)
    control = Control()
    pipes = Pipes(sys.stdin.fileno(), sys.stdout.fileno(), control)
    try:
        with contextlib.closing(Rpicam(config, software)) as camera:
            serve(camera, pipes, control)
    except CaptureError as fault:
        return status_of(fault)
    return 0


if __name__ == "__main__":
    sys.exit(main())

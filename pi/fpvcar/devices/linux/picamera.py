"""A Pi's own camera through picamera2 (0.3.12 to 0.3.38): encoded frames as they arrive.

    libcamera -> picamera2's thread -> H264Encoder -> _Output -> waiting, fd -> take

The encoder is /dev/video11 on a Pi Zero to 4, and libx264 on a Pi 5 or on request. Both accept
requests for key frames and bitrates while running. A frame's time stamp is its sensor's.

/dev/video11 may hang until the power is switched off (raspberrypi/linux #7163): it refuses to
start, or it takes pictures and returns none.
"""

import errno
import fcntl
import logging
import os
import threading
import time
from collections import deque
from fractions import Fraction
from types import ModuleType
from typing import Any

from fpvcar.config import NIGHT_S, Camera, Exposure
from fpvcar.devices import sensor_modes
from fpvcar.devices.capture import (
    NO_CAMERA,
    CaptureError,
    EncodedFrame,
    EncoderHangs,
    NoCamera,
    PackageMissing,
)
from fpvcar.devices.linux import v4l2_controls, v4l2_uapi
from fpvcar.devices.linux.v4l2 import CALL_FAILED
from fpvcar.devices.sensor_modes import Mode
from fpvcar.runtime.child_process import SILENT
from fpvcar.runtime.texts import NOT_INSTALLED, Phrase, Text, os_reason

CAPTURE_BUSY = Phrase(
    "capture_busy", "the camera cannot be opened: {reason}; end the other program that has it"
)
ENCODER_HANGS = Phrase(
    "capture_encoder", "the board's H.264 encoder hangs ({reason}); switch the car off and on again"
)

INSTALL = "sudo apt install --no-install-recommends python3-picamera2"
ENCODER = "/dev/video11"
FIRST_UNIT_S = 5.0
"""Longest time from the encoder's first picture to its first access unit."""
LITTLE_MEMORY_B = 700_000_000
"""Boards with 512 MB get three buffers only: CMA is short."""
FIRMWARE_LEAST = 300_000
"""Bits per second below which the firmware's encoder may hang (rpicam-apps #664)."""
VBV_S = 0.2
EXPOSURES: dict[Exposure, str] = {"normal": "Normal", "sport": "Short", "long": "Long"}


class PiCamera:
    """Streaming camera; `software`: libx264 on every board.

    Raises CaptureError, EncoderHangs, NoCamera, PackageMissing.
    """

    def __init__(self, config: Camera, software: bool = False) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._waiting: deque[EncodedFrame] = deque()
        self._image = (config.exposure, config.brightness, config.night)
        self._hangs = False
        self._watch = threading.Timer(FIRST_UNIT_S, self._hang)
        self._watch.daemon = True
        picamera2 = _imported()
        self._enums = picamera2.picamera2.controls
        number = int(config.device or 0)
        if number >= len(picamera2.Picamera2.global_camera_info()):
            raise NoCamera(NO_CAMERA(program="libcamera", number=number))
        try:
            self._camera = picamera2.Picamera2(number)
        except RuntimeError as fault:
            reason = _words(fault.__cause__ or fault)
            raise CaptureError(CAPTURE_BUSY(reason=reason)) from None
        try:
            self._start(picamera2, config, software)
        except EncoderHangs:
            raise
        except Exception as fault:  # libcamera, picamera2 and PyAV raise many types
            self._camera.close()
            raise CaptureError(
                Text("capture_start", "the camera does not start: {reason}", reason=_words(fault))
            ) from None

    def _start(self, picamera2: ModuleType, config: Camera, software: bool) -> None:
        import libcamera

        flip = config.flip
        config, mode = self._with_mode(config)
        turned = libcamera.Transform(
            hflip=flip in ("horizontal", "both"), vflip=flip in ("vertical", "both")
        )
        wanted = self._camera.create_video_configuration(
            main={"format": "YUV420", "size": (config.width, config.height)},
            raw=None,
            buffer_count=_buffers(),
            transform=turned,
            controls=self._controls(),
            display=None,
            queue=False,
        )
        if mode is not None:  # as an argument, picamera2 0.3.12 would refuse it
            wanted["sensor"] = {"output_size": (mode.width, mode.height), "bit_depth": mode.bits}
        self._camera.configure(wanted)
        self.size: tuple[int, int] = self._camera.camera_configuration()["main"]["size"]
        self._encoder = _encoder(picamera2, config, software, self._watch)
        self.software = hasattr(self._encoder, "reopen_at")
        output = _output(picamera2, self._receive)
        self._camera.start_recording(self._encoder, output)

    def _with_mode(self, config: Camera) -> tuple[Camera, Mode | None]:
        """Return the sensor's mode, and the settings within its rate."""
        self.sensor = str(self._camera.camera_properties.get("Model", ""))
        config, mode = sensor_modes.within_mode(self.sensor, config)
        self._fps = self.fps = config.fps
        return config, mode

    # In picamera2's thread

    def _receive(self, data: bytes, key: bool, since_first_us: int) -> None:
        self._watch.cancel()
        first_us: int = self._encoder.firsttimestamp
        self._waiting.append(EncodedFrame(key, first_us + since_first_us, data))
        os.eventfd_write(self.fd, 1)

    def _hang(self) -> None:
        self._hangs = True
        os.eventfd_write(self.fd, 1)

    # In our thread

    def frames(self) -> list[EncodedFrame]:
        """Return the frames since the last call, stamped by CLOCK_MONOTONIC."""
        os.eventfd_read(self.fd)
        if self._hangs:
            silence = SILENT(seconds=f"{FIRST_UNIT_S:g}")
            raise EncoderHangs(ENCODER_HANGS(reason=silence))
        boot_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
        asleep_us = boot_us - time.monotonic_ns() // 1000
        # less than 1 ms is the time between the two calls
        asleep_us = asleep_us if asleep_us > 1000 else 0
        frames = []
        while self._waiting:
            frame = self._waiting.popleft()
            frames.append(frame._replace(time_us=frame.time_us - asleep_us))
        return frames

    def request_key(self) -> None:
        """Make the next frame an IDR."""
        if hasattr(self._encoder, "force_key_frame"):
            self._encoder.force_key_frame()
        else:  # picamera2 before September 2025
            _put(self._encoder, v4l2_controls.KEY_FRAME, 1)

    def set_bitrate(self, bitrate: int) -> None:
        """Set the bits per second from the next frame on."""
        if self.software:
            self._encoder.reopen_at(bitrate)
        else:
            _put(self._encoder, v4l2_controls.BITRATE, max(bitrate, FIRMWARE_LEAST))

    def set_image(self, exposure: Exposure, brightness: float, night: bool) -> None:
        """Apply settings within the next frames, as far as the camera supports them."""
        self._image = (exposure, brightness, night)
        self._camera.set_controls(self._controls())

    def set_fps(self, most: int) -> None:
        """Lengthen the frame interval to at least that of `most` frames a second."""
        self._fps = min(self.fps, most)
        self._camera.set_controls(self._controls())

    def _controls(self) -> dict[str, Any]:
        exposure, brightness, night = self._image
        period_us = round(1e6 / self._fps)
        longest_us = max(period_us, round(NIGHT_S * 1e6)) if night else period_us
        mode = "Long" if night else EXPOSURES[exposure]
        controls = {
            "FrameDurationLimits": (period_us, longest_us),
            "AeExposureMode": getattr(self._enums.AeExposureModeEnum, mode),
            "Brightness": brightness,
        }
        return {
            name: value for name, value in controls.items() if name in self._camera.camera_controls
        }

    def close(self) -> None:
        """Stop and release the camera, unless its encoder hangs: stopping that might never end."""
        self._watch.cancel()
        if self._hangs:
            return
        self._camera.stop_recording()
        self._camera.close()
        os.close(self.fd)


def _words(fault: BaseException) -> Text | str:
    """Return the text of a library's fault in one line."""
    return os_reason(fault) if isinstance(fault, OSError) else " ".join(str(fault).split())


def _imported() -> ModuleType:
    os.environ.setdefault("LIBCAMERA_LOG_LEVELS", "*:WARN")
    logging.getLogger("picamera2").setLevel(logging.WARNING)
    try:
        import picamera2
        import picamera2.encoders
        import picamera2.outputs
    except ImportError as fault:
        command = f"{INSTALL} ({fault})"
        raise PackageMissing(NOT_INSTALLED(program="picamera2", command=command)) from None
    module: ModuleType = picamera2
    return module


def _buffers() -> int:
    memory_b = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 3 if memory_b < LITTLE_MEMORY_B else 4


def _encoder(picamera2: ModuleType, config: Camera, software: bool, watch: threading.Timer) -> Any:
    """Return the board's own H.264 encoder or libx264, configured for low latency."""
    encoders = picamera2.encoders
    rate = Fraction(config.fps).limit_denominator(1001)  # PyAV accepts no float
    options = {
        "bitrate": config.bitrate,
        "repeat": True,
        "iperiod": max(round(config.gop_s * config.fps), 1),
        "framerate": rate,
        "profile": "constrained baseline",
    }
    if software or issubclass(encoders.H264Encoder, encoders.LibavH264Encoder):
        return _live_x264(encoders.LibavH264Encoder)(**options)
    return _watched(encoders.H264Encoder)(watch, **options)


def _output(picamera2: ModuleType, receive: Any) -> Any:
    class _Output(picamera2.outputs.Output):  # type: ignore[misc, name-defined]
        """Output that passes on whole access units, in the encoder's thread."""

        def outputframe(
            self,
            frame: Any,
            keyframe: bool = True,
            timestamp: int | None = None,
            packet: Any = None,
            audio: bool = False,
        ) -> None:
            receive(bytes(frame), keyframe, timestamp or 0)

    return _Output()


def _put(encoder: Any, control: int, value: int) -> None:
    """Set a control of /dev/video11, on the streaming descriptor: others have no effect.

    Its range is not queried first: the firmware's differs from the codec's.
    """
    request = v4l2_uapi.Control(control, value)
    try:
        fcntl.ioctl(encoder.vd, v4l2_uapi.S_CTRL, request)
    except OSError as fault:
        values = {"path": ENCODER, "call": f"S_CTRL {control:#x}", "reason": os_reason(fault)}
        raise CaptureError(CALL_FAILED(**values)) from None


def _watched(base: Any) -> Any:
    """Return picamera2's encoder on /dev/video11, which starts a timer at its first picture."""

    class WatchedH264(base):  # type: ignore[misc]
        def __init__(self, watch: threading.Timer, **options: Any) -> None:
            super().__init__(**options)
            self._watch: threading.Timer | None = watch

        def _start(self) -> None:
            try:
                super()._start()
            except OSError as fault:
                if fault.errno == errno.ENOMEM:  # CMA is short, which passes
                    raise
                text = ENCODER_HANGS(reason=os_reason(fault))
                raise EncoderHangs(text) from None

        def _encode(self, stream: Any, request: Any) -> None:
            if self._watch is not None:
                self._watch.start()
                self._watch = None
            super()._encode(stream, request)

    return WatchedH264


def _live_x264(base: Any) -> Any:
    """Return picamera2's libx264 encoder with one thread, a small VBV and real key frames."""
    from av.video.frame import PictureType

    class LiveX264(base):  # type: ignore[misc]
        _stream: Any
        _request_release_queue: Any

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.threads = 1  # each further thread would hold back a frame
            self.drop_final_frames = True
            self._new_bitrate: int | None = None
            self._forced = 0

        def reopen_at(self, bitrate: int) -> None:
            """Reopen before the next frame, which becomes a key frame."""
            self._new_bitrate = bitrate

        def force_key_frame(self) -> None:
            """Request a key frame; 0.3.38 would set pict_type "I", which PyAV refuses since 14."""
            self._forced += 1

        def _start(self) -> None:
            super()._start()
            codec = self._stream.codec_context
            codec.max_b_frames = 0
            codec.options.update(
                {
                    "forced-idr": "1",
                    "maxrate": str(self.bitrate),
                    "bufsize": str(round(self.bitrate * VBV_S)),
                    "x264-params": "scenecut=0:sliced-threads=0",
                }
            )
            self._stream = _Stream(self._stream, self._mark)

        def _mark(self, frame: Any) -> None:
            """Mark a requested key frame."""
            if self._forced:
                self._forced, frame.pict_type = 0, PictureType.I

        def _encode(self, stream: Any, request: Any) -> None:
            wanted, self._new_bitrate = self._new_bitrate, None
            if wanted is not None:
                self.bitrate, held = wanted, self._request_release_queue
                self._container.close()
                self._start()
                self._request_release_queue = held
            super()._encode(stream, request)

    return LiveX264


class _Stream:
    """Wrapper of PyAV's stream that marks each frame before encoding."""

    def __init__(self, stream: Any, mark: Any) -> None:
        self._stream, self._mark = stream, mark

    def encode(self, frame: Any = None) -> Any:
        """Mark the frame, then encode it by PyAV."""
        if frame is not None:
            self._mark(frame)
        return self._stream.encode(frame)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

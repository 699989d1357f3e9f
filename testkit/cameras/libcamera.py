"""Stand-in for libcamera's Python module: the parts used by picamera2 0.3.38.

One camera with the behaviour that matters here: requests come back complete, in order, at the rate
of FrameDurationLimits (the longest one, as in the dark), with the sensor's stamp of CLOCK_BOOTTIME;
a frame without a request is lost; lines are padded to 64 bytes; a control counts from the request
that carries it. Pictures: the level 100 plus the effect of Brightness, bright in the upper left
corner before any transform.
"""

import mmap
import os
import threading
import time
from collections import deque
from enum import Enum, IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from testkit.cameras import sensor_listings

LEVEL = 100
LEVEL_MOST = 100
"""Level that Brightness 1 adds."""
GAIN_LONG = 20
SENSOR = os.environ.get("PICAMERA_SENSOR", "imx219")


class StreamRole(Enum):
    Raw, StillCapture, VideoRecording, Viewfinder = range(4)


class ControlType(Enum):
    Null, Bool, Byte, Integer32, Integer64, Float, String, Rectangle, Size = range(9)


class Orientation(Enum):
    Rotate0, Rotate0Mirror, Rotate180, Rotate180Mirror = 1, 2, 3, 4
    Rotate90Mirror, Rotate270, Rotate270Mirror, Rotate90 = 5, 6, 7, 8


class Transform:
    hflip: bool
    vflip: bool
    transpose: bool

    def __init__(
        self, other: "Transform | None" = None, hflip: int = 0, vflip: int = 0, transpose: int = 0
    ) -> None:
        self.hflip = other.hflip if other else bool(hflip)
        self.vflip = other.vflip if other else bool(vflip)
        self.transpose = other.transpose if other else bool(transpose)

    def __str__(self) -> str:
        return f"{self.hflip} {self.vflip} {self.transpose}"


class ColorSpace:
    class YcbcrEncoding(Enum):
        Null, Rec601, Rec709 = range(3)

    class Range(Enum):
        Full, Limited = range(2)

    def __init__(self, other: "ColorSpace | str") -> None:
        name: str = other if isinstance(other, str) else other.name
        self.name: str = name
        self.primaries = self.transferFunction = name
        self.ycbcrEncoding: Any = self.YcbcrEncoding.Rec601
        self.range: Any = self.Range.Limited

    def __str__(self) -> str:
        return self.name

    Sycc = classmethod(lambda cls: cls("Sycc"))
    Smpte170m = classmethod(lambda cls: cls("Smpte170m"))
    Rec709 = classmethod(lambda cls: cls("Rec709"))
    Raw = classmethod(lambda cls: cls("Raw"))


class Size:
    def __init__(self, width: int = 0, height: int = 0) -> None:
        self.width, self.height = width, height


class Rectangle:
    def __init__(self, x: int, y: int, width: int, height: int) -> None:
        self.x, self.y, self.width, self.height = x, y, width, height


class PixelFormat:
    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name


class ControlId:
    def __init__(self, name: str, kind: ControlType = ControlType.Float) -> None:
        self.name, self.type = name, kind


class AeExposureModeEnum(IntEnum):
    Normal, Short, Long, Custom = range(4)


class NoiseReductionModeEnum(IntEnum):
    Off, Fast, HighQuality, Minimal = range(4)


controls = SimpleNamespace(
    SensorTimestamp=ControlId("SensorTimestamp", ControlType.Integer64),
    FrameDurationLimits=ControlId("FrameDurationLimits", ControlType.Integer64),
    AeExposureMode=ControlId("AeExposureMode", ControlType.Integer32),
    Brightness=ControlId("Brightness"),
    ExposureTime=ControlId("ExposureTime", ControlType.Integer32),
    ExposureTimeMode=ControlId("ExposureTimeMode", ControlType.Integer32),
    AnalogueGain=ControlId("AnalogueGain"),
    AnalogueGainMode=ControlId("AnalogueGainMode", ControlType.Integer32),
    NoiseReductionMode=ControlId("NoiseReductionMode", ControlType.Integer32),
    AeExposureModeEnum=AeExposureModeEnum,
    draft=SimpleNamespace(NoiseReductionModeEnum=NoiseReductionModeEnum),
)
properties = SimpleNamespace(
    draft=SimpleNamespace(
        ColorFilterArrangementEnum=Enum("ColorFilterArrangementEnum", "RGGB MONO")
    )
)


class FrameMetadata:
    class Status(Enum):
        Success, Error, Cancelled, Startup = range(4)

    status = Status.Success


class FrameBuffer:
    class Plane:
        fd = -1
        offset = 0
        length = 0

    def __init__(self, planes: "list[FrameBuffer.Plane]") -> None:
        self.planes, self.metadata = planes, FrameMetadata()


class SensorConfiguration:
    def __init__(self) -> None:
        self.bit_depth, self.output_size = 0, Size()


class Request:
    class Status(Enum):
        Pending, Complete, Cancelled = range(3)

    def __init__(self, cookie: int) -> None:
        self.cookie, self.status = cookie, Request.Status.Pending
        self.buffers: dict[Any, FrameBuffer] = {}
        self.metadata: dict[ControlId, Any] = {}
        self.controls: dict[ControlId, Any] = {}

    def add_buffer(self, stream: Any, buffer: FrameBuffer) -> None:
        self.buffers[stream] = buffer

    def set_control(self, control: ControlId, value: Any) -> None:
        self.controls[control] = value

    def reuse(self) -> None:
        self.status, self.metadata = Request.Status.Pending, {}


class StreamFormats:
    """Raw formats and sizes of the sensor's modes."""

    def __init__(self) -> None:
        self._modes = sensor_listings.modes(SENSOR)
        names = dict.fromkeys(name for name, *_ in self._modes)
        self.pixel_formats = [PixelFormat(name) for name in names]

    def sizes(self, pixel_format: PixelFormat) -> list[Size]:
        name = str(pixel_format)
        return [Size(*size) for mode, size, _, _ in self._modes if mode == name]


class StreamConfiguration:
    """Configuration that is its own stream, too."""

    def __init__(self) -> None:
        self.size, self.pixel_format = Size(640, 480), PixelFormat("YUV420")
        self.buffer_count, self.stride, self.frame_size = 4, 0, 0
        self.color_space: ColorSpace | None = None
        self.formats = StreamFormats()

    @property
    def stream(self) -> "StreamConfiguration":
        return self

    configuration = stream


class CameraConfiguration(list[StreamConfiguration]):
    class Status(Enum):
        Valid, Adjusted, Invalid = range(3)

    orientation = Orientation.Rotate0
    sensor_config: SensorConfiguration | None = None

    def at(self, index: int) -> StreamConfiguration:
        return self[index]

    def validate(self) -> "CameraConfiguration.Status":
        for one in self:
            one.stride = -(-one.size.width // 64) * 64
            one.frame_size = one.stride * one.size.height * 3 // 2
        return CameraConfiguration.Status.Valid


class Camera:
    """Camera module with the sensor SENSOR."""

    id = "/base/soc/i2c0mux/i2c@1/imx219@10"

    def __init__(self, manager: "CameraManager") -> None:
        self._manager = manager
        self.controls = {
            getattr(controls, name): SimpleNamespace(min=low, max=high, default=usual)
            for name, low, high, usual in (
                ("FrameDurationLimits", 8333, 11_000_000, 33_333),
                ("AeExposureMode", 0, 3, 0),
                ("Brightness", -1.0, 1.0, 0.0),
                ("NoiseReductionMode", 0, 4, 0),
            )
        }
        self.properties = {ControlId("Model"): SENSOR, ControlId("ColorFilterArrangement"): 0}
        self._queued: deque[Request] = deque()
        self._set: dict[str, Any] = {}
        self._thread: threading.Thread | None = None
        self._running = False

    def acquire(self) -> None:
        if os.environ.get("PICAMERA_BUSY"):
            raise RuntimeError("Failed to acquire camera: Device or resource busy")

    def release(self) -> None:
        pass

    def generate_configuration(self, roles: list[StreamRole]) -> CameraConfiguration:
        return CameraConfiguration(StreamConfiguration() for _ in roles)

    def configure(self, configuration: CameraConfiguration) -> int:
        self._orientation, mode = configuration.orientation, configuration.sensor_config
        assert mode is not None
        if "PICAMERA_LOG" in os.environ:
            size = mode.output_size
            text = f"{size.width}x{size.height}:{mode.bit_depth}"
            Path(os.environ["PICAMERA_LOG"]).write_text(text)
        return 0

    def create_request(self, cookie: int) -> Request:
        return Request(cookie)

    def queue_request(self, request: Request) -> None:
        self._queued.append(request)

    def start(self, wanted: dict[ControlId, Any]) -> None:
        self._take(wanted)
        self._running = True
        self._thread = threading.Thread(target=self._film, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._running = False
        assert self._thread
        self._thread.join()
        self._queued.clear()

    def _take(self, wanted: dict[ControlId, Any]) -> None:
        self._set |= {control.name: value for control, value in wanted.items()}

    def _film(self) -> None:
        hang_after = int(os.environ.get("PICAMERA_HANG_AFTER", "1000000"))
        count = 0
        while self._running and count < hang_after:
            time.sleep(self._set["FrameDurationLimits"][1] / 1e6)
            if not self._queued:
                continue
            request, count = self._queued.popleft(), count + 1
            self._take(request.controls)
            request.controls = {}
            stamp_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            for stream, buffer in request.buffers.items():
                self._paint(stream, buffer, count)
            request.metadata = {controls.SensorTimestamp: stamp_ns}
            request.status = Request.Status.Complete
            self._manager.complete(request)

    def _paint(self, stream: StreamConfiguration, buffer: FrameBuffer, n: int) -> None:
        width, height, stride = stream.size.width, stream.size.height, stream.stride
        picture = np.full((height * 3 // 2, stride), 128, np.uint8)
        level = LEVEL + LEVEL_MOST * self._set.get("Brightness", 0.0)
        long = self._set.get("AeExposureMode") == AeExposureModeEnum.Long
        level += GAIN_LONG * long
        grain = np.random.default_rng(n % 8).integers(-8, 8, (height, width))
        luma = grain + round(min(max(level, 30), 220))
        luma[: height // 4, : width // 4] = 235
        across = self._orientation in (Orientation.Rotate0Mirror, Orientation.Rotate180)
        down = self._orientation in (Orientation.Rotate180Mirror, Orientation.Rotate180)
        luma = luma[:: -1 if down else 1, :: -1 if across else 1]
        picture[:height, :width] = luma
        plane = buffer.planes[0]
        with mmap.mmap(plane.fd, plane.length) as memory:
            memory[: picture.size] = picture.tobytes()


class CameraManager:
    _one: "CameraManager | None" = None

    def __init__(self) -> None:
        self.event_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._ready: deque[Request] = deque()
        count = int(os.environ.get("PICAMERA_COUNT", "1"))
        self.cameras = [Camera(self) for _ in range(count)]

    @classmethod
    def singleton(cls) -> "CameraManager":
        cls._one = cls._one or cls()
        return cls._one

    def complete(self, request: Request) -> None:
        self._ready.append(request)
        os.eventfd_write(self.event_fd, 1)

    def get_ready_requests(self) -> list[Request]:
        try:
            os.eventfd_read(self.event_fd)
        except BlockingIOError:
            return []
        ready = []
        while self._ready:
            ready.append(self._ready.popleft())
        return ready

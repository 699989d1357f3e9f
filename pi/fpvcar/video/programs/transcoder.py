"""YUYV or MJPEG of a webcam -> H.264: one picture in, one access unit out."""

import av
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from fpvcar.config import Camera as CameraConfig
from fpvcar.config import Flip
from fpvcar.devices.capture import WebcamSource
from fpvcar.video.image_settings import ImageSettings
from fpvcar.video.programs.encoder import Encoder
from fpvcar.video.programs.software_filter import SoftwareFilter
from fpvcar.wire.camera import Record

MJPEG = "MJPG"


class Transcoder:
    """Decodes, filters and encodes each picture. A torn JPEG gives no unit."""

    every = False

    def __init__(self, source: WebcamSource, config: CameraConfig, settings: ImageSettings) -> None:
        self._size, self._line_b = (source.width, source.height), source.line_b
        self._jpeg = decoder() if source.format == MJPEG else None
        flip: Flip = "none" if source.set_flip(config.flip) else config.flip
        self._filter = SoftwareFilter(flip, settings)
        self._encoder = Encoder(*self._size, config.fps, config.bitrate)

    def unit(self, data: memoryview, time_us: int, key: bool) -> Record | None:
        """Return the access unit of one frame, None for an invalid frame."""
        picture = self._decode(data) if self._jpeg else self._yuyv(data)
        if picture is None or (picture.width, picture.height) != self._size:
            return None
        plain = picture.reformat(format="yuv420p", dst_color_range="MPEG")
        unit, is_key = self._encoder.encode(self._filter.apply(plain), key)
        return Record(is_key, time_us, unit) if unit else None

    def skipped(self) -> None:
        """Do nothing: each frame is whole."""

    def set_bitrate(self, bitrate: int) -> None:
        """Continue with another bitrate; the next unit is a key frame."""
        self._encoder.reopen(bitrate)

    def set_image(self, settings: ImageSettings) -> None:
        """Set brightness and night from the next picture on."""
        self._filter.set_image(settings)

    def _decode(self, data: memoryview) -> VideoFrame | None:
        assert self._jpeg
        try:
            pictures = self._jpeg.decode(av.Packet(bytes(data)))
        except av.FFmpegError:
            return None
        return pictures[-1] if pictures else None

    def _yuyv(self, data: memoryview) -> VideoFrame | None:
        """Return the picture of a frame; its line length is set by the driver."""
        width, height = self._size
        if len(data) < self._line_b * (height - 1) + 2 * width:
            return None
        picture = VideoFrame(width, height, "yuyv422")
        plane = picture.planes[0]
        if plane.line_size == self._line_b and len(data) >= plane.buffer_size:
            plane.update(bytes(data[: plane.buffer_size]))
            return picture
        lines = bytearray(plane.buffer_size)
        for row in range(height):
            at, to = row * self._line_b, row * plane.line_size
            lines[to : to + 2 * width] = data[at : at + 2 * width]
        plane.update(bytes(lines))
        return picture


def decoder() -> VideoCodecContext:
    """Return a decoder with one thread: more threads would hold frames."""
    codec = VideoCodecContext.create("mjpeg", "r")
    assert isinstance(codec, VideoCodecContext)
    codec.thread_count = 1
    return codec

"""Stand-in for /dev/video11, the H.264 encoder of a Pi Zero to 4, in the use by picamera2's
V4L2Encoder: DMA buffers in, mapped buffers out, controls on the descriptor that streams. A
key frame comes every I_PERIOD frames, and when it is forced."""

import io
import os
import select
import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import videodev2 as v4l2

from fpvcar.video.programs.encoder import Encoder

U32 = 0xFFFFFFFF  # videodev2 has them signed
REFUSAL = os.environ.get("PICAMERA_ENCODER", "")
OUT = v4l2.V4L2_BUF_TYPE_VIDEO_OUTPUT_MPLANE


class Codec:
    """Open device of the encoder."""

    def __init__(self) -> None:
        self.closed = False
        self._lock = threading.Lock()
        self._there, self._controls = os.eventfd(0), dict[int, int]()
        self._size, self._stride = (0, 0), 0
        self._encoder: Encoder | None = None
        self._count, self._forced = 0, False
        self._free: deque[int] = deque()
        self._done_in: deque[int] = deque()
        self._done_out: deque[tuple[int, bytes, bool, tuple[int, int]]] = deque()
        self.memory: dict[int, io.BytesIO] = {}
        self._plane_bytes = 512 << 10

    def fileno(self) -> int:
        return self._there

    def close(self) -> None:
        self.closed = True

    def ioctl(self, request: int, argument: Any) -> int:
        with self._lock:
            known = {
                v4l2.VIDIOC_S_CTRL: self._s_ctrl,
                v4l2.VIDIOC_S_FMT: self._s_fmt,
                v4l2.VIDIOC_S_EXT_CTRLS: self._s_ext_ctrls,
                v4l2.VIDIOC_REQBUFS: self._reqbufs,
                v4l2.VIDIOC_QUERYBUF: self._querybuf,
                v4l2.VIDIOC_QBUF: self._qbuf,
                v4l2.VIDIOC_DQBUF: self._dqbuf,
            }
            handler = {code & U32: one for code, one in known.items()}.get(request & U32)
            if handler is not None:
                handler(argument)
        return 0

    def _reqbufs(self, _: Any) -> None:
        if REFUSAL.isdigit():
            raise OSError(int(REFUSAL), os.strerror(int(REFUSAL)))

    def _s_ctrl(self, control: Any) -> None:
        if control.id == v4l2.V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME:
            self._forced = True
        self._controls[control.id] = control.value
        if control.id == v4l2.V4L2_CID_MPEG_VIDEO_BITRATE and self._encoder:
            self._encoder.reopen(control.value)

    def _s_ext_ctrls(self, controls: Any) -> None:
        for index in range(controls.count):
            self._s_ctrl(controls.controls[index])

    def _s_fmt(self, format: Any) -> None:
        if format.type == OUT:
            picture = format.fmt.pix_mp
            self._size = (picture.width, picture.height)
            self._stride = picture.plane_fmt[0].bytesperline

    def _querybuf(self, buffer: Any) -> None:
        buffer.m.planes[0].length = self._plane_bytes
        buffer.m.planes[0].m.mem_offset = buffer.index
        self.memory[buffer.index] = io.BytesIO()

    def _qbuf(self, buffer: Any) -> None:
        if buffer.type != OUT:
            self._free.append(buffer.index)
            return
        if REFUSAL == "silent":
            return
        stamp = (buffer.timestamp.tv_sec, buffer.timestamp.tv_usec)
        plane = buffer.m.planes[0]
        unit, key = self._encode(os.pread(plane.m.fd, plane.bytesused, 0))
        self._done_in.append(buffer.index)
        if self._free:
            self._done_out.append((self._free.popleft(), unit, key, stamp))
        os.eventfd_write(self._there, 1)

    def _encode(self, data: bytes) -> tuple[bytes, bool]:
        width, height = self._size
        if self._encoder is None:
            bitrate = self._controls[v4l2.V4L2_CID_MPEG_VIDEO_BITRATE]
            self._encoder = Encoder(width, height, 30.0, bitrate)
        period = self._controls[v4l2.V4L2_CID_MPEG_VIDEO_H264_I_PERIOD]
        key = self._forced or self._count % period == 0
        self._forced, self._count = False, 1 if key else self._count + 1
        rows = np.frombuffer(data, np.uint8).reshape(-1, self._stride)
        picture = av.VideoFrame.from_numpy_buffer(rows, "yuv420p", width=width)
        return self._encoder.encode(picture, key)

    def _dqbuf(self, buffer: Any) -> None:
        if buffer.type == OUT:
            buffer.index = self._done_in.popleft()
            return
        index, unit, key, (seconds, micros) = self._done_out.popleft()
        self.memory[index].seek(0)
        self.memory[index].write(unit)
        self.memory[index].seek(0)
        buffer.index, buffer.m.planes[0].bytesused = index, len(unit)
        buffer.flags = v4l2.V4L2_BUF_FLAG_KEYFRAME if key else 0
        buffer.timestamp.tv_sec, buffer.timestamp.tv_usec = seconds, micros

    def poll(self, timeout_ms: int) -> list[tuple[int, int]]:
        if not (self._done_in or self._done_out):
            if select.select([self._there], [], [], timeout_ms / 1e3)[0]:
                os.eventfd_read(self._there)
        with self._lock:
            event = select.POLLOUT if self._done_in else 0
            event |= select.POLLIN if self._done_out else 0
        return [(self._there, event)] if event else []


def install(module: Any) -> None:
    """Install the stand-in below picamera2.encoders.v4l2_encoder."""
    device = Codec()

    def ioctl(fd: Any, request: int, argument: Any) -> int:
        return int(fd.ioctl(request, argument))

    module.open = lambda *_, **__: device
    module.fcntl = SimpleNamespace(ioctl=ioctl)
    module.mmap = SimpleNamespace(
        mmap=lambda fd, size, protection, flags, offset: device.memory[offset],
        PROT_READ=1,
        PROT_WRITE=2,
        MAP_SHARED=1,
    )
    module.select = SimpleNamespace(
        poll=lambda: SimpleNamespace(register=lambda *_: None, poll=device.poll),
        POLLIN=select.POLLIN,
        POLLOUT=select.POLLOUT,
    )

"""x264 for cameras without an encoder: each picture gives one access unit at once.

Constrained baseline, no B-frames, no look-ahead, one thread: no picture is delayed. SPS and PPS
precede each IDR, and declare that no picture is reordered. The rate control's buffer (VBV) holds
0.2 s, so that a key frame stays small.
"""

from fractions import Fraction

from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType, VideoFrame

VBV_S = 0.2
BT601 = 6  # SMPTE 170M, used by swscale for RGB; browsers need it in the stream


class Encoder:
    """Encodes pictures to access units: a key frame first, then further ones on request.

    Raises av.FFmpegError for settings that x264 refuses.
    """

    def __init__(self, width: int, height: int, fps: float, bitrate: int) -> None:
        self._size = (width, height)
        self._fps = Fraction(fps).limit_denominator(1001)
        self._count = 0
        self._codec = self._open(bitrate)

    def _open(self, bitrate: int) -> VideoCodecContext:
        codec = VideoCodecContext.create("libx264", "w")
        assert isinstance(codec, VideoCodecContext)
        codec.width, codec.height = self._size
        codec.pix_fmt = "yuv420p"
        codec.framerate, codec.time_base = self._fps, 1 / self._fps
        codec.bit_rate = bitrate
        codec.qmin = 20  # a still picture need not fill the bitrate
        codec.max_b_frames = 0
        codec.thread_count = 1
        codec.color_primaries = codec.color_trc = codec.colorspace = BT601
        codec.options = {
            "preset": "ultrafast",
            "tune": "zerolatency",
            "profile": "baseline",
            "forced-idr": "1",
            "maxrate": str(bitrate),
            "bufsize": str(round(bitrate * VBV_S)),
            "x264-params": "scenecut=0:sliced-threads=0:keyint=infinite",
        }
        codec.open()
        return codec

    def reopen(self, bitrate: int) -> None:
        """Continue with another bitrate; the next access unit is a key frame."""
        self._codec = self._open(bitrate)

    def encode(self, picture: VideoFrame, key: bool) -> tuple[bytes, bool]:
        """Encode a yuv420p picture; return (access unit as Annex B, whether it is a key frame)."""
        picture.pts = self._count
        picture.time_base = 1 / self._fps
        picture.pict_type = PictureType.I if key else PictureType.NONE
        self._count += 1
        packets = self._codec.encode(picture)
        unit = b"".join(bytes(packet) for packet in packets)
        return unit, any(packet.is_keyframe for packet in packets)

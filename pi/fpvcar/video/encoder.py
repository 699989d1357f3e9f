"""x264 for cameras without an encoder: one access unit for each picture, at once.

Constrained baseline, no B-frames, no look-ahead, one thread: nothing is held. SPS and
PPS stand before each IDR, and say that no picture is reordered. The buffer that rate
control may fill (VBV) holds 0.2 s, so that a key frame stays small.
"""

from fractions import Fraction

from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType, VideoFrame

VBV_S = 0.2
BT601 = 6  # SMPTE 170M; what swscale makes of RGB, and a browser must be told


class Encoder:
    """Pictures in, access units out: a key frame first, then when one is asked for.

    Raises av.FFmpegError for what x264 refuses.
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
        codec.qmin = 20  # a picture that stands still need not fill the bitrate
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
        """Goes on with another bitrate; the next access unit is a key frame."""
        self._codec = self._open(bitrate)

    def encode(self, picture: VideoFrame, key: bool) -> tuple[bytes, bool]:
        """(access unit as Annex B, whether it is a key frame) of a yuv420p picture."""
        picture.pts = self._count
        picture.time_base = 1 / self._fps
        picture.pict_type = PictureType.I if key else PictureType.NONE
        self._count += 1
        packets = self._codec.encode(picture)
        unit = b"".join(bytes(packet) for packet in packets)
        return unit, any(packet.is_keyframe for packet in packets)

"""A webcam by V4L2: frames, and what its controls can turn."""

from pathlib import Path

from fpvcar.config import Flip
from fpvcar.devices.linux import v4l2_controls as controls
from fpvcar.devices.linux.v4l2 import Capture


class Webcam(Capture):
    """A webcam that streams. Raises V4l2Error."""

    def __init__(
        self, path: Path, wanted: str, width: int, height: int, fps: float
    ) -> None:  # fmt: skip
        super().__init__(path, wanted, width, height, fps)
        self.format = wanted

    def set_flip(self, flip: Flip) -> bool:
        """By the sensor; False if nothing was turned."""
        across, down = flip in ("horizontal", "both"), flip in ("vertical", "both")
        if all(
            controls.query(self.fd, one) for one in (controls.HFLIP, controls.VFLIP)
        ):
            controls.put(self.fd, controls.HFLIP, across)
            return controls.put(self.fd, controls.VFLIP, down)
        return False

    def set_brightness(self, share: float) -> bool:
        """From the control's least by what it has at rest to its most."""
        return controls.put_share(self.fd, controls.BRIGHTNESS, share)

    def set_night(self, night: bool) -> bool:
        """Lets the rate fall in the dark; else it is to stay."""
        return controls.put(self.fd, controls.SLOWER_IN_THE_DARK, night)

    def request_key(self) -> bool:
        """Of one that encodes."""
        return controls.put(self.fd, controls.KEY_FRAME, 1)

    def set_bitrate(self, bitrate: int) -> bool:
        """Of one that encodes."""
        return controls.put(self.fd, controls.BITRATE, bitrate)

    def set_gop(self, frames: int) -> bool:
        """Of one that encodes: a key frame every so many, with its SPS and PPS."""
        controls.put(self.fd, controls.REPEAT_SETS, 1)
        return controls.put(self.fd, controls.GOP_FRAMES, frames)

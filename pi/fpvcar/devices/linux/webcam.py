"""Webcam through V4L2: frames and controls."""

from pathlib import Path

from fpvcar.config import Flip
from fpvcar.devices.linux import v4l2_controls as controls
from fpvcar.devices.linux.v4l2 import Capture


class Webcam(Capture):
    """Webcam that streams frames through V4L2. Raises CaptureError."""

    def __init__(self, path: Path, format: str, width: int, height: int, fps: float) -> None:
        super().__init__(path, format, width, height, fps)
        self.format = format

    def set_flip(self, flip: Flip) -> bool:
        """Flip in the sensor; False if it cannot."""
        across, down = flip in ("horizontal", "both"), flip in ("vertical", "both")
        if all(controls.query(self.fd, control) for control in (controls.HFLIP, controls.VFLIP)):
            controls.put(self.fd, controls.HFLIP, across)
            return controls.put(self.fd, controls.VFLIP, down)
        return False

    def set_brightness(self, share: float) -> bool:
        """Set the brightness from the control's minimum through its default to its maximum."""
        return controls.put_share(self.fd, controls.BRIGHTNESS, share)

    def set_night(self, night: bool) -> bool:
        """Allow a lower frame rate in the dark, or keep it constant."""
        return controls.put(self.fd, controls.SLOWER_IN_THE_DARK, night)

    def request_key(self) -> bool:
        """Request a key frame from a webcam with an encoder."""
        return controls.put(self.fd, controls.KEY_FRAME, 1)

    def set_bitrate(self, bitrate: int) -> bool:
        """Set the bitrate of a webcam with an encoder."""
        return controls.put(self.fd, controls.BITRATE, bitrate)

    def set_gop(self, frames: int) -> bool:
        """Set the key frame interval of a webcam with an encoder, with SPS and PPS in each."""
        controls.put(self.fd, controls.REPEAT_SETS, 1)
        return controls.put(self.fd, controls.GOP_FRAMES, frames)

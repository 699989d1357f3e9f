"""Camera settings that change at run time: `run` writes them as a line, the camera reads it.

    "look EXPOSURE BRIGHTNESS NIGHT"        look sport 0.25 0

A change of size, rate or flip restarts the camera's process instead.
"""

from typing import NamedTuple, get_args

from fpvcar.config import Camera, Exposure

EXPOSURES: tuple[Exposure, ...] = get_args(Exposure)


class ImageSettings(NamedTuple):
    """Exposure, brightness from -1 to 1 (0: unchanged), and night mode."""

    exposure: Exposure = "normal"
    brightness: float = 0.0
    night: bool = False

    def line(self) -> str:
        """Return the line for the stdin of a camera's process."""
        return f"look {self.exposure} {self.brightness:g} {self.night:d}"


def image_settings_of(camera: Camera) -> ImageSettings:
    """Return the image settings of a camera in the profile."""
    return ImageSettings(camera.exposure, camera.brightness, camera.night)


def parse_image_settings(words: list[bytes]) -> ImageSettings | None:
    """Parse the words of a line; return None if they are not valid settings."""
    if len(words) != 4 or words[0] != b"look":
        return None
    exposures = {name.encode(): name for name in EXPOSURES}
    exposure, night = exposures.get(words[1]), words[3]
    try:
        brightness = float(words[2])
    except ValueError:
        return None
    if exposure is None or not -1.0 <= brightness <= 1.0 or night not in (b"0", b"1"):
        return None
    return ImageSettings(exposure, brightness, night == b"1")

"""Picture settings by a grown-up while the car runs: applied live if the camera can.

SetPicture -> PictureSettings.change -> Camera.adjust   "look ..." to the process
                                     -> Camera.renew  size, rate, flip: a restart
                                     -> kept          for the next run
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fpvcar.config import Camera as CameraConfig
from fpvcar.config import Picture, Profile
from fpvcar.runtime.service import Event
from fpvcar.video.camera import Camera, argv_of
from fpvcar.video.frame_rate import STEADY_FPS
from fpvcar.video.image_settings import image_settings_of
from fpvcar.video.options import within_software

if TYPE_CHECKING:
    from fpvcar.devices.sensor_modes import ModeReport

ALL = tuple(Picture.__struct_fields__)
NOT_PI = tuple(name for name in ALL if name not in ("view", "exposure"))
ABLE = {
    "picamera2": ALL,
    "rpicam": ALL,
    "v4l2": NOT_PI,
    "bench": NOT_PI,
    "stamped": NOT_PI,
    "strip": NOT_PI,
    "none": (),
}
"""Settings of each source; a webcam chooses its exposure itself."""
IMAGE_KEYS = ("exposure", "brightness", "night")
"""Settings that change without a restart."""


def settable_keys(camera: CameraConfig) -> tuple[str, ...]:
    """Return the settings that this camera has; a foreign program has no settings."""
    return () if camera.command else ABLE[camera.source]


def set_fields(picture: Picture) -> dict[str, Any]:
    """Return the fields that are set."""
    values = msgspec.structs.asdict(picture)
    return {name: value for name, value in values.items() if value is not None}


def with_picture(profile: Profile, picture: Picture | None) -> Profile:
    """Return the profile with the grown-up's picture settings. Settings that the camera lacks,
    because the profile was changed since, are left out."""
    if picture is None:
        return profile
    names = settable_keys(profile.camera)
    values = {name: value for name, value in set_fields(picture).items() if name in names}
    camera = msgspec.structs.replace(profile.camera, **values)
    if _crop(camera) != _crop(profile.camera):
        camera = msgspec.structs.replace(camera, fov_deg=None)
    return msgspec.structs.replace(profile, camera=camera)


def _crop(camera: CameraConfig) -> tuple[object, ...]:
    """Return the settings on which the visible part of the sensor depends."""
    fps = camera.fps if camera.view == "fast" else None
    return camera.width, camera.height, camera.view, fps


class PictureSettings:
    """Current picture settings.

    Each change publishes `kept` with the values that differ from the profile, and `changed` with
    the camera's settings.
    """

    def __init__(
        self, profile: Profile, saved: Picture | None, soc: Path | None, camera: Camera
    ) -> None:
        """Create the settings; `camera` already uses the `saved` values."""
        self._own, self._soc, self._camera = profile, soc, camera
        self._profile = with_picture(profile, saved)
        self.kept, self.changed = Event[Picture](), Event[CameraConfig]()

    def change(self, picture: Picture) -> str | None:
        """Apply the settings; return instead the name of a setting that the camera lacks, if
        any."""
        names, values = settable_keys(self._own.camera), set_fields(picture)
        for name in values:
            if name not in names:
                return name
        before = self._profile.camera
        merged = Picture(**set_fields(self._differing()) | values)
        self._profile = with_picture(self._own, merged)
        camera = self._profile.camera
        argv, _ = argv_of(self._profile, self._soc)
        if all(getattr(before, n) == getattr(camera, n) for n in names if n not in IMAGE_KEYS):
            self._camera.adjust(argv, image_settings_of(camera).line())
        else:
            self._camera.renew(argv)
        self.kept.publish(self._differing())
        self.changed.publish(camera)
        return None

    def _differing(self) -> Picture:
        current, original = self._profile.camera, self._own.camera
        return Picture(
            **{
                name: getattr(current, name)
                for name in settable_keys(original)
                if getattr(current, name) != getattr(original, name)
            }
        )

    def mode(self) -> "ModeReport | None":
        """Return the sensor's mode in words; None before the camera program reports a sensor."""
        if not self._camera.sensor:
            return None
        from fpvcar.devices import sensor_modes  # not above: only a Pi's camera has it

        return sensor_modes.report(self._camera.sensor, self._encodable())

    def within_limits(self) -> CameraConfig:
        """Return the settings, with a high rate lowered to that of encoder and sensor."""
        camera = self._encodable()
        if self._camera.sensor and camera.fps > STEADY_FPS:
            from fpvcar.devices import sensor_modes

            camera, _ = sensor_modes.within_mode(self._camera.sensor, camera)
        return camera

    def _encodable(self) -> CameraConfig:
        camera = self._profile.camera
        hangs = self._camera.encoder_hangs
        return within_software(camera, os.cpu_count() or 1) if hangs else camera

    def as_json(self) -> dict[str, object]:
        """Return the settings for /api/picture, and the names of the adjustable ones."""
        camera, mode = self._profile.camera, self.mode()
        texts = [mode.text, mode.rate] if mode else []
        texts = [text for text in (*texts, self._camera.lowered_rate) if text]
        return {
            "can": settable_keys(camera),
            **{name: getattr(camera, name) for name in ALL},
            "mode": texts,
        }

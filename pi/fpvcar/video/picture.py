"""Picture settings by a grown-up while the car runs: applied live if the camera can.

SetPicture -> PictureSettings.change -> Camera.adjust   "look ..." to the process
                                     -> Camera.renew  size, rate, flip: a restart
                                     -> save          for the next run
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from fpvcar.config import Camera as CameraConfig
from fpvcar.config import Picture, Profile
from fpvcar.video.camera import Camera, argv_of
from fpvcar.video.image_settings import image_settings_of

ALL = tuple(Picture.__struct_fields__)
NO_EXPOSURE = tuple(name for name in ALL if name != "exposure")
ABLE = {
    "picamera2": ALL,
    "rpicam": ALL,
    "v4l2": NO_EXPOSURE,
    "bench": NO_EXPOSURE,
    "stamped": NO_EXPOSURE,
    "strip": NO_EXPOSURE,
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
    if (camera.width, camera.height) != (profile.camera.width, profile.camera.height):
        camera = msgspec.structs.replace(camera, fov_deg=None)  # another size may be cropped
    return msgspec.structs.replace(profile, camera=camera)


class PictureSettings:
    """Current picture settings. `save` receives the values that differ from the profile."""

    def __init__(
        self,
        profile: Profile,
        saved: Picture | None,
        soc: Path | None,
        camera: Camera,
        save: Callable[[Picture], None],
    ) -> None:
        """Create the settings; `camera` already uses the `saved` values."""
        self._own, self._soc, self._camera, self._save = profile, soc, camera, save
        self._profile = with_picture(profile, saved)
        self.changed: Callable[[CameraConfig], None] = lambda camera: None
        """Called with the camera's settings after each change."""

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
        self._save(self._differing())
        self.changed(camera)
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

    def as_json(self) -> dict[str, object]:
        """Return the settings for /api/picture, and the names of the adjustable ones."""
        camera = self._profile.camera
        return {"can": settable_keys(camera), **{name: getattr(camera, name) for name in ALL}}

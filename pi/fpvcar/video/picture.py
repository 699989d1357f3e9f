"""Picture settings by a grown-up while the car runs: applied live if the camera can.

SetPicture -> PictureSettings.change -> Camera.tell   "look ..." to the process
                                     -> Camera.renew  size, rate, flip: a restart
                                     -> save          for the next run
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from fpvcar.config import Camera as Wanted
from fpvcar.config import Picture, Profile
from fpvcar.video.camera import Camera, argv_of
from fpvcar.video.image_settings import look_of

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
LOOK = ("exposure", "brightness", "night")
"""Settings that change without a restart."""


def able(camera: Wanted) -> tuple[str, ...]:
    """Return the settings that this camera has; a foreign program has no settings."""
    return () if camera.command else ABLE[camera.source]


def given(picture: Picture) -> dict[str, Any]:
    """Return the fields that are set."""
    values = msgspec.structs.asdict(picture)
    return {name: value for name, value in values.items() if value is not None}


def with_picture(profile: Profile, picture: Picture | None) -> Profile:
    """Return the profile with the grown-up's picture settings. Settings that the camera lacks,
    because the profile was changed since, are left out."""
    if picture is None:
        return profile
    known = able(profile.camera)
    new = {name: value for name, value in given(picture).items() if name in known}
    camera = msgspec.structs.replace(profile.camera, **new)
    if (camera.width, camera.height) != (profile.camera.width, profile.camera.height):
        camera = msgspec.structs.replace(camera, fov_deg=None)  # another size may be cropped
    return msgspec.structs.replace(profile, camera=camera)


class PictureSettings:
    """Current picture settings. `save` receives the values that differ from the profile."""

    def __init__(
        self,
        profile: Profile,
        before: Picture | None,
        soc: Path | None,
        camera: Camera,
        save: Callable[[Picture], None],
    ) -> None:
        """Create the settings; `before` was saved, and `camera` already uses it."""
        self._own, self._soc, self._camera, self._save = profile, soc, camera, save
        self._profile = with_picture(profile, before)
        self.changed: Callable[[Wanted], None] = lambda camera: None
        """Called with the camera's settings after each change."""

    def change(self, wanted: Picture) -> str | None:
        """Apply the settings; return instead the name of a setting that the camera lacks, if
        any."""
        known, new = able(self._own.camera), given(wanted)
        for name in new:
            if name not in known:
                return name
        before = self._profile.camera
        both = Picture(**given(self._differing()) | new)
        self._profile = with_picture(self._own, both)
        camera = self._profile.camera
        argv, _ = argv_of(self._profile, self._soc)
        if all(getattr(before, n) == getattr(camera, n) for n in known if n not in LOOK):
            self._camera.tell(argv, look_of(camera).line())
        else:
            self._camera.renew(argv)
        self._save(self._differing())
        self.changed(camera)
        return None

    def _differing(self) -> Picture:
        now, own = self._profile.camera, self._own.camera
        return Picture(
            **{
                name: getattr(now, name)
                for name in able(own)
                if getattr(now, name) != getattr(own, name)
            }
        )

    def as_json(self) -> dict[str, object]:
        """Return the settings for /api/picture, and the names of the adjustable ones."""
        camera = self._profile.camera
        return {"can": able(camera), **{name: getattr(camera, name) for name in ALL}}

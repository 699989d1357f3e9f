"""What a grown-up sets of the picture while the car runs: live where the camera can.

SetPicture -> PictureSettings.change -> Camera.tell   "look ..." to the process
                                     -> Camera.renew  size, rate, flip: starts anew
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
"""What each source can be told; a webcam chooses its exposure itself."""
LOOK = ("exposure", "brightness", "night")
"""What changes without a new start."""


def able(camera: Wanted) -> tuple[str, ...]:
    """The settings that this camera has; a program of somebody else's has none."""
    return () if camera.command else ABLE[camera.source]


def given(picture: Picture) -> dict[str, Any]:
    """What is set."""
    values = msgspec.structs.asdict(picture)
    return {name: value for name, value in values.items() if value is not None}


def with_picture(profile: Profile, picture: Picture | None) -> Profile:
    """The profile, as a grown-up has left its picture; what the camera has not got,
    because the profile was changed since, is left out."""
    if picture is None:
        return profile
    known = able(profile.camera)
    new = {name: value for name, value in given(picture).items() if name in known}
    camera = msgspec.structs.replace(profile.camera, **new)
    return msgspec.structs.replace(profile, camera=camera)


class PictureSettings:
    """The picture as it is set. `save` gets what is not as in the profile."""

    def __init__(
        self,
        profile: Profile,
        before: Picture | None,
        soc: Path | None,
        camera: Camera,
        save: Callable[[Picture], None],
    ) -> None:
        """`before`: what was saved; `camera` runs with it already."""
        self._own, self._soc, self._camera, self._save = profile, soc, camera, save
        self._profile = with_picture(profile, before)

    def change(self, wanted: Picture) -> str | None:
        """Sets it from now on; what the camera has not got, if anything, instead."""
        known, new = able(self._own.camera), given(wanted)
        for name in new:
            if name not in known:
                return name
        before = self._profile.camera
        self._profile = with_picture(self._profile, wanted)
        camera = self._profile.camera
        argv, _ = argv_of(self._profile, self._soc)
        if all(getattr(before, n) == getattr(camera, n) for n in known if n not in LOOK):
            self._camera.tell(argv, look_of(camera).line())
        else:
            self._camera.renew(argv)
        self._save(self._differing())
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
        """For /api/picture: the settings, and which of them can be set."""
        camera = self._profile.camera
        return {"can": able(camera), **{name: getattr(camera, name) for name in ALL}}

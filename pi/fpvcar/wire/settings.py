"""Settings of the car on /ws/drive: messages that change them, and their values for all pages.

A control of a page names its message: `<input data-setting="limit" name="throttle">`.
"""

from msgspec import Struct

from fpvcar.config import GuardMode, Picture, Share
from fpvcar.wire.json_text import Up


class SettingsState(Struct, frozen=True):
    """Values of settings that pages switch: see seat/settings.py."""

    head_lights: bool = False


class Lights(Up, tag="lights", frozen=True):
    """Switches the head lights; None toggles them."""

    head: bool | None = None


class Limit(Up, tag="limit", frozen=True):
    """Speed limit, set by a grown-up: a share of full throttle, <= the profile's."""

    throttle: Share


class Guard(Up, tag="guard", frozen=True):
    """Mode of the collision guard, set by a grown-up."""

    mode: GuardMode


class SetPicture(Up, tag="picture", frozen=True):
    """Picture settings, set by a grown-up; missing fields keep their values."""

    to: Picture


class SetRecording(Up, tag="record", frozen=True):
    """Turns recording on or off; while off, only the last minute remains available for Keep."""

    on: bool


Setting = Lights | Limit | Guard | SetPicture | SetRecording

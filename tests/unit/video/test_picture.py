"""Picture settings of a grown-up: live, by a restart, refused, and kept."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from testkit.hub import PROFILE, FakeCamera, House

from fpvcar import config
from fpvcar.config import Picture, profiles
from fpvcar.drive.saved import SavedSettings, Saver
from fpvcar.runtime.texts import Text
from fpvcar.seat.handlers import handlers_of
from fpvcar.seat.settings import Settings
from fpvcar.video.camera import Camera, argv_of
from fpvcar.video.picture import ABLE, PictureSettings, settable_keys, with_picture
from fpvcar.wire.settings import SetPicture


def profile(source: str, **more: object) -> config.Profile:
    camera = msgspec.convert({"source": source, **more}, config.Camera)
    return msgspec.structs.replace(PROFILE, camera=camera)


def settings(
    own: config.Profile,
    before: Picture | None = None,
    changed: Callable[[config.Camera], None] = lambda camera: None,
) -> tuple[PictureSettings, FakeCamera, list[Picture]]:
    camera, kept = FakeCamera(), list[Picture]()
    picture = PictureSettings(own, before, None, camera)
    picture.kept.subscribe(kept.append)
    picture.changed.subscribe(changed)
    return picture, camera, kept


def texts_of(picture: PictureSettings) -> list[Text]:
    return cast("list[Text]", picture.as_json()["mode"])


def test_abilities_are_known_for_all_sources() -> None:
    hint = config.Camera.__annotations__["source"]
    assert set(ABLE) == set(hint.__args__)
    assert settable_keys(config.Camera(source="v4l2", command=("raspivid",))) == ()


def test_field_of_view_other_size_is_unknown_until_back() -> None:
    heard: list[tuple[int, float | None]] = []
    picture, _, kept = settings(
        profile("picamera2", fov_deg=70.0),
        changed=lambda camera: heard.append((camera.width, camera.fov_deg)),
    )
    for width in (320, 640):
        assert picture.change(Picture(width=width)) is None
    assert picture.change(Picture(flip="both")) is None
    assert heard == [(320, None), (640, 70.0), (640, 70.0)]
    assert kept[0].width == 320 and kept[-1] == Picture(flip="both")


def test_field_of_view_of_another_mode_is_unknown() -> None:
    own = profile("picamera2", fov_deg=52.0)

    def fov_deg(**values: Any) -> float | None:
        return with_picture(own, Picture(**values)).camera.fov_deg

    assert fov_deg(fps=60.0) == 52.0, "the whole view has the same angle at any rate"
    assert fov_deg(view="fast") is None
    own = profile("picamera2", fov_deg=36.0, view="fast", fps=60.0)
    assert fov_deg(fps=30.0) is None
    assert fov_deg(brightness=0.5) == 36.0


def test_mode_follows_the_reported_sensor() -> None:
    picture, camera, _ = settings(profile("picamera2", fps=60.0))
    assert picture.as_json()["mode"] == [] and picture.mode() is None
    camera.reported("camera: sensor imx708")
    mode, rate = texts_of(picture)
    assert str(mode).startswith("imx708: 2304 × 1296") and "56 of 60" in str(rate)
    assert picture.change(Picture(view="fast")) is None
    assert "--view=fast" in camera.argv and camera.ends
    assert len(texts_of(picture)) == 1
    camera.lowered_rate = Text("rate_heat", "30 instead of 60")
    assert texts_of(picture)[1:] == [camera.lowered_rate]
    camera.lowered_rate = None
    camera.reported("camera: sensor ov9281")
    assert [str(text).startswith("ov9281: a sensor without") for text in texts_of(picture)] == [
        True
    ]


def test_rate_within_limits_is_that_of_sensor_and_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    picture, camera, _ = settings(profile("picamera2", fps=60.0))
    assert picture.within_limits().fps == 60.0
    camera.reported("camera: sensor imx708")
    assert picture.within_limits().fps == 56.0
    monkeypatch.setattr(Camera, "encoder_hangs", True)
    assert picture.within_limits().fps <= 20.0


def test_look_change_is_sent_to_the_running_camera() -> None:
    own = profile("picamera2")
    picture, camera, kept = settings(own)
    assert picture.change(Picture(brightness=0.25, night=True)) is None
    assert camera.lines == ["look normal 0.25 1"] and camera.ends == []
    assert "--brightness=0.25" in camera.argv and "--night" in camera.argv
    assert picture.change(Picture(exposure="sport")) is None
    assert camera.lines[-1] == "look sport 0.25 1"
    assert kept[-1] == Picture(exposure="sport", brightness=0.25, night=True)
    assert picture.change(Picture(brightness=0.0, night=False, exposure="normal")) is None
    assert kept[-1] == Picture(), "as in the profile: nothing to be kept"


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        (Picture(width=1280, height=720), "--width=1280"),
        (Picture(fps=15.0), "--fps=15.0"),
        (Picture(flip="both", brightness=0.5), "--flip=both"),
    ],
)
def test_size_rate_and_flip_restart_the_camera(wanted: Picture, word: str) -> None:
    picture, camera, kept = settings(profile("rpicam"))
    assert picture.change(wanted) is None
    assert word in camera.argv and len(camera.ends) == 1 and camera.lines == []
    assert kept == [wanted]
    assert picture.as_json()["can"] == ABLE["rpicam"]


def test_unsupported_picture_setting_is_refused() -> None:
    picture, camera, kept = settings(profile("v4l2"))
    assert picture.change(Picture(exposure="sport", night=True)) == "exposure"
    picture_none, *_ = settings(profile("none"))
    assert picture_none.change(Picture(night=True)) == "night"
    assert (camera.lines, camera.ends, kept) == ([], [], [])
    assert picture.as_json()["night"] is False


def test_saved_picture_applies_from_the_start(tmp_path: Path) -> None:
    own, before = profile("v4l2", width=320), Picture(fps=20.0, exposure="long")
    now = with_picture(own, before)
    assert (now.camera.fps, now.camera.width, now.camera.exposure) == (20.0, 320, "normal")
    assert "--fps=20.0" in argv_of(now, None)[0]
    assert with_picture(own, None) is own
    picture, *_ = settings(own, before)
    assert picture.as_json()["fps"] == 20.0


CARD_S = 30.0
"""Longest time that a busy disk may take."""


def test_saved_picture_and_limit_do_not_overwrite_each_other(tmp_path: Path) -> None:
    saver = Saver(tmp_path)
    saver.start()
    saver.put(SavedSettings(limit=0.5))
    saver.put_picture(Picture(night=True))
    saver.put(SavedSettings(limit=0.4))
    saver.stop(CARD_S)
    after = Saver(tmp_path)
    assert after.before == SavedSettings(limit=0.4, picture=Picture(night=True))
    after.start()
    after.put_picture(Picture())
    after.stop(CARD_S)
    assert Saver(tmp_path).before == SavedSettings(limit=0.4)


def test_saver_stopped_before_its_first_turn_still_writes(tmp_path: Path) -> None:
    saver = Saver(tmp_path)
    saver.put(SavedSettings(limit=0.5))
    saver.ending = True  # as when a busy machine starts the thread late
    saver.start()
    saver.stop(CARD_S)
    assert Saver(tmp_path).before == SavedSettings(limit=0.5)


# --- rights --------------------------------------------------------------------------


def test_picture_is_set_by_grown_ups_only() -> None:
    house = House()
    picture, camera, _ = settings(profile("picamera2"))
    vehicle = dataclasses.replace(house.vehicle, picture=picture)
    changed = Settings(PROFILE, vehicle, lambda: None)
    house.hub._handlers |= handlers_of((changed,), house.hub._turns, house.name, ())
    ann, mum = house.visitor("Ann"), house.visitor("Mum", code="grownups")
    ann.say(SetPicture(Picture(night=True)))
    assert ann.errors()[-1].what == "only a grown-up sets the picture"
    mum.say(SetPicture(Picture(night=True)))
    assert camera.lines == ["look normal 0 1"] and mum.errors() == []
    for _ in range(30):
        mum.say(SetPicture(Picture(night=True)))
    assert mum.errors()[-1].what == "too many pushes"


def test_set_picture_without_support_is_an_error() -> None:
    house = House()
    mum = house.visitor("Mum", code="grownups")
    mum.say(SetPicture(Picture(night=True)))
    assert mum.errors()[-1].what == "this camera lacks the setting"


def test_profile_refuses_an_exposure_that_a_webcam_lacks() -> None:
    path = Path(__file__).parents[3] / "hardware" / "bench.toml"
    sets = ['camera.source = "v4l2"', 'camera.exposure = "sport"']
    with pytest.raises(config.ConfigError, match=r'camera.exposure = "sport": a v4l2'):
        profiles.load(path, sets)
    assert profiles.load(path, ['camera.source = "rpicam"', sets[1]])

"""Command `fpvcar camera v4l2`: requests to a webcam, its frames, and its removal."""

import sys

import pytest
from testkit.cameras.camera import Camera, corner, decode, decoder, luma, middle, seen
from testkit.cameras.fake_webcam import LEVEL, FakeWebcam

from fpvcar import config
from fpvcar.devices.capture import PackageMissing
from fpvcar.runtime.texts import text_of_line
from fpvcar.video import process
from fpvcar.video.image_settings import ImageSettings
from fpvcar.video.programs.webcam import GOP_MOST_S, Passthrough, RareKeys, Webcam, coder_of

PROGRAM = "testkit.cameras.fake_webcam"
SIZE = ("--width=160", "--height=120")


def webcam(cameras: list[Camera], *options: str, **env: str) -> Camera:
    cameras.append(Camera(*SIZE, *options, program=PROGRAM, **env))
    return cameras[-1]


@pytest.mark.parametrize("form", ["YUYV", "MJPG"])
def test_levels_are_as_the_webcam_gave_them(cameras: list[Camera], form: str) -> None:
    picture = seen(webcam(cameras, WEBCAM_FORMATS=form))
    assert middle(picture) == pytest.approx(LEVEL, abs=4)
    assert corner(picture) == ("top", "left")


@pytest.mark.parametrize(
    ("flip", "place"),
    [
        ("horizontal", ("top", "right")),
        ("vertical", ("bottom", "left")),
        ("both", ("bottom", "right")),
    ],
)
def test_picture_is_flipped_if_the_webcam_cannot(
    cameras: list[Camera], flip: str, place: tuple[str, str]
) -> None:
    assert corner(seen(webcam(cameras, f"--flip={flip}"))) == place
    by_itself = webcam(cameras, f"--flip={flip}", WEBCAM_CONTROLS="flip")
    assert corner(seen(by_itself)) == ("top", "left"), "not a second time"


@pytest.mark.parametrize("controls", ["", "brightness"])
def test_brightness_changes_while_the_camera_runs(cameras: list[Camera], controls: str) -> None:
    camera = webcam(cameras, "--brightness=-0.2", WEBCAM_CONTROLS=controls)
    assert middle(seen(camera)) < LEVEL - 10
    camera.ask("look normal 0.5 0")
    camera.ask("key")
    for _ in range(100):
        record = camera.record()
        if record.key and middle(luma(decode(decoder(), record.unit))) > LEVEL + 30:
            return
    raise AssertionError("as dark as before")


def test_fewer_frames_are_encoded_on_request(cameras: list[Camera]) -> None:
    camera = webcam(cameras, "--fps=20")
    camera.record()
    camera.ask("fps 5")
    camera.wait_gaps(lambda gap_us: gap_us > 120_000)


def test_night_is_brighter(cameras: list[Camera]) -> None:
    assert middle(seen(webcam(cameras, "--night"))) > LEVEL + 20
    dark = webcam(cameras, "--night", WEBCAM_CONTROLS="night")
    assert middle(seen(dark)) == pytest.approx(LEVEL, abs=4), "it exposes longer itself"


def test_most_preferred_offered_format_is_used(cameras: list[Camera]) -> None:
    own = "YUYV MJPG H264"
    for options, expected in (([], "H264"), (["--format=mjpeg"], "MJPG")):
        camera = webcam(cameras, *options, WEBCAM_FORMATS=own)
        camera.record()
        said = camera.end_and_said()
        assert f"camera: {expected} 160x120" in said
        assert ("camera: fixed rate" in said) == (expected == "H264")


@pytest.mark.slow
def test_h264_with_rare_key_frames_is_encoded_here(cameras: list[Camera]) -> None:
    camera = webcam(cameras, WEBCAM_FORMATS="H264 YUYV", WEBCAM_GOP="100000")
    keys = sum(camera.record().key for _ in range(130))
    assert keys >= 2
    said = camera.end_and_said()
    assert "had no key frame for 2.5 s: encoding it here" in said
    assert "camera: YUYV 160x120" in said and said.index("fixed rate") < said.index("any rate")


def test_keys_that_a_slow_reader_missed_are_not_rare() -> None:
    """The reader skipped the keys that came in between."""
    coder, late_us = Passthrough(), round(GOP_MOST_S * 1e6) + 1
    inter = memoryview(b"\0\0\0\1\x41\x9a")
    assert coder.unit(inter, 0, False) is not None
    coder.skipped()
    assert coder.unit(inter, late_us, False) is not None
    with pytest.raises(RareKeys, match="no key frame for"):
        coder.unit(inter, 2 * late_us, False)


@pytest.mark.parametrize(("form", "whole"), [("H264", False), ("YUYV", True)])
def test_coder_is_told_of_skipped_frames(
    monkeypatch: pytest.MonkeyPatch, form: str, whole: bool
) -> None:
    source = FakeWebcam(form, 160, 120, 30.0)
    coder, told = coder_of(source, config.Camera(), ImageSettings()), []
    monkeypatch.setattr(coder, "skipped", lambda: told.append(True))
    assert Webcam(source, coder, 1.0).skip() == whole
    assert told == [True]


def test_torn_jpeg_is_skipped(cameras: list[Camera]) -> None:
    env = {"WEBCAM_FORMATS": "MJPG", "WEBCAM_AFTER": "5", "WEBCAM_THEN": "torn"}
    camera = webcam(cameras, **env)
    assert seen(camera, 3).shape == (120, 160)
    assert camera.end() == 0


@pytest.mark.parametrize(
    ("env", "status", "said"),
    [
        (
            {"WEBCAM_AFTER": "3", "WEBCAM_THEN": "unplugged"},
            process.NO_CAMERA,
            "/dev/video7: the camera was unplugged",
        ),
        ({"WEBCAM_FORMATS": ""}, process.NO_CAMERA, "no webcam on USB"),
    ],
)
def test_end_is_explained_in_the_last_line(
    cameras: list[Camera], env: dict[str, str], status: int, said: str
) -> None:
    camera = webcam(cameras, **env)
    assert camera.process.wait(20) == status
    last = text_of_line(camera.said().strip().splitlines()[-1])
    assert str(last).startswith(said)


def test_missing_pyav_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fpvcar.video.programs.transcoder", None)
    source = FakeWebcam("YUYV", 160, 120, 30.0)
    with pytest.raises(PackageMissing, match="sudo apt install python3-av"):
        coder_of(source, config.Camera(), ImageSettings())

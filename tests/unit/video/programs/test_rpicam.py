"""Command `fpvcar camera rpicam`: arguments of rpicam-vid, its output, and its end."""

import time
from pathlib import Path

import pytest
from testkit.cameras import sensor_listings
from testkit.cameras.camera import Camera, corner, decode, decoder, luma, middle, seen
from testkit.cameras.rpicam_vid import LEVEL

from fpvcar import config
from fpvcar.devices.capture import CaptureError
from fpvcar.runtime.texts import text_of_line
from fpvcar.video import process
from fpvcar.video.image_settings import ImageSettings
from fpvcar.video.programs import rpicam as rpicam_program
from fpvcar.video.programs.rpicam import command

PROGRAM = "testkit.cameras.rpicam_vid"
SIZE = ("--width=320", "--height=240")


def rpicam(cameras: list[Camera], *options: str, **env: str) -> Camera:
    cameras.append(Camera(*SIZE, *options, program=PROGRAM, **env))
    return cameras[-1]


def test_command_uses_only_options_from_the_help() -> None:
    everything = (
        "--timeout --width --height --bitrate --intra --low-latency --nopreview "
        "--inline --flush --hflip --vflip --exposure --brightness --framerate"
    )
    wanted = config.Camera(flip="both", fps=30.0, gop_s=1.0, bitrate=100_000)
    look = ImageSettings("sport", 0.25, False)
    words = command("rpicam-vid", everything, wanted, look, 4000, "/dev/fd/9")
    assert {"--low-latency", "--hflip", "--vflip", "--nopreview"} <= set(words)
    assert words[-2:] == ["--output", "udp://127.0.0.1:4000?pkt_size=65507"]
    for option, value in (
        ("--intra", "15"),
        ("--exposure", "sport"),
        ("--brightness", "0.25"),
        ("--bitrate", "300000"),
        ("--framerate", "30"),
    ):
        assert words[words.index(option) + 1] == value
    old = everything.replace("--low-latency", "")
    words = command("rpicam-vid", old, wanted, look, 4000, "/dev/fd/9")
    assert "--low-latency" not in words and "--metadata" not in words
    night = ImageSettings("sport", 0.0, True)
    words = command("rpicam-vid", old, wanted, night, 4000, "/dev/fd/9")
    assert words[words.index("--framerate") + 1] == "10"
    assert words[words.index("--exposure") + 1] == "long"
    assert words[words.index("--intra") + 1] == "5"


@pytest.mark.parametrize("name", sensor_listings.LISTS)
def test_command_names_a_listed_mode(name: str) -> None:
    """rpicam-vid takes the mode that --mode describes best: a listed one exactly."""
    look = ImageSettings("normal", 0.0, False)
    listed = {
        f"{width}:{height}:{int(''.join(filter(str.isdigit, form.split('_')[0])))}:P"
        for form, (width, height), _, _ in sensor_listings.modes(name)
    }
    for fps in (30.0, 60.0, 120.0):
        wanted = config.Camera(fps=fps)
        options = "--mode --framerate"
        words = command("rpicam-vid", options, wanted, look, 4000, "/dev/fd/9", sensor=name)
        assert words[words.index("--mode") + 1] in listed
    plain = command("rpicam-vid", options, wanted, look, 4000, "/dev/fd/9", sensor="imx999")
    assert "--mode" not in plain and plain[plain.index("--framerate") + 1] == "120"


def test_mode_is_of_the_listed_sensor(cameras: list[Camera], tmp_path: Path) -> None:
    log = tmp_path / "arguments"
    env = {"RPICAM_LOG": str(log), "RPICAM_SENSOR": "imx708_wide"}
    camera = rpicam(cameras, "--fps=90", **env)
    camera.record()
    assert "--mode 2304:1296:10:P --framerate 56 " in log.read_text()
    said = camera.end_and_said()
    assert (
        "camera: sensor imx708_wide\n" in said and f"{process.PREFIX}{process.FIXED_RATE}\n" in said
    )


def test_program_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "rpicam-vid"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(rpicam_program, "PROGRAMS", (str(program),))
    monkeypatch.setattr(rpicam_program, "HELP_S", 0.2)
    with pytest.raises(CaptureError, match="rpicam-vid --help: it has sent nothing for 0.2 s"):
        rpicam_program.Rpicam(config.Camera())


def test_old_rpicam_works(cameras: list[Camera]) -> None:
    assert middle(seen(rpicam(cameras, RPICAM_OLD="1"))) == pytest.approx(LEVEL, abs=6)


@pytest.mark.slow
def test_software_option_selects_libx264_and_a_size(cameras: list[Camera], tmp_path: Path) -> None:
    """On a Zero to 4, rpicam-vid's libav would use the encoder that hangs."""
    log = tmp_path / "arguments"
    env = {"RPICAM_LOG": str(log), "RPICAM_BOARD": "pi5"}
    picture = seen(rpicam(cameras, "--width=1280", "--height=720", "--software", **env))
    assert picture.shape == (416, 740)
    assert "--codec libav --libav-video-codec libx264 " in log.read_text()
    seen(rpicam(cameras, **env))
    last = log.read_text().splitlines()[-1]
    assert "--codec h264 " in last and "libx264" not in last


def test_missing_libx264_is_explained(cameras: list[Camera]) -> None:
    camera = rpicam(cameras, "--software", RPICAM_OLD="1")
    assert camera.process.wait(30) == process.MISSING
    assert "switch the car off and on again, or sudo apt install" in camera.said()


def test_stamps_are_sensor_times(cameras: list[Camera]) -> None:
    """Arrival times differ: the stand-in stamps before it paints and encodes."""
    camera = rpicam(cameras, "--width=1280", "--height=720", RPICAM_NOISE="100")
    for _ in range(3):
        camera.record()
    ages_us = []
    for _ in range(5):
        record = camera.record()
        ages_us.append(time.monotonic_ns() // 1000 - record.capture_us)
    assert min(ages_us) > 5000


@pytest.mark.parametrize("board", ["zero", "pi5"])
def test_unit_of_many_datagrams_is_whole(cameras: list[Camera], board: str) -> None:
    camera = rpicam(
        cameras,
        "--width=1280",
        "--height=720",
        "--bitrate=25000000",
        "--gop-s=0.1",
        RPICAM_NOISE="150",
        RPICAM_BOARD=board,
    )
    codec, sizes = decoder(), []
    for _ in range(5):
        record = camera.record()
        assert decode(codec, record.unit).width == 1280
        sizes.append(len(record.unit))
    assert max(sizes) > 65_507


def test_parameter_sets_that_come_apart_stand_before_their_idr(cameras: list[Camera]) -> None:
    camera, codec = rpicam(cameras, RPICAM_SETS_APART="1"), decoder()
    records = [camera.record() for _ in range(35)]
    for record in records:
        decode(codec, record.unit)
    assert sum(record.key for record in records) == 3  # one every 0.5 s at 30 fps
    stamps = [record.capture_us for record in records]
    assert stamps == sorted(stamps) and stamps[0] > 1000


def test_flip_applies_and_look_changes_while_running(cameras: list[Camera]) -> None:
    camera = rpicam(cameras, "--flip=horizontal")
    assert corner(seen(camera)) == ("top", "right")
    camera.ask("look normal 0.5 0")
    for _ in range(60):  # the program restarts
        record = camera.record()
        if record.key and middle(luma(decode(decoder(), record.unit))) > LEVEL + 30:
            return
    raise AssertionError("as dark as before")


@pytest.mark.parametrize(
    ("env", "status", "said"),
    [
        ("RPICAM_NONE", process.NO_CAMERA, "finds no camera 0; check the ribbon cable"),
        ("RPICAM_MISSING", process.MISSING, "sudo apt install rpicam-apps-lite"),
        ("RPICAM_DIE_AFTER", process.FAILED, "failed to queue request"),
    ],
)
def test_end_is_explained_in_the_last_line(
    cameras: list[Camera], env: str, status: int, said: str
) -> None:
    camera = rpicam(cameras, **{env: "3"})
    assert camera.process.wait(30) == status
    last = str(text_of_line(camera.said().strip().splitlines()[-1]))
    assert said in last and not last.startswith("{")


def test_hanging_rpicam_ends_with_its_stdin(cameras: list[Camera], tmp_path: Path) -> None:
    camera = rpicam(cameras, RPICAM_HANG_AFTER="3")
    for _ in range(3):
        camera.record()
    assert camera.process.stderr
    lines = iter(camera.process.stderr.readline, b"")
    assert any(b"Camera frontend has timed out!" in line for line in lines)
    assert camera.end() == 0

"""Command `fpvcar camera picamera2`: the real picamera2 0.3.38 with both of its encoders."""

import errno
from pathlib import Path

import pytest
from testkit.cameras.camera import Camera, corner, decode, decoder, luma, middle, seen
from testkit.cameras.libcamera import LEVEL

from fpvcar.config import Camera as CameraConfig
from fpvcar.devices.linux import picamera
from fpvcar.runtime.texts import text_of_line
from fpvcar.video import options, process

PROGRAM = "testkit.cameras.fake_picamera"
SIZE = ("--width=336", "--height=240")
"""Lines of 336 are padded, to 384."""
BOARDS = pytest.mark.parametrize("board", ["zero", "pi5"])


def pi(cameras: list[Camera], board: str, *options: str, **env: str) -> Camera:
    cameras.append(Camera(*SIZE, *options, program=PROGRAM, PICAMERA_BOARD=board, **env))
    return cameras[-1]


@BOARDS
def test_picture_is_the_sensors_without_padding(cameras: list[Camera], board: str) -> None:
    picture = seen(pi(cameras, board))
    assert picture.shape == (240, 336)
    assert middle(picture) == pytest.approx(LEVEL, abs=8)
    assert corner(picture) == ("top", "left")
    turned = seen(pi(cameras, board, "--flip=both"))
    assert corner(turned) == ("bottom", "right")


MODES = {
    "ov5647": ("640x480:10", "640x480:10"),
    "imx219": ("1640x1232:10", "640x480:10"),
    "imx708": ("2304x1296:10", "1536x864:10"),
    "imx708_wide": ("2304x1296:10", "1536x864:10"),
    "imx477": ("2028x1520:12", "1332x990:10"),
    "imx296": ("1456x1088:10", "1456x1088:10"),
    "imx500": ("2028x1520:10", "2028x1520:10"),
}
"""Sensor -> mode of the whole view at 30 frames per second, and of the fast one at 120."""


@pytest.mark.slow
@pytest.mark.parametrize("sensor", MODES)
def test_picamera2_configures_the_mode_of_the_view(
    cameras: list[Camera], tmp_path: Path, sensor: str
) -> None:
    """picamera2's own selection code runs over the sensor's printed modes."""
    log = tmp_path / "mode"
    env = {"PICAMERA_SENSOR": sensor, "PICAMERA_LOG": str(log)}
    fast = ("--view=fast", "--fps=120")
    for words, mode in zip(((), fast), MODES[sensor], strict=True):
        camera = pi(cameras, "pi5", *words, **env)
        camera.record()
        assert log.read_text() == mode
        assert f"camera: sensor {sensor}\n" in camera.end_and_said()


def test_picamera2_chooses_the_mode_of_an_unknown_sensor(
    cameras: list[Camera], tmp_path: Path
) -> None:
    log = tmp_path / "mode"
    camera = pi(cameras, "pi5", PICAMERA_SENSOR="imx999", PICAMERA_LOG=str(log))
    camera.record()
    assert log.read_text() == "640x480:10", "39 % of the width of an IMX219"


def test_rate_is_lowered_to_the_mode(cameras: list[Camera]) -> None:
    camera = pi(cameras, "pi5", "--fps=90", PICAMERA_SENSOR="imx500")
    camera.ask("fps 120")
    times = [camera.record().capture_us for _ in range(9)]
    assert min(b - a for a, b in zip(times, times[1:], strict=False)) > 30_000
    assert "at 30 fps" in camera.end_and_said()


@BOARDS
def test_encoder_gives_one_unit_per_frame_without_delay(cameras: list[Camera], board: str) -> None:
    """No thread of the encoder holds a frame back: the first comes at once, each is new."""
    camera, codec = pi(cameras, board, "--fps=10"), decoder()
    records = [camera.record() for _ in range(4)]
    for record in records:
        decode(codec, record.unit)
    gaps_us = [b.capture_us - a.capture_us for a, b in zip(records, records[1:], strict=False)]
    assert min(gaps_us) > 80_000


@pytest.mark.slow
@BOARDS
def test_less_bitrate_makes_smaller_units(cameras: list[Camera], board: str) -> None:
    camera, codec = pi(cameras, board, "--bitrate=4000000"), decoder()
    before = [camera.record() for _ in range(20)]
    camera.ask(f"bitrate {picamera.FIRMWARE_LEAST}")
    for record in before:
        decode(codec, record.unit)
    for _ in range(5):  # old ones may wait in the pipe
        after = [camera.record() for _ in range(20)]
        for record in after:
            decode(codec, record.unit)
        sizes = [sorted(len(one.unit) for one in part)[10] for part in (before, after)]
        if sizes[1] < sizes[0] / 2:
            return
    raise AssertionError(f"no smaller: {sizes}")


@BOARDS
def test_rate_is_lowered_while_the_camera_runs(cameras: list[Camera], board: str) -> None:
    camera = pi(cameras, board, "--fps=20")
    camera.record()
    camera.ask("fps 5")
    camera.ask("look sport 0.5 0")
    camera.wait_gaps(lambda gap_us: gap_us > 160_000)
    camera.ask("fps 120")
    camera.wait_gaps(lambda gap_us: gap_us < 100_000)


@pytest.mark.slow
@BOARDS
def test_look_changes_while_the_camera_runs(cameras: list[Camera], board: str) -> None:
    camera, codec = pi(cameras, board), decoder()
    for _ in range(5):
        decode(codec, camera.record().unit)
    camera.ask("look sport 0.5 1")
    level, pictures = 0.0, 0
    while level <= LEVEL + 50:
        assert pictures < 100, f"as dark as before: {level}"
        level, pictures = middle(luma(decode(codec, camera.record().unit))), pictures + 1
    camera.wait_gaps(lambda gap_us: gap_us > 80_000)  # at night it exposes longer
    assert any(camera.record().key for _ in range(12)), "a key frame each second"


@BOARDS
@pytest.mark.parametrize(
    ("env", "options", "status", "said"),
    [
        ("PICAMERA_COUNT=0", (), process.NO_CAMERA, "libcamera finds no camera 0; "),
        ("PICAMERA_COUNT=1", ("--device=1",), process.NO_CAMERA, "finds no camera 1; "),
        ("PICAMERA_BUSY=1", (), process.FAILED, "end the other program that has it"),
        (
            "PICAMERA_MISSING=1",
            (),
            process.MISSING,
            "sudo apt install --no-install-recommends python3-picamera2",
        ),
        ("", ("--device=/dev/video0",), process.BAD_OPTIONS, "expected 0 or 1"),
    ],
)
def test_start_failure_is_explained_in_the_last_line(
    cameras: list[Camera], board: str, env: str, options: tuple[str, ...], status: int, said: str
) -> None:
    name, _, value = env.partition("=")
    camera = pi(cameras, board, *options, **({name: value} if name else {}))
    assert camera.process.wait(30) == status
    last = str(text_of_line(camera.said().strip().splitlines()[-1]))
    assert said in last and "Traceback" not in last


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("silent", process.ENCODER, "hangs (it has sent nothing for 5 s); switch the car"),
        (str(errno.EINVAL), process.ENCODER, "hangs (Invalid argument); switch the car"),
        (str(errno.ETIME), process.ENCODER, "hangs (Timer expired); switch the car"),
        (str(errno.ENOMEM), process.FAILED, "does not start: Cannot allocate memory"),
    ],
)
def test_hung_encoder_has_an_exit_status(
    cameras: list[Camera], fault: str, status: int, words: str
) -> None:
    camera = pi(cameras, "zero", PICAMERA_ENCODER=fault)
    assert camera.process.wait(30) == status
    assert words in str(text_of_line(camera.said().strip().splitlines()[-1]))


@BOARDS
def test_software_option_replaces_the_encoder(cameras: list[Camera], board: str) -> None:
    wide = ("--width=1280", "--height=720", "--software")
    camera, codec = pi(cameras, board, *wide, PICAMERA_ENCODER="silent"), decoder()
    records = [camera.record() for _ in range(10)]
    pictures = [decode(codec, record.unit) for record in records]
    assert (pictures[0].width, pictures[0].height) == (740, 416)
    gaps_us = [b.capture_us - a.capture_us for a, b in zip(records, records[1:], strict=False)]
    assert sorted(gaps_us)[4] >= 49_000, "20 pictures a second at most"


@pytest.mark.parametrize(
    ("cores", "given", "expected"),
    [
        (1, (640, 480, 30.0), (320, 240, 10.0)),
        (1, (320, 240, 8.0), (320, 240, 8.0)),
        (4, (640, 480, 30.0), (640, 480, 20.0)),
        (4, (1920, 1080, 30.0), (740, 416, 20.0)),
        (1, (1920, 64, 30.0), (1518, 64, 10.0)),
    ],
)
def test_software_encoder_gets_a_size_for_the_board(
    cores: int, given: tuple[int, int, float], expected: tuple[int, int, float]
) -> None:
    config = CameraConfig(width=given[0], height=given[1], fps=given[2], flip="both")
    fitted = options.within_software(config, cores)
    assert (fitted.width, fitted.height, fitted.fps, fitted.flip) == (*expected, "both")


@BOARDS
def test_hanging_camera_ends_with_its_stdin(cameras: list[Camera], board: str) -> None:
    camera = pi(cameras, board, PICAMERA_HANG_AFTER="5")
    for _ in range(5):
        camera.record()
    assert camera.end() == 0

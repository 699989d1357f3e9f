"""Requests on stdin of a camera's process, its options, and units its reader missed."""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
from testkit.pins.wheels import until

from fpvcar import config
from fpvcar.devices.capture import CaptureError, NoCamera, PackageMissing
from fpvcar.runtime.texts import VERBATIM, text_of_line
from fpvcar.video import options, process
from fpvcar.video.image_settings import ImageSettings, image_settings_of
from fpvcar.wire.camera import Record, parse_record_header

# --- requests on stdin ---------------------------------------------------------------


def test_control_takes_pieces_of_lines() -> None:
    control = process.Control()
    assert control.feed(b"ke") == [] and not control.key
    assert control.feed(b"y\nbitrate 300000\nbitr") == []
    assert control.key and control.bitrate == 300_000
    assert control.feed(b"ate 400000\n\n") == []
    assert control.bitrate == 400_000
    assert control.feed(b"fps 15\n") == [] and control.fps == 15


@pytest.mark.parametrize(
    "line",
    [
        "kex",
        "bitrate",
        "bitrate -5",
        "bitrate 10",
        "bitrate 9" + "0" * 300,
        "é",
        "fps 0",
        "fps 121",
        "fps many",
        "look",
        "look normal 0",
        "look nice 0 0",
        "look normal bright 0",
        "look normal 1.5 0",
        "look normal nan 0",
        "look normal 0 2",
    ],
)
def test_control_says_what_it_ignores(line: str) -> None:
    control = process.Control()
    (said,) = control.feed(line.encode() + b"\n")
    assert said.startswith("ignored: ")
    assert (control.key, control.bitrate, control.fps, control.image) == (False, None, None, None)


def test_look_line_round_trips() -> None:
    for look in (
        ImageSettings(),
        ImageSettings("sport", -0.5, True),
        ImageSettings("long", 1.0, False),
    ):
        control = process.Control()
        assert control.feed(look.line().encode() + b"\n") == []
        assert control.image == look
    camera = config.Camera(exposure="long", brightness=0.25, night=True)
    assert image_settings_of(camera) == ImageSettings("long", 0.25, True)


# --- options -------------------------------------------------------------------------


def test_options_round_trip_the_profiles_camera() -> None:
    made = options.parser("test", "A camera.")
    assert options.arguments_of(config.Camera()) == []
    camera = config.Camera(
        device="/dev/video4",
        format="mjpeg",
        width=1280,
        height=720,
        fps=12.5,
        bitrate=900_000,
        gop_s=0.5,
        flip="both",
        exposure="sport",
        brightness=-0.5,
        night=True,
    )
    assert options.parse(made, options.arguments_of(camera)) == camera
    assert "--exposure=sport" not in options.arguments_of(camera, options.BENCH_KEYS)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--width=63", "--width 63: Expected `int` >= 64"),
        ("--height=99", "--height 99: Expected `int` that's a multiple of 2"),
        ("--brightness=2", "--brightness 2.0: Expected `float` <= 1.0"),
        ("--gop-s=2", "--gop-s 2.0: Expected `float` <= 1.0"),
        ("--flip=over", "invalid choice: 'over'"),
    ],
)
def test_bad_options_are_refused(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        options.parse(options.parser("test", "A camera."), [word])
    assert end.value.code == process.BAD_OPTIONS
    assert said in capsys.readouterr().err


# --- passing units on ----------------------------------------------------------------


class Coded:
    """Camera with encoded units in `waiting`, which are ready at once."""

    def __init__(self) -> None:
        self.fd, self._theirs = os.pipe()
        self.waiting: list[Record] = []
        self.asked: list[object] = []

    def give(self, key: bool, number: int) -> None:
        self.waiting.append(Record(key, number, b"unit %d" % number))
        os.write(self._theirs, b"!")

    def take(self) -> Iterable[Record]:
        os.read(self.fd, 100)
        waiting, self.waiting = self.waiting, []
        return waiting

    def skip(self) -> bool:
        self.take()
        return False

    def request_key(self) -> None:
        self.asked.append("key")

    def set_bitrate(self, bitrate: int) -> None:
        self.asked.append(bitrate)

    def set_fps(self, most: int) -> None:
        self.asked.append(f"fps {most}")

    def set_image(self, look: ImageSettings) -> None:
        self.asked.append(look)


class Reader:
    """Other ends of a process's pipes."""

    def __init__(self) -> None:
        self.stdin, self._say = os.pipe()
        self._heard, self.stdout = os.pipe()

    def say(self, text: str) -> None:
        os.write(self._say, text.encode())

    def end(self) -> None:
        os.close(self._say)

    def read(self) -> list[int]:
        """Return the stamps of the waiting records."""
        data, stamps = os.read(self._heard, 1 << 16), []
        while data:
            length, _, stamp = parse_record_header(data[:16])
            stamps.append(stamp)
            data = data[16 + length :]
        return stamps


@contextmanager
def serving(camera: Coded) -> Iterator[Reader]:
    """Run the camera's process as a thread; check that it ends well."""
    reader, control = Reader(), process.Control()
    pipes = process.Pipes(reader.stdin, reader.stdout, control)
    thread = threading.Thread(target=process.serve, args=(camera, pipes, control))
    thread.start()
    yield reader
    reader.end()
    thread.join(20.0)
    assert not thread.is_alive()


def test_requests_reach_the_camera() -> None:
    camera = Coded()
    with serving(camera) as reader:
        reader.say("bitrate 300000\nkey\nfps 9\nlook sport 0.5 1\n")
        camera.give(True, 1)
        assert reader.read() == [1]
        until(lambda: len(camera.asked) >= 4)
    assert camera.asked == [ImageSettings("sport", 0.5, True), 300_000, "fps 9", "key"]


def test_output_starts_at_a_requested_key_frame() -> None:
    camera = Coded()
    with serving(camera) as reader:
        camera.give(False, 1)
        until(lambda: camera.asked)
        camera.give(True, 2)
        camera.give(False, 3)
        assert reader.read() in ([2], [2, 3])
    assert camera.asked == ["key"]


def test_key_frame_follows_units_that_the_reader_missed() -> None:
    camera = Coded()
    with serving(camera) as reader:
        camera.give(True, 1)
        until(lambda: not camera.waiting)
        time.sleep(2 * process.BEHIND_S)  # no read in this time
        camera.give(False, 2)
        until(lambda: not camera.waiting)
        assert reader.read() == [1] and camera.asked == []
        camera.give(False, 3)
        until(lambda: camera.asked == ["key"])
        camera.give(True, 4)
        assert reader.read() == [4]


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (CaptureError("no frame\nfor 2 s"), process.FAILED),
        (NoCamera("it was unplugged"), process.NO_CAMERA),
        (PackageMissing("apt install it"), process.MISSING),
    ],
)
def test_fault_is_one_line_with_its_own_status(
    fault: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert process.status_of(fault) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert text_of_line(line) == VERBATIM(text=str(fault).replace("\n", " "))

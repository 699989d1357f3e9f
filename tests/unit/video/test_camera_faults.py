"""Messages for each camera fault: its cause, and a next step."""

import errno
import os
import signal
from collections.abc import Sequence

import pytest
from testkit.cameras.video_source import encode

from fpvcar.runtime.texts import VERBATIM, Text
from fpvcar.video import faults, h264
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.errors import WireError

LAST_WORDS = {
    "/dev/video0: Device or resource busy": "end the other program",
    "/dev/video0: the camera was unplugged": "plug the camera in",
    "/dev/video7: No such file or directory": "correct the path",
    "/dev/video0: Permission denied": "usermod -aG video",
    "/dev/video0: does not offer H264 9999x16": "choose a size and rate",
    "camera: --width 63: expected 64 to 1920": "correct [camera] of the profile",
    "no EGL; apt install libegl1": "apt install libegl1",
    "Segmentation what?": "start it by hand to see why",
    "": "start it by hand to see why",
}


READY = VERBATIM(text="ready")


@pytest.mark.parametrize(("line", "step"), LAST_WORDS.items())
def test_last_words_are_quoted_and_followed_by_a_step(line: str, step: str) -> None:
    said = str(faults.exited(4, VERBATIM(text=line) if line else None))
    cause, next_step = said.split("; ", 1)
    assert "status 4" in cause and step in next_step
    assert line.removeprefix("camera: ").split(";")[0] in cause


@pytest.mark.parametrize(
    "said",
    [
        faults.exited(0, READY),
        faults.exited(-signal.SIGKILL, READY),
        faults.exited(-signal.SIGSEGV, READY),
        faults.exited(-63, READY),
        faults.exited(
            127, VERBATIM(text="setpriv: failed to execute /x: No such file or directory")
        ),
        faults.silent(2.0, None, ever=True),
        faults.silent(30.0, None, ever=False),
        faults.silent(2.0, VERBATIM(text="camera: /dev/video0: timeout"), ever=True),
        faults.no_key_frame(),
        faults.garbage(WireError("byte 4", "0x47")),
        faults.closed(),
        faults.refused("/x", OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC))),
        faults.refused("/x", OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))),
    ],
)
def test_fault_text_has_a_cause_and_a_step(said: Text) -> None:
    cause, _, step = str(said).partition("; ")
    assert cause and step and "ready" not in str(said) and "setpriv" not in str(said)


def check(units: Sequence[bytes], step_s: float = 1 / 30) -> faults.CodingCheck:
    coding = faults.CodingCheck()
    for number, unit in enumerate(units):
        coding.note(AccessUnit(h264.is_key(unit), 0, unit), number * step_s)
    return coding


def test_good_coding_has_no_warning() -> None:
    for units in (encode(frames=40, gop=10), encode(frames=40, gop=10, refresh=True)):
        coding = check(units, 0.3)
        assert coding.warning is coding.refusal is None


def test_coding_that_few_viewers_show_is_named_with_the_remedy() -> None:
    coding = check(encode(frames=40, gop=300), faults.KEYS_MOST_S / 38)
    assert "no H.264 key frame for 4 s" in str(coding.warning) and "-g 30" in str(coding.warning)
    for pixels, name in (
        ("yuv422p", "4:2:2 samples of 8 bits"),
        ("yuv420p10le", "4:2:0 samples of 10"),
    ):
        coding = check(encode(frames=2, pixels=pixels))
        assert name in str(coding.warning) and "-pix_fmt yuv420p" in str(coding.warning)
        assert not coding.refusal


def test_b_frames_are_refused_within_the_first_pictures() -> None:
    coding = check(encode(frames=12, b_frames=2)[:6])
    assert "B-frames" in str(coding.refusal) and "-bf 0" in str(coding.refusal)


def test_damaged_parameter_sets_and_slices_are_no_coding_fault() -> None:
    cut = b"\0\0\1\x67\x64\0\0\1\x68\xce\0\0\1\x65\x88\0\0\1\x41"
    coding = check([cut, cut, b"\0\0\1\x09\x10", b""])
    assert coding.warning is coding.refusal is None


def test_present_program_gives_no_fault() -> None:
    assert faults.not_started("sh") is None

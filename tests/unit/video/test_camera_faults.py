"""Messages for each camera fault: its cause, and a next step."""

import errno
import os
import signal

import pytest

from fpvcar.video import faults

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


@pytest.mark.parametrize(("line", "step"), LAST_WORDS.items())
def test_last_words_are_quoted_and_followed_by_a_step(line: str, step: str) -> None:
    said = faults.exited(4, line)
    cause, next_step = said.split("; ", 1)
    assert "status 4" in cause and step in next_step
    assert line.removeprefix("camera: ").split(";")[0] in cause


@pytest.mark.parametrize(
    "said",
    [
        faults.exited(0, "ready"),
        faults.exited(-signal.SIGKILL, "ready"),
        faults.exited(-signal.SIGSEGV, "ready"),
        faults.exited(-63, "ready"),
        faults.exited(127, "setpriv: failed to execute /x: No such file or directory"),
        faults.silent(2.0, "", ever=True),
        faults.silent(30.0, "", ever=False),
        faults.silent(2.0, "camera: /dev/video0: timeout", ever=True),
        faults.no_key_frame(),
        faults.garbage("byte 4: 0x47"),
        faults.closed(),
        faults.refused("/x", OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC))),
        faults.refused("/x", OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))),
    ],
)
def test_fault_text_has_a_cause_and_a_step(said: str) -> None:
    cause, _, step = said.partition("; ")
    assert cause and step and "ready" not in said and "setpriv" not in said


def test_present_program_gives_no_fault() -> None:
    assert faults.not_started("sh") is None

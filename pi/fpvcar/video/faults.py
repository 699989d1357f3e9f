"""Reasons for a missing picture, and the remedy: `cause; next step`. Pure.

The camera's program is restarted after each fault; the next step tells whether that helps.
"""

import errno
import os
import shutil
import signal

from fpvcar.runtime.child_process import signal_name
from fpvcar.runtime.sentences import os_reason, sentence

LEASH = "setpriv: failed to execute "
SOFTWARE = (
    "the board's H.264 encoder hangs, so the pictures are smaller; switch the car off and on again"
)
"""Fault of a car whose camera uses libx264 instead."""
LINE_S = 2.0
"""Time before an exit within which a line on stderr counts as its reason."""
BEFORE_S = 0.5
"""Time before the last picture within which a line counts as the reason for its end."""
REMEDIES: tuple[tuple[str, str], ...] = (
    ("resource busy", "camera_busy"),
    ("unplugged", "camera_plug"),
    ("No such device", "camera_plug"),
    ("No such file", "camera_path"),
    ("Permission denied", "camera_group"),
    ("not offer", "camera_size"),
    ("expected", "camera_profile"),
)
"""Last words of a program, their meaning, and the key of the next step."""


def not_started(program: str) -> str | None:
    """Return the reason why this program cannot be started; None if it can be tried."""
    if shutil.which(program) is not None:
        return None
    if (path := shutil.which(program, os.F_OK)) is not None:
        return sentence("camera_not_executable", path=path)
    return sentence("camera_no_program", program=program)


def refused(program: str, fault: OSError) -> str:
    """Describe a start refused by the kernel."""
    cause = sentence("camera_refused", program=program, reason=os_reason(fault))
    return _fault(cause, "camera_processor" if fault.errno == errno.ENOEXEC else "camera_whole")


def exited(status: int, line: str) -> str:
    """Describe an exit. `line`: the last recent line on stderr, or empty."""
    if status < 0:
        return _killed(-status)
    if status == 0:
        return _fault(sentence("camera_ended"), "camera_again")
    if line.startswith(LEASH):
        step = sentence("camera_whole")
        return sentence("both", first=line.removeprefix(LEASH), second=step)
    if not line:
        return _fault(sentence("camera_exited_mute", status=status), "camera_by_hand")
    return _with_remedy(sentence("camera_exited", status=status), line, "camera_by_hand")


def _killed(number: int) -> str:
    step = "camera_memory" if number == signal.SIGKILL else "camera_again"
    return _fault(sentence("camera_killed", signal=signal_name(number)), step)


def silent(seconds: float, line: str, ever: bool, encoder: bool = False) -> str:
    """Describe a silence of bytes or pictures; `ever`: there were some before; `encoder`: earlier
    starts were silent with the board's encoder."""
    cause = sentence("camera_silent" if ever else "camera_never", seconds=f"{seconds:g}")
    return _with_remedy(cause, line, "camera_off_on" if encoder else "camera_cable")


def no_key_frame() -> str:
    """Describe a stream without an initial key frame."""
    return sentence("camera_no_key")


def garbage(cause: str) -> str:
    """Describe bytes that are not records."""
    return _fault(sentence("camera_garbage", reason=cause), "camera_again")


def closed() -> str:
    """Describe a program that runs on after closing its stdout."""
    return _fault(sentence("camera_closed"), "camera_again")


def _fault(cause: str, step: str) -> str:
    return sentence("both", first=cause, second=sentence(step))


def _with_remedy(cause: str, line: str, usual: str) -> str:
    """Return a cause and a program's words with the next step, unless they contain one."""
    line = line.removeprefix("camera: ")
    if line:
        cause = sentence("says", place=cause, reason=line)
    if ";" in line:
        return cause
    steps = (step for sign, step in REMEDIES if sign.lower() in cause.lower())
    return _fault(cause, next(steps, usual))

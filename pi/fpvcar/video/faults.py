"""Reasons for a missing picture, and the remedy: `cause; next step`. Pure.

The camera's program is restarted after each fault; the next step tells whether that helps.
"""

import errno
import os
import shutil
import signal

AGAIN = "it is started again"
ANNEX_B = "plain H.264 (Annex B) on stdout, with a key frame each second"
BY_HAND = "start it by hand to see why"
WHOLE = "check that it is complete and its interpreter installed"
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
    ("resource busy", "end the other program that has the camera"),
    ("unplugged", "plug the camera in again"),
    ("No such device", "plug the camera in"),
    ("No such file", "correct the path, or plug the camera in"),
    ("Permission denied", "sudo usermod -aG video USER, then log in again"),
    ("not offer", "choose a size and rate that the camera has"),
    ("offers none", "choose a size and rate that the camera has"),
    ("expected", "correct [camera] of the profile"),
)
"""Last words of a program, their meaning, and the next step."""


def not_started(program: str) -> str | None:
    """Return the reason why this program cannot be started; None if it can be tried."""
    if shutil.which(program) is not None:
        return None
    if (path := shutil.which(program, os.F_OK)) is not None:
        return f"{path} is not executable; chmod +x {path}"
    return f"no program {program}; install it, or correct camera.command"


def refused(program: str, fault: OSError) -> str:
    """Describe a start refused by the kernel."""
    cause = f"{program} cannot be started: {fault.strerror}"
    if fault.errno == errno.ENOEXEC:
        return f"{cause}; it is for another processor, or lacks its #! line"
    return f"{cause}; {WHOLE}"


def exited(status: int, line: str) -> str:
    """Describe an exit. `line`: the last recent line on stderr, or empty."""
    if status < 0:
        return _killed(-status)
    if status == 0:
        return f"its program ended by itself; {AGAIN}"
    if line.startswith(LEASH):
        return f"{line.removeprefix(LEASH)}; {WHOLE}"
    ended = f"its program ended with status {status}"
    if not line:
        return f"{ended} and printed nothing; {BY_HAND}"
    line = line.removeprefix("camera: ")
    return with_remedy(f"{ended}: {line}", f"if that does not help, {BY_HAND}")


def _killed(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    killed = f"its program was killed ({name})"
    if number == signal.SIGKILL:
        return f"{killed}; {AGAIN}; if that was not on purpose, memory is short"
    return f"{killed}; {AGAIN}"


def silent(seconds: float, line: str, ever: bool, encoder: bool = False) -> str:
    """Describe a silence of bytes or pictures; `ever`: there were some before; `encoder`: earlier
    starts were silent with the board's encoder."""
    cause = f"it has sent nothing for {seconds:g} s"
    if not ever:
        cause = f"it has sent nothing since its start, {seconds:g} s ago"
    line = line.removeprefix("camera: ")
    if line:
        cause = f"{cause}: {line}"
    step = "switch the car off and on again" if encoder else AGAIN
    return with_remedy(cause, f"{step}; if that repeats, check its cable")


def no_key_frame() -> str:
    """Describe a stream without an initial key frame."""
    return f"its program sends no H.264 key frame; it needs {ANNEX_B}"


def garbage(cause: str) -> str:
    """Describe bytes that are not records."""
    return f"its program does not send valid H.264 ({cause}); {AGAIN}"


def closed() -> str:
    """Describe a program that runs on after closing its stdout."""
    return f"its program closed its output; {AGAIN}"


def with_remedy(cause: str, usual: str) -> str:
    """Return a program's words with the next step, unless they contain one."""
    if ";" in cause:
        return cause
    steps = (step for sign, step in REMEDIES if sign.lower() in cause.lower())
    return f"{cause}; {next(steps, usual)}"

"""Why there is no picture, and what to do about it: `cause; next step`. Pure.

The camera's program is started again after each of them; whether that helps, the next
step says.
"""

import errno
import os
import shutil
import signal

AGAIN = "it is started again"
ANNEX_B = "plain H.264 (Annex B) on stdout, with a key frame each second"
BY_HAND = "start it by hand to see why"
WHOLE = "see that it is whole, and its interpreter installed"
LEASH = "setpriv: failed to execute "
LINE_S = 2.0
"""A line on stderr so soon before an exit says why."""
BEFORE_S = 0.5
"""A line so soon before the last picture says why it was the last."""
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
"""What a program's last words mean, and what to do."""


def not_started(program: str) -> str | None:
    """Why this program cannot be started; None if it can be tried."""
    if shutil.which(program) is not None:
        return None
    if (found := shutil.which(program, os.F_OK)) is not None:
        return f"{found} is not executable; chmod +x {found}"
    return f"no program {program}; install it, or correct camera.command"


def refused(program: str, fault: OSError) -> str:
    """The kernel did not start it."""
    why = f"{program} cannot be started: {fault.strerror}"
    if fault.errno == errno.ENOEXEC:
        return f"{why}; it is for another processor, or lacks its #! line"
    return f"{why}; {WHOLE}"


def exited(status: int, line: str) -> str:
    """It ended. `line`: what it wrote on stderr just before, or nothing."""
    if status < 0:
        return _killed(-status)
    if status == 0:
        return f"its program ended by itself; {AGAIN}"
    if line.startswith(LEASH):
        return f"{line.removeprefix(LEASH)}; {WHOLE}"
    ended = f"its program ended with status {status}"
    if not line:
        return f"{ended} and without a word; {BY_HAND}"
    line = line.removeprefix("camera: ")
    return with_next(f"{ended}: {line}", f"if that is no help, {BY_HAND}")


def _killed(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    killed = f"its program was killed ({name})"
    if number == signal.SIGKILL:
        return f"{killed}; {AGAIN}; if nobody did that, memory is short"
    return f"{killed}; {AGAIN}"


def silent(seconds: float, line: str, ever: bool) -> str:
    """No bytes or no picture for so long; `ever`: there were some before."""
    what = f"it has sent nothing for {seconds:g} s"
    if not ever:
        what = f"it has sent nothing since its start, {seconds:g} s ago"
    line = line.removeprefix("camera: ")
    if line:
        what = f"{what}: {line}"
    return with_next(what, f"{AGAIN}; if that repeats, look at its cable")


def no_key_frame() -> str:
    """Bytes, and no picture to begin with among them."""
    return f"its program sends no H.264 key frame; it needs {ANNEX_B}"


def garbage(what: str) -> str:
    """Bytes that are no records."""
    return f"its program sends what is no video ({what}); {AGAIN}"


def closed() -> str:
    """Its stdout is at an end, and it runs on."""
    return f"its program closed its output; {AGAIN}"


def with_next(what: str, usual: str) -> str:
    """A program's words with the next step, unless they say it themselves."""
    if ";" in what:
        return what
    told = (step for sign, step in REMEDIES if sign.lower() in what.lower())
    return f"{what}; {next(told, usual)}"

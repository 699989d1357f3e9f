"""Ends of child processes: with their parent, by the kernel, and in time."""

import shutil
import subprocess
from collections.abc import Sequence
from typing import Any


def with_pdeathsig(argv: Sequence[str]) -> list[str]:
    """Return a command line whose process is killed by the kernel when its parent dies."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *argv] if setpriv else list(argv)


def end(process: "subprocess.Popen[Any]", patience_s: float) -> None:
    """Send SIGTERM, and SIGKILL after `patience_s`; return once the process is reaped."""
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

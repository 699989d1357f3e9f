"""Quiet exit of a command after its pipe was closed: `fpvcar log info DIR | head`."""

import os
import signal
import sys
from collections.abc import Callable

PIPE_CLOSED = 128 + signal.SIGPIPE
"""Exit status that a shell shows for any tool with a closed pipe."""


def quietly(act: Callable[[], int]) -> int:
    """Run a command that prints; return its exit status."""
    try:
        status = act()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())  # the rest is flushed at the exit
        os.close(null)
        return PIPE_CLOSED

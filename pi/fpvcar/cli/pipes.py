"""Ends a command quietly where nobody reads on: `fpvcar log info DIR | head`."""

import os
import signal
import sys
from collections.abc import Callable

NOBODY_READS = 128 + signal.SIGPIPE
"""The exit status that a shell shows of any tool whose pipe was closed."""


def quietly(act: Callable[[], int]) -> int:
    """Runs a command that prints; returns its exit status."""
    try:
        status = act()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # what is left is flushed at the exit
        os.close(nowhere)
        return NOBODY_READS

"""Faults that a person has to mend, and their way to the terminal."""

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Sequence

from fpvcar.runtime.arguments import log_level
from fpvcar.runtime.texts import NOT_INSTALLED, Phrase, Text, fault_text, stderr_line

CHORE_LIST = Text("chore_list", "list")
NOT_CONTACTED = Text("station_new", "not contacted yet")
INTERNAL = Phrase("station_internal", "internal fault: {reason}")


class StationError(Exception):
    """Refusal or fault; the text gives the reason and the next step."""


def run_verb(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    expected: tuple[type[Exception], ...],
) -> int:
    """Run the verb of a command line, and print an error that is `expected`, or of the system.
    Return the exit status."""
    faults: tuple[type[Exception], ...] = (*expected, OSError)
    words = sys.argv[1:] if argv is None else argv
    arguments = parser.parse_args(words or ["--help"])
    logging.basicConfig(level=log_level(), format="%(name)s: %(message)s")
    try:
        status: int = arguments.act(arguments)
        return status
    except faults as fault:
        text = fault_text(fault)
        line = stderr_line(text) if getattr(arguments, "json", False) else text
        print(f"{parser.prog}: {line}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, the shell's convention
    return 1


def require(program: str, package: str = "") -> str:
    """Return the path of a program. Raises StationError with the name of its package."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        command = f"sudo apt install {package or program}"
        raise StationError(NOT_INSTALLED(program=program, command=command))
    return path

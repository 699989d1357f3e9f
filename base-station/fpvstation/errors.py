"""Faults that a person has to mend, and their way to the terminal."""

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Sequence

from fpvcar.runtime.sentences import os_reason, sentence


class StationError(Exception):
    """Refusal or fault; the text gives the reason and the next step."""


def fault_text(fault: Exception) -> str:
    """Return the text of a fault; an error of the system is a sentence, for pages."""
    if not isinstance(fault, OSError) or not fault.errno:
        return str(fault)
    reason = os_reason(fault)
    return sentence("says", place=fault.filename, reason=reason) if fault.filename else reason


def run_verb(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    expected: tuple[type[Exception], ...],
) -> int:
    """Run the verb of a command line, and print an error that is `expected`, or of the system.
    Return the exit status."""
    words = sys.argv[1:] if argv is None else argv
    arguments = parser.parse_args(words or ["--help"])
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    try:
        status: int = arguments.act(arguments)
        return status
    except expected as fault:
        print(f"{parser.prog}: {fault}", file=sys.stderr)
    except OSError as fault:
        path = f"{fault.filename}: " if fault.filename else ""
        print(f"{parser.prog}: {path}{fault.strerror or fault}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, the shell's convention
    return 1


def require(program: str, package: str = "") -> str:
    """Return the path of a program. Raises StationError with the name of its package."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        raise StationError(f"{program} is missing: sudo apt install {package or program}")
    return path

"""Generator of the terminal sessions in docs/build.md: `make docs`.

Setup and doctor run on a simulated card (testkit/doctor.py).
"""

import io
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import Mock, patch

from testkit.doctor import BOOT, PI_3, THROTTLED, PlayedMachine, examined, healthy, put
from tools.docs.written import filled

from fpvcar.__main__ import main as fpvcar
from fpvcar.config.raspberry_pi_os import MODEL
from fpvcar.doctor import report
from fpvcar.doctor.report import Report

PAGE = Path(__file__).resolve().parents[2] / "docs" / "build.md"
WIDTH = 88
BOARD = "mx1508-sensors"
"""Profile that the guide builds."""


def printed(*arguments: str, typed: Sequence[str] = ()) -> str:
    """Return the terminal output of fpvcar, with these lines typed as input."""
    out, lines = io.StringIO(), iter(typed)

    def answered(question: str) -> str:
        print(f"{question}{(line := next(lines))}")
        return line

    terminal = Mock(isatty=Mock(return_value=True))
    with (
        redirect_stdout(out),
        patch("builtins.input", answered),
        patch.object(sys, "stdin", terminal),
    ):
        fpvcar(arguments)
    return out.getvalue()


def setup() -> str:
    """Return the output of setup on a fresh card, with all questions answered."""
    with tempfile.TemporaryDirectory() as root:
        put(Path(root), BOOT, "dtparam=audio=on\n")
        output = printed("setup", "--root", root, typed=(BOARD, "Rusty", "yes", "yes"))
        return output.replace(root, "")


def fresh_car() -> Report:
    """Return the report of a car on its first evening: a sensor's wire is loose, the cable thin.

    The board is one that reports under-voltage: a Zero does not (hardware/power.md).
    """
    machine = PlayedMachine()
    machine.present = {(1, 0x40)}
    with tempfile.TemporaryDirectory() as root, redirect_stdout(io.StringIO()):
        put(healthy(Path(root)), THROTTLED, "50000\n")
        put(Path(root), MODEL, f"{PI_3}\0")
        return examined(Path(root), machine)


def page() -> str:
    """Return the full text of docs/build.md."""
    outputs = {"sudo fpvcar setup": setup(), "sudo fpvcar doctor": report.text(fresh_car(), WIDTH)}
    parts = {key: f"```text\n{text.rstrip()}\n```" for key, text in outputs.items()}
    return filled(PAGE.read_text(encoding="utf-8"), parts)


def main() -> int:
    """Write docs/build.md, up to date."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Libraries that an export needs beside the program, and the way to install them.

Debian has av and numpy, and no pyarrow: a packaged program looks for it in a virtual environment of
its own, VENV. pip leaves Debian's Python alone.
"""

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fpvcar.runtime.texts import Phrase, Text

VENV = Path("/opt/fpvcar-datasets")
NEEDED = {"lerobot": ("av", "numpy", "pyarrow"), "donkey": ("av", "numpy")}
WITHOUT_WHEELS = ("armv6l", "armv7l")
"""Machines for which pyarrow has no packages."""
LIBRARIES_MISSING = Phrase("dataset_libraries", "{missing} missing. To install: {command}")
NO_PYARROW = Text(
    "dataset_no_pyarrow",
    "A LeRobot dataset needs pyarrow, which needs a 64-bit system. Export it at a base station or "
    "on a computer, or choose Donkeycar.",
)


def interpreter() -> str:
    """Return the Python that exports: the one of VENV beside a packaged program."""
    own = VENV / "bin" / "python"
    return str(own) if sys.prefix == sys.base_prefix and own.exists() else sys.executable


def missing(kind: str) -> list[str]:
    """Return the libraries that `interpreter` lacks for a kind of dataset."""
    return [name for name in NEEDED[kind] if not _is_there(name)]


def _is_there(name: str) -> bool:
    if importlib.util.find_spec(name):
        return True
    return interpreter() != sys.executable and any(VENV.glob(f"lib/python3*/site-packages/{name}"))


def to_install(kind: str) -> Text | None:
    """Return how to install the libraries that are missing for a kind; None if none is."""
    names = missing(kind)
    if not names:
        return None
    packaged = sys.prefix == sys.base_prefix
    if packaged and "pyarrow" in names and platform.machine() in WITHOUT_WHEELS:
        return NO_PYARROW
    command = (
        " && ".join(_commands(names))
        if packaged
        else f"{sys.prefix}/bin/pip install {' '.join(names)}"
    )
    return LIBRARIES_MISSING(missing=", ".join(names), command=command)


def _commands(names: Sequence[str]) -> Iterator[str]:
    packages = [f"python3-{name}" for name in names if name != "pyarrow"]
    if "pyarrow" in names:
        packages.append("python3-venv")
    yield f"sudo apt install {' '.join(packages)}"
    if "pyarrow" in names:
        yield f"sudo python3 -m venv --system-site-packages {VENV}"
        yield f"sudo {VENV}/bin/pip install pyarrow"


def use(kind: str, module: str) -> Text | None:
    """Run this command line again by `interpreter` if only that one has all libraries.

    Returns how to install those that are missing everywhere. `module` is the program's.
    """
    install = to_install(kind)
    python = interpreter()
    if install is None and python != sys.executable:
        if not all(map(importlib.util.find_spec, NEEDED[kind])):
            os.execv(python, [python, "-m", module, *sys.argv[1:]])
    return install

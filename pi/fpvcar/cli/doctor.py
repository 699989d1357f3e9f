"""Verb `fpvcar doctor`: reports a car's faults, their consequences, and their remedies."""

import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from fpvcar.config import raspberry_pi_os as image
from fpvcar.doctor import checks, collect, report
from fpvcar.doctor.collect import Machine, Where
from fpvcar.doctor.offline_image import Card
from fpvcar.doctor.running_system import Live
from fpvcar.runtime import paths

WIDTH_MOST = 88


def run(arguments: Namespace, machine: Machine | None = None) -> int:
    """Run the verb; return an exit status for the worst finding. Raises OSError."""
    if not arguments.root.is_dir():
        raise NotADirectoryError(f"{arguments.root} is no folder: --root takes the root of a card")
    where = where_of(arguments)
    words = [f"--profile={where.profile}"]
    words += [f"--set={one}" for one in where.overrides]
    if machine is None and where.root != Path("/"):
        machine = Card(where.root)
    asked = machine or Live(words, runtimes(), arguments.port)
    found = checks.examine(collect.facts(where, asked))
    if arguments.json:
        sys.stdout.buffer.write(report.as_json(found) + b"\n")
    else:
        width = min(WIDTH_MOST, shutil.get_terminal_size().columns)
        print(report.text(found, width))
    return report.status(found)


def where_of(arguments: Namespace) -> Where:
    """Return the car's own profile and state if it is installed, or the bench's."""
    root: Path = arguments.root
    profile = arguments.profile
    if profile is None:
        own = root / image.PROFILE
        profile = own if own.exists() else paths.HARDWARE / "bench.toml"
    overrides = tuple(arguments.overrides)
    return Where(root, profile, overrides, _state(root), arguments.move)


def _state(root: Path) -> Path:
    """Return the car's state folder. Creates no folder."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given)
    own = root / image.STATE
    if root != Path("/") or own.exists():
        return own
    try:
        return paths.state_directory()
    except OSError:
        return own


def runtimes() -> Sequence[Path]:
    """Return the run-time directory with the lock of `wheels`, then those of manual starts."""
    own, given = Path("/") / image.RUNTIME, "RUNTIME_DIRECTORY" in os.environ
    first = own if own.is_dir() and not given else paths.runtime_directory()
    others = Path(tempfile.gettempdir()).glob("fpvcar-[0-9]*/wheels.lock")
    found = [first, *(one.parent for one in sorted(others))]
    return list(dict.fromkeys([*found, own] if own.is_dir() else found))

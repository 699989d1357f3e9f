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
from fpvcar.doctor.collect import Paths
from fpvcar.doctor.offline_image import OfflineImage
from fpvcar.doctor.programs import Machine
from fpvcar.doctor.running_system import RunningSystem
from fpvcar.runtime import paths

WIDTH_MOST = 88


def run(arguments: Namespace, machine: Machine | None = None) -> int:
    """Run the verb; return an exit status for the worst finding. Raises OSError."""
    if not arguments.root.is_dir():
        raise NotADirectoryError(
            f"--root {arguments.root}: not a folder; expected the root of an SD card"
        )
    car = car_paths(arguments)
    options = [f"--profile={car.profile}", *(f"--set={line}" for line in car.overrides)]
    if machine is None and car.root != Path("/"):
        machine = OfflineImage(car.root)
    machine = machine or RunningSystem(options, runtimes(), arguments.port)
    result = checks.examine(collect.facts(car, machine))
    if arguments.json:
        sys.stdout.buffer.write(report.as_json(result) + b"\n")
    else:
        width = min(WIDTH_MOST, shutil.get_terminal_size().columns)
        print(report.text(result, width))
    return report.status(result)


def car_paths(arguments: Namespace) -> Paths:
    """Return the car's own profile and state if it is installed, or the bench's."""
    root: Path = arguments.root
    profile = arguments.profile
    if profile is None:
        own = root / image.PROFILE
        profile = own if own.exists() else paths.HARDWARE / "bench.toml"
    overrides = tuple(arguments.overrides)
    return Paths(root, profile, overrides, state_folder(root), arguments.move)


def state_folder(root: Path) -> Path:
    """Return the car's state folder. Creates no folder."""
    from_systemd = os.environ.get("STATE_DIRECTORY")
    if from_systemd:
        return Path(from_systemd)
    own = root / image.STATE
    if root != Path("/") or own.exists():
        return own
    try:
        return paths.state_directory()
    except OSError:
        return own


def runtimes() -> Sequence[Path]:
    """Return the run-time directory with the lock of `wheels`, then those of manual starts."""
    own, from_systemd = Path("/") / image.RUNTIME, "RUNTIME_DIRECTORY" in os.environ
    first = own if own.is_dir() and not from_systemd else paths.runtime_directory()
    locks = Path(tempfile.gettempdir()).glob("fpvcar-[0-9]*/wheels.lock")
    directories = [first, *(lock.parent for lock in sorted(locks))]
    return list(dict.fromkeys([*directories, own] if own.is_dir() else directories))

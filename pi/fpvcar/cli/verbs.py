"""Implementations of the verbs of `fpvcar`. Each takes the parsed arguments, imports only the
modules it needs, and returns the exit status; raises ConfigError, OSError."""

import argparse
import contextlib
import errno
import importlib
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fpvcar import config
from fpvcar.config import checks, profiles
from fpvcar.runtime import paths

PROGRAM = "fpvcar"
"""Module that runs a verb in a process of its own; the bench's kernel has another."""
CAMERAS = {
    "picamera2": "fpvcar.video.programs.pi_camera",
    "rpicam": "fpvcar.video.programs.rpicam",
    "v4l2": "fpvcar.video.programs.webcam",
}
"""Camera -> the module of its process; only that one is imported."""
BENCH_CAMERAS = {"bench": "camera", "bench-depth": "depth"}
"""Camera -> its entry point in the bench package."""
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@contextlib.contextmanager
def without_authorities() -> Iterator[None]:
    """Hide all certificate authorities from OpenSSL within the context.

    At import aiohttp loads all of them for its client, unused by `run`: a tenth of the start-up
    time of `run`, and 2 MB.
    """
    before = {name: os.environ.get(name) for name in AUTHORITIES}
    os.environ.update(dict.fromkeys(AUTHORITIES, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def run(arguments: argparse.Namespace) -> int:
    """Serve the pages, capture video and drive, until a signal."""
    import asyncio  # not above: `wheels` must stay small

    with without_authorities():
        from fpvcar import app
    from fpvcar.devices import backends

    if arguments.soc is not None:
        backends.refuse_real_devices()
    profile = profiles.load(arguments.profile, arguments.overrides)
    for warning in checks.warnings(profile):
        logging.getLogger("fpvcar.profile").warning("%s", warning)
    options = app.Options(
        arguments.host,
        arguments.port,
        paths.runtime_directory(),
        arguments.soc,
        (
            sys.executable,
            "-m",
            PROGRAM,
            "doctor",
            "--json",
            f"--port={arguments.port}",
            f"--profile={arguments.profile}",
            *(f"--set={line}" for line in arguments.overrides),
        ),
        arguments.profile,
    )
    return asyncio.run(app.run(profile, options))


def wheels(arguments: argparse.Namespace) -> int:
    """Switch the motors, until a signal."""
    from fpvcar.devices import backends
    from fpvcar.wheels.__main__ import main

    if arguments.emulated:
        backends.refuse_real_devices()
    unsafe = ["pins.unsafe = true"] if arguments.unsafe else []
    profile = profiles.load(arguments.profile, [*arguments.overrides, *unsafe])
    return main(profile, paths.runtime_directory(), not arguments.emulated)


def bench(arguments: argparse.Namespace) -> int:
    """Emulate a car and run it."""
    import asyncio

    verbose = arguments.progress or arguments.verbose
    if not verbose:
        logging.getLogger().setLevel(logging.WARNING)
    supervisor = importlib.import_module(config.bench_module("supervisor"))
    options = supervisor.Options(
        arguments.profile,
        tuple(arguments.overrides),
        arguments.host,
        arguments.port,
        arguments.seed,
        arguments.browser,
        not arguments.no_stand_in,
        tuple(arguments.wire),
        arguments.pipe_dir,
        tuple(arguments.really),
        verbose,
        tuple(arguments.also),
        arguments.pins,
    )
    status: int = asyncio.run(supervisor.run(options))
    return status


def camera(arguments: argparse.Namespace) -> int:
    """Capture video, as a child process of `run`."""
    name = CAMERAS.get(arguments.source)
    if name is None:
        name = config.bench_module(BENCH_CAMERAS[arguments.source])
    module = importlib.import_module(name)
    status: int = module.main(arguments.rest)
    return status


def stop(arguments: argparse.Namespace) -> int:
    from fpvcar.cli import stop

    return stop.run(arguments.profile, arguments.overrides, stop.runtimes())


def _refuse_missing(files: Sequence[Path]) -> None:
    """Raise FileNotFoundError for the first missing file."""
    for path in files:
        if not path.exists():
            raise FileNotFoundError(
                errno.ENOENT,
                "no such file or folder; expected recordings (NAME.mcap) or their "
                f"folder, for example {paths.recordings_directory('')}",
                str(path),
            )


def profile(arguments: argparse.Namespace) -> int:
    """List, show, check, propose or convert profiles."""
    from fpvcar.cli import profile
    from fpvcar.devices import backends

    probes = backends.answering, backends.pca9685s
    return profile.run(arguments.action, arguments.names, arguments.root, *probes)


def replay(arguments: argparse.Namespace) -> int:
    """Replay the decisions of a recording, or show it in a browser."""
    _refuse_missing(arguments.files)
    if arguments.page:
        from fpvcar.cli import play

        return play.run(arguments.files, arguments.port, arguments.browser)
    from fpvcar.cli import pipes, replay

    return pipes.quietly(lambda: replay.run(arguments.files, arguments.partial))


def export(arguments: argparse.Namespace) -> int:
    """Export recordings as a film or tables."""
    from fpvcar.recordings.export import export

    _refuse_missing(arguments.files)
    return export.run(
        arguments.kind, arguments.out, arguments.files, arguments.force, arguments.partial
    )


def log(arguments: argparse.Namespace) -> int:
    """Show, verify, repair, release or export recordings."""
    from fpvcar.cli import log, pipes

    if log.refuses(arguments):
        return 2
    if arguments.action == "export":
        from fpvcar.datasets import options

        _refuse_missing(arguments.files)
        return options.export("fpvcar log export", arguments, arguments.files)
    return pipes.quietly(lambda: log.run(arguments.action, arguments.files, arguments.out))


def wiring(arguments: argparse.Namespace) -> int:
    """Draw the wires of a profile."""
    from fpvcar.cli import pipes, wiring

    return pipes.quietly(
        lambda: wiring.run(arguments.name, arguments.form, arguments.sheet, arguments.out)
    )


def network(arguments: argparse.Namespace) -> int:
    """Serve the car's Wi-Fi, or show its state."""
    from fpvcar.cli import network

    if arguments.action == "show":
        return network.show(arguments.key)
    if arguments.action == "portal":
        return network.lead()
    if not arguments.profile.exists():  # before the answers of the first boot
        return network.serve_car(socket.gethostname(), opens=True)
    profile = profiles.load(arguments.profile, arguments.overrides)
    return network.serve_car(profile.car.name, profile.network.own)


def code(arguments: argparse.Namespace) -> int:
    """Print the drive code, and a QR code of the page's address."""
    from fpvcar.access.banner import code_text
    from fpvcar.access.codes import CODES, saved_codes
    from fpvcar.cli.doctor import state_folder

    path = state_folder(Path("/")) / CODES
    codes = saved_codes(path)
    if codes is None:
        raise config.ConfigError(f"{path}: no codes; start the car once, and use sudo")
    print(code_text(codes, arguments.port, arguments.grown_up))
    return 0


def setup(arguments: argparse.Namespace) -> int:
    """Make this computer a car, or undo that."""
    from fpvcar.cli import setup

    return setup.main(arguments)


def first_boot(arguments: argparse.Namespace) -> int:
    """Ask the questions of a card image's first boot."""
    from fpvcar.cli import first_boot

    return first_boot.main(arguments)


def doctor(arguments: argparse.Namespace) -> int:
    """Report faults of the car, and their remedies."""
    from fpvcar.cli import doctor, pipes

    return pipes.quietly(lambda: doctor.run(arguments))


def hil(arguments: argparse.Namespace) -> int:
    from fpvcar.hil import command

    return command.run(arguments)

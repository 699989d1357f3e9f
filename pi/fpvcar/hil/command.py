"""`fpvcar hil`: runs the suite on the bench, or on this very car, and reports."""

import contextlib
import logging
import os
import platform
import signal
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fpvcar import __version__, files, paths
from fpvcar.config import ConfigError, profiles
from fpvcar.hil import page, results, runner
from fpvcar.hil.checks import CHECKS
from fpvcar.hil.metal_rig import MetalRig
from fpvcar.hil.rig import Check, Rig
from fpvcar.system import PROFILE


def run(arguments: Namespace) -> int:
    """The verb; the exit status says how bad the worst is. Raises ConfigError."""
    checks = runner.chosen(CHECKS, arguments.only)
    if arguments.list:
        print(listing(checks))
        return 0
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    with _unwinding(), _rig(arguments) as rig:
        report = _report(rig, checks, arguments.repeat)
    if arguments.report is not None:
        write(report, arguments.report)
    print(f"{results.summary(report.results)}.")
    return results.status(report.results)


def write(report: results.Report, folder: Path) -> None:
    """report.html, .json and .xml, compared with the .json that is there. Raises
    OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    last, path = None, folder / "report.json"
    if path.exists():
        try:
            last = results.from_json(path.read_bytes())
        except msgspec.DecodeError as fault:
            print(f"{path}: no report, not compared: {fault}", file=sys.stderr)
    files.write_whole(folder / "report.html", [page.html(report, last).encode()])
    files.write_whole(folder / "report.xml", [page.junit(report)])
    files.write_whole(path, [results.as_json(report)])
    print(f"wrote {folder / 'report.html'}, .xml and .json")


def listing(checks: Sequence[Check]) -> str:
    """Every check with what it proves, its limit, and what it needs."""
    lines = []
    for one in checks:
        needs = f"; needs {', '.join(one.needs)}" if one.needs else ""
        lines.append(f"{one.name:22} {one.proves}")
        lines.append(f"{'':22} at most {one.limit} ({one.limit.source}){needs}")
    return "\n".join(lines)


def _report(rig: Rig, checks: Sequence[Check], repeat: int) -> results.Report:
    def say(words: str) -> None:
        print(words, flush=True)

    found = tuple(runner.run(checks, rig, repeat, say))
    date = time.strftime("%Y-%m-%d")
    return results.Report(rig.where, date, __version__, machine(), found)


def machine() -> str:
    """What it ran on: figures without it say nothing."""
    return f"{os.cpu_count()} cores, {platform.system()}, {platform.machine()}"


@contextlib.contextmanager
def _rig(arguments: Namespace) -> Iterator[Rig]:
    """This car where --metal says so, else a bench of its own."""
    rig, own = paths.HARDWARE / "rig.toml", Path("/") / PROFILE
    if arguments.metal:
        default = own if own.exists() else rig
        profile = profiles.load(arguments.profile or default, arguments.overrides)
        yield MetalRig(profile, arguments.port, person=arguments.browser)
        return
    try:
        from fpvcar.hil.bench_rig import bench
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"no bench here ({fault}): apt install fpvcar-bench, or hil --metal"
        ) from None
    with tempfile.TemporaryDirectory(prefix="fpvcar-hil-") as home:
        overrides = tuple(arguments.overrides)
        chosen = arguments.profile or rig
        with bench(chosen, overrides, Path(home), arguments.browser) as made:
            yield made


@contextlib.contextmanager
def _unwinding() -> Iterator[None]:
    """SIGTERM ends the suite as Ctrl-C does, with all that it has started."""

    def unwind(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # a second one cuts no tidying short
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {one: signal.signal(one, unwind) for one in numbers}
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        raise
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

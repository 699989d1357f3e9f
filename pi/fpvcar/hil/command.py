"""`fpvcar hil`: run the suite on the bench or on this car, and report."""

import contextlib
import importlib
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

from fpvcar import __version__
from fpvcar.config import bench_module, profiles
from fpvcar.config.raspberry_pi_os import PROFILE
from fpvcar.hil import page, results, runner
from fpvcar.hil.checks import CHECKS
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.metal_rig import MetalRig
from fpvcar.hil.rig import Check
from fpvcar.runtime import files, paths


def run(arguments: Namespace) -> int:
    """Run the verb and return an exit status for the worst result. Raises ConfigError."""
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
    """Write report.html, .json and .xml; compare with an existing .json. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    last, path = None, folder / "report.json"
    if path.exists():
        try:
            last = results.from_json(path.read_bytes())
        except msgspec.DecodeError as fault:
            print(f"{path}: not a report, so not compared: {fault}", file=sys.stderr)
    files.write_whole(folder / "report.html", [page.html(report, last).encode()])
    files.write_whole(folder / "report.xml", [page.junit(report)])
    files.write_whole(path, [results.as_json(report)])
    print(f"wrote {folder / 'report.html'}, .xml and .json")


def listing(checks: Sequence[Check]) -> str:
    """Return one entry per check: its statement, its limit and the parts it needs."""
    lines = []
    for check in checks:
        needs = f"; needs {', '.join(check.needs)}" if check.needs else ""
        lines.append(f"{check.name:22} {check.proves}")
        lines.append(f"{'':22} at most {check.limit} ({check.limit.source}){needs}")
    return "\n".join(lines)


def _report(rig: Rig, checks: Sequence[Check], repeat: int) -> results.Report:
    def report(line: str) -> None:
        print(line, flush=True)

    measured = tuple(runner.run(checks, rig, repeat, report))
    date = time.strftime("%Y-%m-%d")
    return results.Report(rig.where, date, __version__, machine(), measured)


def machine() -> str:
    """Return cores, system and processor: a figure is meaningless without its machine."""
    return f"{os.cpu_count()} cores, {platform.system()}, {platform.machine()}"


@contextlib.contextmanager
def _rig(arguments: Namespace) -> Iterator[Rig]:
    """Yield this car's rig with --metal, else a bench."""
    rig, own = paths.HARDWARE / "rig.toml", Path("/") / PROFILE
    if arguments.metal:
        default = own if own.exists() else rig
        profile = profiles.load(arguments.profile or default, arguments.overrides)
        yield MetalRig(profile, arguments.port, person=arguments.browser)
        return
    bench = importlib.import_module(bench_module("rig")).bench
    with tempfile.TemporaryDirectory(prefix="fpvcar-hil-") as home:
        overrides, pins = tuple(arguments.overrides), arguments.pins
        path = arguments.profile or rig
        with bench(path, overrides, Path(home), arguments.browser, pins) as bench_rig:
            yield bench_rig


@contextlib.contextmanager
def _unwinding() -> Iterator[None]:
    """Make SIGTERM and SIGHUP unwind like Ctrl-C, so that started processes are ended."""

    def unwind(number: int, _: object) -> None:
        # a second signal must not interrupt the clean-up
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, unwind) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

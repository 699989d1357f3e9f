"""Run the tests of a module against its mutants: a fork each, two at a time.

The parent has imported everything except the mutated module and its tests. The child serves the
mutant to the importer and runs pytest. So a mutant costs its tests and no start.
"""

import importlib
import importlib.abc
import importlib.machinery
import io
import os
import signal
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

import fpvcar
from tests.mutation.mutants import Mutant, mutants

RECOVERY = ("recordings/repair/test_recover.py", "recordings/repair/test_salvage.py")
TESTS: dict[str, tuple[str, ...]] = {
    "drive.gate": tuple(f"drive/test_{name}.py" for name in ("gate", "control", "guard")),
    "drive.guard": ("drive/test_guard.py",),
    "drive.mixing": ("drive/test_mixing.py",),
    "drive.seat": ("drive/test_seat.py",),
    "wheels.controller": tuple(
        f"wheels/test_{name}.py" for name in ("lease", "controller", "controller_faults")
    ),
    "devices.motors.esc": ("devices/test_esc.py",),
    "http.limits": ("http/test_limits.py",),
    "http.fast_path": ("http/test_fast_path.py",),
    "access.codes": ("access/test_codes.py", "access/test_invitations.py"),
    "access.invitations_api": ("access/test_invitations.py",),
    "access.remembered_browsers": (
        "access/test_remembered_browsers.py",
        "access/test_invitations.py",
        "access/test_stations.py",
        "seat/test_authorization.py",
    ),
    "access.rights": (
        "access/test_rights.py",
        "seat/test_rights.py",
        "library/api/test_recordings_access.py",
        "access/test_invitations.py",
    ),
    "recordings.repair.recover": RECOVERY,
    "recordings.repair.salvage": RECOVERY,
}
"""The mutated modules, each with the tests that must fail on its mutants, the quickest first.

Only tests with fixed examples: the random search of others finds a fault in some runs only.
"""
WITHOUT_SEARCHES = "not test_no_sequence"
QUICK = "not slow"
"""Only tests of `make test`."""
OPTIONS = "-x -q --tb=no -p no:cacheprovider --continue-on-collection-errors"
"""Options of pytest; by the last one, a failed import counts as a failed test."""
SLOW_S = 30.0
WAITING = (
    "fpvcar.config.profiles",
    "fpvcar.wire.down",
    "fpvcar.wire.up",
    "fpvcar.wire.wheels",
    "testkit.pins.fake_pins",
    "aiohttp.test_utils",
    "aiohttp.web",
    "av",
    "mcap.reader",
    "segno",
    "xdist.plugin",
    "hypothesis.stateful",
    "pytest_asyncio.plugin",
    "_hypothesis_pytestplugin",
)
PACKAGE = Path(fpvcar.__file__).parent
HERE = Path(__file__).resolve().parents[1] / "unit"


FAILED = int(pytest.ExitCode.TESTS_FAILED)


class Broken(RuntimeError):
    """A run without a verdict on its mutant."""


@dataclass(frozen=True)
class Verdict:
    """`killed`: some test failed. `timeout`: the tests did not end within half a minute."""

    mutant: Mutant
    killed: bool
    timeout: bool = False


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Importer that serves one module from a source in memory."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: types.ModuleType) -> None:
        exec(compile(self._source, f"<mutant of {self._name}>", "exec"), vars(module))


def all_mutants(names: Sequence[str]) -> list[tuple[str, Mutant]]:
    """Return (module, mutant) of every module."""
    result = []
    for name in names:
        source = (PACKAGE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
        result += [(name, mutant) for mutant in mutants(name.rpartition(".")[2], source)]
    return result


def prepare() -> None:
    """Import every module that each child needs and no mutant touches."""
    for name in WAITING:
        importlib.import_module(name)
    for name in TESTS:
        assert f"fpvcar.{name}" not in sys.modules, f"{name} is loaded already"
    # Repeatable verdicts; no time spent on shrinking a failing example.
    hypothesis.settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )
    hypothesis.settings.load_profile("mutants")


def _child(name: str, source: str) -> int:
    sys.meta_path.insert(0, _Mutated(f"fpvcar.{name}", source))
    sys.stdout = sys.stderr = io.StringIO()
    loaded = "ignore::pytest.PytestAssertRewriteWarning"  # imported in the parent on purpose
    chosen = ["-W", loaded, "-k", WITHOUT_SEARCHES, "-m", QUICK]
    for test in TESTS[name]:
        status = int(pytest.main([*OPTIONS.split(), *chosen, str(HERE / test)]))
        if status != pytest.ExitCode.OK:
            return status
    return 0


def _fork(name: str, source: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 99
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(int(SLOW_S))
        status = _child(name, source)
    finally:
        os._exit(status)


def verdicts(chosen: Sequence[tuple[str, Mutant]], at_once: int = 2) -> Iterator[Verdict]:
    """Yield a verdict for each mutant, in the order of completion."""
    waiting = list(reversed(chosen))
    running: dict[int, Mutant] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            name, mutant = waiting.pop()
            running[_fork(name, mutant.source)] = mutant
        pid, status = os.wait()
        yield verdict(running.pop(pid), os.waitstatus_to_exitcode(status))


def verdict(mutant: Mutant, status: int) -> Verdict:
    """Return the verdict of an exit status. Raises Broken for all but "passed", "failed" and
    "time is over"."""
    if status not in (0, FAILED, -signal.SIGALRM):
        raise Broken(f"{mutant.key}: the tests ended with {status}, not 0 or {FAILED}")
    return Verdict(mutant, status != 0, status == -signal.SIGALRM)


def check_unchanged(names: Sequence[str]) -> None:
    """Check that the tests pass on unchanged modules; otherwise every mutant would seem dead."""
    for name in names:
        source = (PACKAGE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
        (result,) = verdicts([(name, Mutant(f"{name}: nothing changed", source))])
        if result.killed:
            raise SystemExit(f"the tests of {name} fail without a mutant")

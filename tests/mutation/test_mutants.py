"""Every flipped comparison, removed stop or changed limit is noticed by some test."""

import signal
import subprocess
import sys

import pytest

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.run import Broken, Verdict, verdict

SAMPLE = 8

CORE = """
LIMIT = 10

@dataclass(frozen=True)
class Stop:
    by: Cause = Cause.NOBODY

def decide(age, held):
    log.info("left alone")
    if age >= LIMIT or held:
        stop()
        return 0.0
    return min(age, 1)
"""


def test_operators_yield_the_listed_mutants() -> None:
    assert [one.key for one in mutants("core", CORE)] == [
        "core: constant 10 -> 11",
        "core: constant 10 -> 9",
        "core.Stop: by = Cause.NOBODY: None",
        "core.decide: removed: return min(age, 1)",
        "core.decide: negated: age >= LIMIT or held",
        "core.decide: removed: stop()",
        "core.decide: removed: return 0.0",
        "core.decide: age >= LIMIT or held: or -> and",
        "core.decide: age >= LIMIT or held: without age >= LIMIT",
        "core.decide: age >= LIMIT or held: without held",
        "core.decide: age >= LIMIT: >= -> >",
        "core.decide: age >= LIMIT: >= -> <",
        "core.decide: constant 0.0 -> 0.1",
        "core.decide: constant 0.0 -> -0.1",
        "core.decide: min(age, 1): max",
        "core.decide: constant 1 -> 2",
        "core.decide: constant 1 -> 0",
    ]


def test_mutants_differ_from_each_other() -> None:
    sources = [one.source for one in mutants("core", CORE)]
    assert len(set(sources)) == len(sources)
    assert all("left alone" in source for source in sources)


def test_mutant_is_killed_by_test_failure_or_timeout_only() -> None:
    mutant = Mutant("core: none", CORE)
    assert verdict(mutant, 0) == Verdict(mutant, killed=False)
    assert verdict(mutant, 1) == Verdict(mutant, killed=True)
    late = Verdict(mutant, killed=True, timeout=True)
    assert verdict(mutant, -signal.SIGALRM) == late
    for status in (2, 3, 4, 5, 99, -signal.SIGSEGV):  # interrupted ... no tests
        with pytest.raises(Broken):
            verdict(mutant, status)


@pytest.mark.slow
@pytest.mark.soak
def test_mutants_are_killed(soaking: bool) -> None:
    sample = () if soaking else (f"--sample={SAMPLE}",)
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", *sample],
        capture_output=True,
        text=True,
        timeout=900,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr

"""Every parser under its guided fuzzer: one second each, minutes in a soak."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz import oracles, seeds

pytestmark = [pytest.mark.soak, pytest.mark.slow]

GUIDED = find_spec("atheris") is not None
SHORT_S, LONG_S = 1, 120
EXECUTIONS = re.compile(r"(?:number_of_executed_units: +|executions=)(\d+)")
NEW = re.compile(r"stat::new_units_added: +(\d+)")
TOLD = re.compile(r"^== (\w+)\n(.*?)^== status (-?\d+)$", re.M | re.S)
COVERED = re.compile(r"DONE +cov: (\d+)")


def fuzz(targets: list[str], seconds: int, crashes: Path) -> str:
    """Run fuzzers one after another in one process; return its output."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.fuzz",
            *targets,
            f"--seconds={seconds}",
            f"--crashes={crashes}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=len(targets) * (seconds + 30) + 60,
        cwd=Path(__file__).resolve().parents[2],
    ).stdout


def count(pattern: re.Pattern[str], said: str) -> int:
    """Return the last number that the fuzzer printed; 0 without one."""
    found = pattern.findall(said)
    return int(found[-1]) if found else 0


def test_parsers_survive_fuzzed_input(
    soaking: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # To import and instrument everything takes a process several seconds.
    seconds, lanes = (LONG_S, 2) if soaking else (SHORT_S, 1)
    with ThreadPoolExecutor(lanes) as pool:
        parsers = list(oracles.PARSERS)
        runs = [pool.submit(fuzz, parsers[lane::lanes], seconds, tmp_path) for lane in range(lanes)]
    told = "".join(run.result() for run in runs)
    ended = {name: (said, int(status)) for name, said, status in TOLD.findall(told)}
    broken = []
    for name in parsers:
        said, status = ended.get(name, (told, -1))
        executions = count(EXECUTIONS, said)
        with capsys.disabled():
            print(
                f"\n{name}: {executions} executions in {seconds} s, "
                f"{count(NEW, said)} found new code, {count(COVERED, said)} edges, "
                f"{int(status != 0)} crashes",
                end="",
            )
        blind = GUIDED and not count(COVERED, said)  # its modules are not instrumented
        if status or blind or executions <= len(seeds.seeds(name)):  # the fuzzer mutated nothing
            broken.append(f"{name}:\n{said[-3000:]}")
    found = [f"{path.name}: {path.read_bytes()!r}" for path in tmp_path.iterdir()]
    assert not broken, "\n".join([*broken, *found])


@pytest.mark.parametrize("name", oracles.PARSERS)
def test_seeds_and_former_crashes_pass(name: str) -> None:
    former = [path.read_bytes() for path in seeds.crashes(name)]
    inputs = [*seeds.seeds(name), *former]
    assert inputs
    for data in [b"", *inputs]:
        oracles.PARSERS[name](data)

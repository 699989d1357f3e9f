"""HTTP and every socket of `run` under a seeded fuzzer: alive, silent in the log, flat.

What a driver notices of the same is in test_hostile.py.
"""

import ast
from pathlib import Path

import pytest
from benchmarks.memory import resident_mb

from tests.e2e.driver import Driver, free, sit_down, stand_up
from tests.e2e.fuzzers import EACH
from tests.e2e.harness import STRIP, started, wait_for
from tests.e2e.test_hostile import GROWTH_MB, descriptors, start
from tests.e2e.test_who_stops import forward

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried, pytest.mark.soak]

SHORT_S, LONG_S = 5.0, 120.0
LEAST = 50
"""Rounds of each, on a machine that does much else."""


def test_http_and_every_socket(
    soaking: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All four at once, so long each."""
    seconds = LONG_S if soaking else SHORT_S
    with started(tmp_path, STRIP) as bench:
        recordings = bench.state / "recordings"  # then all files are open
        wait_for(lambda: bool(list(recordings.glob("*.part"))), "it does not record")
        run = bench.pid("run")
        fds, memory_mb = descriptors(run), resident_mb(run)
        attacks = {name: start(name, bench.port, seconds) for name in EACH}
        counts = {name: one.communicate()[0].strip() for name, one in attacks.items()}
        wait_for(lambda: descriptors(run) <= fds, f"more than {fds} descriptors", 20.0)
        late_mb = resident_mb(run)
        with Driver(bench.port) as driver, bench.watch() as watch:
            sit_down(driver)
            free(driver)
            forward(driver, watch)
            stand_up(driver)
        assert bench.pid("run") == run and "Traceback" not in bench.log()
    with capsys.disabled():
        print(f"\n{counts}, {memory_mb:.1f} -> {late_mb:.1f} MB", end="")
    for name, said in counts.items():
        assert attacks[name].returncode == 0 and "'500'" not in said
        good = "200" if name == "http" else "101"
        rounds: dict[str, int] = ast.literal_eval(said)
        taken = sum(rounds[one] for one in rounds if one.startswith(good))
        assert sum(rounds.values()) > LEAST and taken > LEAST / 5, counts
    assert late_mb < memory_mb + GROWTH_MB

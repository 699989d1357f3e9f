"""Ctrl-C, or `timeout`, ends the benchmark and all its processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.harness import wait_for

pytestmark = pytest.mark.e2e
MARK = "FPVCAR_TEST_BENCH_ENDS"
INTERRUPTED = 130


def alive(mark: bytes) -> list[str]:
    """Return commands of the processes that carry the mark, by inheritance."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_benchmark_stopped_by_signal_leaves_no_process(
    number: signal.Signals, tmp_path: Path
) -> None:
    mark = f"{MARK}={os.getpid()}-{number.value}"
    words = ["--only=control", "--runs=1000", f"--json={tmp_path / 'benchmark.json'}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", *words],
        env={**os.environ, MARK: mark.partition("=")[2]},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if "presses" in line:
                break
        assert len(alive(mark.encode())) > 6, "".join(lines)
        if number == signal.SIGINT:  # a terminal sends it to all
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert process.returncode == INTERRUPTED, said
        assert "interrupted: nothing was written" in said
        wait_for(lambda: not alive(mark.encode()), "something is left", 10.0, 0.1)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert not (tmp_path / "benchmark.json").exists()

"""The units in C, which `make check` runs under the sanitizers, too."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "base-station" / "rdma"


@pytest.mark.e2e
def test_c_units(rdma_tools: Path) -> None:
    """The fixture has built the units; another build beside it would race."""
    words = ["make", "-s", "-C", str(SOURCE), "check-units-here"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "checks, 0 failed" in done.stdout

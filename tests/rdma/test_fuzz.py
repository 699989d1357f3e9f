"""libFuzzer on every byte that comes from the other end."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"


@pytest.mark.e2e
@pytest.mark.soak
@pytest.mark.parametrize("target", ["peer", "tree"])
def test_no_bytes_lead_astray(target: str, soaking: bool) -> None:
    seconds = 300 if soaking else 10
    words = ["make", "-s", "-C", str(SOURCE), f"fuzz-{target}"]
    ended = subprocess.run(
        [*words, f"SECONDS_EACH={seconds}"],
        capture_output=True,
        text=True,
        timeout=seconds + 240,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr

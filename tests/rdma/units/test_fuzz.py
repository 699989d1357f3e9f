"""libFuzzer on every byte that comes from the other end."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "base-station" / "rdma"


@pytest.mark.e2e
@pytest.mark.soak
@pytest.mark.long
def test_protocol_parsers_survive_fuzzing() -> None:
    """All targets run at a time, because none of them keeps a processor busy alone."""
    seconds = 300
    make = ["make", "-s", "-C", str(SOURCE)]
    subprocess.run([*make, "-j2", "fuzz-programs"], check=True, timeout=240)
    running = [
        subprocess.Popen(
            [*make, f"fuzz-{target}", f"SECONDS_EACH={seconds}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for target in ("peer", "receive", "send", "tree")
    ]
    for fuzzer in running:
        said, _ = fuzzer.communicate(timeout=seconds + 120)
        assert fuzzer.returncode == 0, said

"""The example client of docs/reference/wire.md, against a running car."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.harness import NO_GUARD, SMALL, RunningBench

pytestmark = pytest.mark.e2e
OPTIONS = (*SMALL, NO_GUARD)
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "drive.py"


def test_example_client_drives_and_stops(bench: RunningBench) -> None:
    code = json.loads((bench.state / "codes.json").read_text())["drive"]
    with bench.watch() as watch:
        done = subprocess.run(
            [sys.executable, EXAMPLE, bench.url, code],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        name, pictures = done.stdout.split(": ")
        assert name and int(pictures.split()[0]) > 1
        assert max(one.duties[0] for one in watch.samples) > 0.0, "it drove forward"
        assert not watch.now.driving

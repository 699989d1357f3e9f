"""Viewers of the load benchmark."""

import json
import subprocess
import sys
from pathlib import Path


def test_benchmark_without_viewers_connects_nowhere() -> None:
    words = [sys.executable, "-m", "benchmarks.load_viewers", "http", "1", "0"]
    root = Path(__file__).parents[3]
    ended = subprocess.run(words, input="go\nend\n", capture_output=True, text=True, cwd=root)
    assert ended.returncode == 0, ended.stderr
    ready, report = ended.stdout.splitlines()
    assert ready == "ready" and json.loads(report)["ages_ms"] == []

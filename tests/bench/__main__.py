"""`make bench`: what the car does on this machine, in figures. A benchmark, no test.

Runs every part in turn, prints a table, and writes all samples as JSON.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from tests.bench import control, glass, memory, stops
from tests.bench.rig import Given
from tests.bench.rows import HEAD, Result, Row, line
from tests.e2e.conftest import chromium

# In the order of the table: what --only names, and what measures it.
PARTS: dict[str, Callable[[Given], Iterator[Result]]] = {
    "video": glass.rows,
    "control": control.rows,
    "memory": memory.rows,
    "stop": stops.rows,
}


def machine() -> str:
    """The machine, in one line: figures without it say nothing."""
    cpu = next(
        (
            one.partition(":")[2].strip()
            for one in Path("/proc/cpuinfo").read_text().splitlines()
            if one.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} cores of {cpu}, Linux {platform.release()}"


def main() -> int:
    """Measures; 0 even where an aim is missed: a busy machine is no defect."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--only", default=",".join(PARTS), help=f"some of: {', '.join(PARTS)}"
    )
    parser.add_argument("--seconds", type=float, default=31.0, help="per video row")
    parser.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", "30")))
    parser.add_argument("--json", type=Path, default=Path("bench.json"))
    given = parser.parse_args()
    wanted = [one.strip() for one in given.only.split(",")]
    if strangers := set(wanted) - set(PARTS):
        parser.error(f"no part {', '.join(strangers)}: there are {', '.join(PARTS)}")
    results: list[Result] = []
    print(f"{machine()}\n{HEAD}", flush=True)
    for name in wanted:
        for one in PARTS[name](Given(chromium, given.seconds, given.runs)):
            results.append(one)
            if isinstance(one, Row):
                print(line(one), flush=True)
    written = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "rows": [
            {**asdict(one), "median": one.median, "p95": one.p95, "p99": one.p99,
             "worst": one.worst, "met": one.met}
            for one in results if isinstance(one, Row)
        ],
        "curves": [asdict(one) for one in results if not isinstance(one, Row)],
    }  # fmt: skip
    given.json.write_text(json.dumps(written) + "\n")
    print(f"written to {given.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

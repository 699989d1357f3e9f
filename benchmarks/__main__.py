"""Entry point of `make benchmark`: measures the car on this machine; not a pass/fail test.

Runs every part in turn, prints a table, writes all samples as JSON, and draws them.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testkit.browsers.chromium import chromium

from benchmarks import draw, load, memory, sensors, start, stops
from benchmarks.baselines import tuned
from benchmarks.browser import buttons, control, firefox, stages, video
from benchmarks.network import far, links, links_edge, links_loss, tunnel
from benchmarks.rdma import copies, pipes
from benchmarks.recordings import broker, datasets, query, recording, station, store
from benchmarks.rig import Settings, say
from benchmarks.rows import HEAD, Curve, Note, Result, Row, line

# Parts in the order of the table: name for --only -> function that measures it.
PARTS: dict[str, Callable[[Settings], Iterator[Result]]] = {
    "video-rival": tuned.video_rows,
    "video-stages": stages.rows,
    "video-paths": video.rows,
    "video-shipped": video.shipped,
    "firefox": firefox.rows,
    "control": control.rows,
    "buttons": buttons.rows,
    "links-faults": links.rows,
    "links-loss": links_loss.rows,
    "links-edge": links_edge.rows,
    "links-rival-loss": tuned.loss_rows,
    "links-rival-jitter": tuned.jitter_rows,
    "load-car": load.rows,
    "load-crowds": load.crowds,
    "load-rival": tuned.load_rows,
    "memory": memory.rows,
    "start": start.rows,
    "sensors": sensors.rows,
    "recording": recording.rows,
    "stop": stops.rows,
    "pipes": pipes.rows,
    "copies": copies.rows,
    "station": station.rows,
    "store": store.rows,
    "query": query.rows,
    "broker": broker.rows,
    "datasets": datasets.rows,
    "tunnel": tunnel.rows,
    "far": far.rows,
    "remote": far.beside,
}
INTERRUPTED = 130
BROKEN = "broke off"


def machine() -> str:
    """Describe the machine in one line, as context of the figures."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} cores of {cpu}, Linux {platform.release()}"


def measure(parts: list[str], settings: Settings, interrupted: Sequence[int] = ()) -> list[Result]:
    """Run each part in turn; print a row as soon as it is measured. A part that fails becomes a
    note, with its trace: the figures of the others are kept."""
    results: list[Result] = []
    print(f"{machine()}\n{HEAD}", flush=True)
    for name in parts:
        say(name)
        try:
            for result in PARTS[name](settings):
                results.append(result)
                if not isinstance(result, Curve):
                    say("")
                    print(line(result), flush=True)
        except Exception as fault:
            if interrupted:  # the fault is a consequence of the signal
                raise
            traceback.print_exc()
            broken = Note(name, f"{BROKEN}: {fault}")
            results.append(broken)
            print(line(broken), flush=True)
    say("")
    return results


def written(results: list[Result]) -> dict[str, Any]:
    """Return the contents of the JSON file: every sample of every row."""
    return {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "rows": [
            {
                **asdict(result),
                "median": result.median,
                "p95": result.p95,
                "p99": result.p99,
                "worst": result.worst,
                "met": result.met,
            }
            for result in results
            if isinstance(result, Row)
        ],
        "curves": [asdict(result) for result in results if isinstance(result, Curve)],
        "notes": [asdict(result) for result in results if isinstance(result, Note)],
    }


def parts_of(only: str) -> list[str]:
    """Return the parts that a list names: `video` is video-rival, video-paths and video-shipped.
    Raises ValueError for an unknown name."""
    parts: list[str] = []
    for name in (word.strip() for word in only.split(",")):
        named = [part for part in PARTS if f"{part}-".startswith(f"{name}-")]
        if not named:
            raise ValueError(f"no part {name!r}: the parts are {', '.join(PARTS)}")
        parts += named
    return list(dict.fromkeys(parts))


def _interruptible() -> list[int]:
    """Make SIGTERM unwind like Ctrl-C, so that no process is left behind. Returns the list of
    received signals."""
    signals: list[int] = []

    def unwind(number: int, _: object) -> None:
        signals.append(number)
        if len(signals) == 1:  # a second signal must not interrupt the clean-up
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, unwind)
    return signals


def main() -> int:
    """Run the benchmark. Returns 0 even if an aim is missed, as a busy machine is no defect; 1
    if a part could not be measured to its end."""
    parser = argparse.ArgumentParser(prog="make benchmark", description=__doc__)
    parser.add_argument(
        "--only",
        default=",".join(PARTS),
        help=f"some of: {', '.join(PARTS)}; video names all video-*",
    )
    parser.add_argument("--seconds", type=float, default=21.0, help="per video row")
    parser.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", "30")))
    parser.add_argument("--json", type=Path, default=Path("benchmark.json"))
    parser.add_argument(
        "--pictures", type=Path, help="where to draw; without --only: docs/pictures"
    )
    options = parser.parse_args()
    try:
        parts = parts_of(options.only)
    except ValueError as fault:
        parser.error(str(fault))
    interrupted = _interruptible()
    try:
        settings = Settings(chromium, options.seconds, options.runs)
        results = measure(parts, settings, interrupted)
    except BaseException:
        # After a signal, ignore the faults of the parts: their processes were ended by it.
        if not interrupted:
            raise
        print("\ninterrupted: nothing was written", file=sys.stderr)
        return INTERRUPTED
    figures = written(results)
    options.json.write_text(json.dumps(figures) + "\n")
    print(f"written to {options.json}")
    pictures = options.pictures or (draw.TARGET if set(parts) == set(PARTS) else None)
    if pictures is not None:
        for path in draw.everything(figures, pictures):
            print(f"drawn {path}")
    return any(isinstance(note, Note) and note.text.startswith(BROKEN) for note in results)


if __name__ == "__main__":
    sys.exit(main())

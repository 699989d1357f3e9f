"""Verbs `fpvstation measure` and `fpvstation size`: the room that recordings need."""

import argparse
import signal
import sys
import time
from pathlib import Path

from fpvcar.recordings.export.progress import Progress, span
from fpvcar.runtime.arguments import within
from fpvcar.runtime.units import MB, counted
from fpvstation.cli.snapshot_verbs import AddVerb
from fpvstation.service import state_directory
from fpvstation.sizing import measure as measuring
from fpvstation.sizing.plan import CAR_MBIT, LINK_MBIT, Demand, plan


def add_to(add: AddVerb) -> None:
    """Add the verbs. `add` adds a verb with the option --store."""
    measure = add("measure", measure_folders, "measure the disks of folders with fio")
    measure.add_argument("folder", type=Path, nargs="+", metavar="DIR", help="folder on the disk")
    measure.add_argument(
        "--seconds",
        type=within(int, 1, 600),
        default=5,
        metavar="S",
        help=f"time of each of {len(measuring.JOBS)} jobs (default: %(default)s)",
    )
    size = add("size", print_sizes, "tell when the measured disks are full, and how slow they are")
    size.add_argument("--cars", type=within(int, 1, 100_000), default=1, help="number of cars")
    size.add_argument(
        "--hours",
        type=within(float, 0.01, 24.0),
        default=1.0,
        help="hours that each car drives a day (default: %(default)s)",
    )
    size.add_argument(
        "--mbit",
        type=within(float, 0.01, 1000.0),
        default=CAR_MBIT,
        help="data of a car, in Mbit/s (default: %(default)s)",
    )
    size.add_argument(
        "--link",
        type=within(float, 0.1, 1e6),
        default=LINK_MBIT,
        metavar="MBIT",
        help="link between the machines, in Mbit/s (default: %(default)s)",
    )


def measure_folders(arguments: argparse.Namespace) -> int:
    """Measure each folder, show the progress, and save the figures."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # run the clean-up
    state, total_s = state_directory(), arguments.seconds * len(measuring.JOBS)
    for folder in (path.expanduser().resolve() for path in arguments.folder):
        print(f"{folder}: takes {span(total_s)}", flush=True)
        bar = Progress(sys.stderr, 100, time.monotonic(), "%")

        def show(share: float, bar: Progress = bar) -> None:
            bar.to(100 * share, time.monotonic())

        try:
            figures = measuring.measure(folder, arguments.seconds, [arguments.store], show)
        finally:
            bar.end()
        measuring.save(state, figures)
        print(f"{folder}: {figures_of(figures)}")
    return 0


def figures_of(measured: measuring.Measured) -> str:
    """Format the figures of a disk."""
    return (
        f"latency {measured.latency_s * 1e3:.2f} ms; MB/s: read {measured.read / MB:.0f}, "
        f"write {measured.write / MB:.0f}, synced {measured.append / MB:.0f}, "
        f"random {measured.random / MB:.0f}"
    )


def print_sizes(arguments: argparse.Namespace) -> int:
    """Print a table of all measured disks, fastest first."""
    demand = Demand(arguments.cars, arguments.hours, arguments.mbit, arguments.link)
    tiers = plan(demand, measuring.load(state_directory()))
    print(
        f"{counted(demand.cars, 'car')}, {demand.hours:g} h a day at {demand.mbit:g} Mbit/s: "
        f"{demand.daily / MB / 1000:.1f} GB a day"
    )
    for tier in tiers:
        print(f"\n{tier.measured.folder}: {figures_of(tier.measured)}")
        for line in tier.lines():
            print(f"  {line}")
    return 0

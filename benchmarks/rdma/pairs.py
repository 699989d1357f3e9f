"""Comparison of two ways to move the same bytes, in interleaved pairs: rows of both, and ratios.

A ratio is that of the two runs of a pair; a row has one for each pair.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.rig import say
from benchmarks.rows import RATIO, Aim, Row, row

PART = "pipes"
PAIRS = 7


@dataclass(frozen=True)
class Run:
    """Result of one transfer: the rate, and CPU seconds of both ends."""

    mb_per_s: float
    sender_s: float = 0.0
    receiver_s: float = 0.0


def no_note(_: Sequence[Run]) -> str:
    """Return "": the rates need no note."""
    return ""


def compare(
    name: str,
    ours: Callable[[], Run],
    theirs: Callable[[], Run],
    least: float | None,
    beside: str,
    pairs: int = PAIRS,
    note: Callable[[Sequence[Run]], str] = no_note,
) -> Iterator[Row]:
    """Measure both in turn, ABBA; yield a row for each, and one of the pairs' ratios."""
    say(f"{PART}: {name}")
    ours(), theirs()  # warm up caches and the CPU's clock
    runs: list[tuple[Run, Run]] = []
    for number in range(pairs):
        if number % 2:
            second, first = theirs(), ours()
        else:
            first, second = ours(), theirs()
        runs.append((first, second))
    our_runs = [first for first, _ in runs]
    yield row(PART, name, "MB/s", [run.mb_per_s for run in our_runs], note=note(our_runs))
    yield row(PART, f"{name}: {beside}", "MB/s", [two.mb_per_s for _, two in runs])
    ratios = [one.mb_per_s / two.mb_per_s for one, two in runs]
    yield row(
        PART,
        f"{name} / {beside}",
        RATIO,
        ratios,
        Aim(least=least),
        f"{min(ratios):.2f} to {max(ratios):.2f}",
    )

"""Results of a measurement: rows of the table, and curves for the plots. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

# Statistics that an aim can limit, in the order of the table's columns.
STATISTICS = ("median", "p95", "p99", "worst")


@dataclass(frozen=True)
class Aim:
    """Upper limits in the row's unit; None is no limit. `least`: a lower limit of the median,
    for rates."""

    median: float | None = None
    p95: float | None = None
    p99: float | None = None
    worst: float | None = None
    least: float | None = None

    def __str__(self) -> str:
        limits = [(name, getattr(self, name)) for name in STATISTICS]
        parts = [f"{name} <= {limit:g}" for name, limit in limits if limit is not None]
        if self.least is not None:
            parts.append(f"median >= {self.least:g}")
        return ", ".join(parts) or "-"


@dataclass(frozen=True)
class Row:
    """Row of the table; `values` are the samples it summarises, in `unit`."""

    part: str
    name: str
    unit: str
    values: tuple[float, ...]
    aim: Aim = field(default_factory=Aim)
    note: str = ""

    @property
    def median(self) -> float:
        """Median: half of the samples are at most this."""
        return statistics.median(self.values)

    def at(self, share: float) -> float:
        """Return the sample that `share` of all do not exceed (nearest rank)."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def p95(self) -> float:
        """Percentile 95: 95 % of the samples are at most this."""
        return self.at(0.95)

    @property
    def p99(self) -> float:
        """Percentile 99: 99 % of the samples are at most this."""
        return self.at(0.99)

    @property
    def worst(self) -> float:
        return max(self.values)

    @property
    def met(self) -> bool | None:
        """Return whether all limits are kept; None for a row that has no aim."""
        judged = [
            getattr(self, name) <= limit
            for name in STATISTICS
            if (limit := getattr(self.aim, name)) is not None
        ]
        if self.aim.least is not None:
            judged.append(self.median >= self.aim.least)
        return all(judged) if judged else None


def row(
    part: str, name: str, unit: str, values: Sequence[float], aim: Aim | None = None, note: str = ""
) -> Row:
    """Return a row of at least one sample; an empty series is an error, not a zero."""
    if not values:
        raise ValueError(f"{part}, {name}: nothing was measured")
    return Row(part, name, unit, tuple(values), aim or Aim(), note)


@dataclass(frozen=True)
class Curve:
    """Course over time for the plots: `y` in `unit` at `x_s` seconds."""

    part: str
    name: str
    unit: str
    x_s: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Note:
    """Skipped measurement with its reason, as a line of the table."""

    part: str
    text: str


Result = Row | Curve | Note

RATIO = "x"
"""Unit of one row's median divided by another's."""


def ratio(part: str, name: str, ours: Row, theirs: Row, aim: Aim | None = None) -> Row:
    """Return the ratio of our median to another's as a row."""
    return row(part, name, RATIO, [ours.median / theirs.median], aim)


NAME_WIDE = 43


def line(result: Row | Note) -> str:
    """Return a row as a line of text."""
    if isinstance(result, Note):
        return f"{result.part:8} left out: {result.text}"
    judged = {True: "met", False: "MISSED", None: ""}[result.met]
    digits = 2 if result.unit == RATIO else 1
    sums = (result.median, result.p95, result.p99, result.worst)
    values = sums if len(result.values) > 1 else sums[:1]
    columns = "".join(f" {value:8.{digits}f}" for value in values).ljust(9 * len(sums))
    aim = "" if result.met is None else f"({result.aim})"
    return (
        f"{result.part:8} {result.name:{NAME_WIDE}}{columns} {result.unit:7}"
        f"{len(result.values):6} {judged:7}{aim}{' ' if result.note else ''}{result.note}"
    ).rstrip()


HEAD = (
    f"{'part':8} {'':{NAME_WIDE}} {'median':>8} {'p95':>8} {'p99':>8} {'worst':>8}"
    f" {'unit':7}{'n':>6} {'':7}(aim)"
)

"""Results of a run: values and a verdict per check, to JSON and back. Pure."""

import statistics
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

Verdict = Literal["passed", "failed", "not run"]
RigKind = Literal["bench", "metal"]
STATUS_OK, STATUS_NOT_RUN, STATUS_FAILED = 0, 3, 4
"""Exit statuses. 1 and 2 mean that the suite itself failed."""


class Limit(Struct, frozen=True):
    """Largest permitted value, with its source."""

    most: float
    unit: str
    source: str

    def __str__(self) -> str:
        return f"{self.most:g} {self.unit}".rstrip()


class Measured(Struct, frozen=True):
    """Measurement of a check; `trace` is (seconds, level 0 to 1) of a pin.

    `waited_s`: time for which the bench was waiting for a core of a busy machine.
    """

    value: float
    trace: tuple[tuple[float, float], ...] = ()
    waited_s: float = 0.0


class Result(Struct, frozen=True):
    """All measurements of one check. `why`: the failure, or the reason why it was skipped."""

    name: str
    group: str
    proves: str
    limit: Limit
    verdict: Verdict
    values: tuple[float, ...] = ()
    why: str = ""
    trace: tuple[tuple[float, float], ...] = ()
    metal: bool = False
    missed: int = 0
    """Number of attempts that gave no value."""
    repeated: tuple[str, ...] = ()
    """Reasons for repeated measurements: another fault stopped the car or the pins."""

    @property
    def median(self) -> float | None:
        """Median of the values; None without values."""
        return statistics.median(self.values) if self.values else None

    @property
    def worst(self) -> float | None:
        """Largest value; None without values."""
        return max(self.values, default=None)


class Report(Struct, frozen=True):
    """Run of the whole suite. `where` is "bench" unless real pins were measured."""

    where: RigKind
    date: str
    version: str
    machine: str
    results: tuple[Result, ...]


def status(results: Iterable[Result]) -> int:
    """Return the exit status of the worst result. Checks that need metal or a person
    do not count as gaps."""
    verdicts = {
        result.verdict for result in results if not result.metal or result.verdict != "not run"
    }
    if "failed" in verdicts:
        return STATUS_FAILED
    return STATUS_NOT_RUN if "not run" in verdicts else STATUS_OK


def as_json(report: Report) -> bytes:
    """Return JSON for programs, and for comparison with the next report."""
    return msgspec.json.encode(report) + b"\n"


def from_json(data: bytes) -> Report:
    """Decode a report. Raises msgspec.DecodeError."""
    return msgspec.json.decode(data, type=Report)


def again(result: Result) -> str:
    """Return the number of repeated measurements and the reasons; "" without any."""
    count = len(result.repeated)
    return f"{count} repeated: {'; '.join(result.repeated)}" if count else ""


def summary(results: Iterable[Result]) -> str:
    """Return the counts per verdict: "12 passed, 1 failed, 9 not run"."""
    verdicts = [result.verdict for result in results]
    order: tuple[Verdict, ...] = ("passed", "failed", "not run")
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in order if verdict in verdicts]
    return ", ".join(counts) or "no check"

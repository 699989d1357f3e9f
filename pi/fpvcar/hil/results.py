"""What a run of the checks found: values, a verdict each, as JSON and back. Pure."""

import statistics
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

Verdict = Literal["passed", "failed", "not run"]
Where = Literal["bench", "metal"]
STATUS_OK, STATUS_NOT_RUN, STATUS_FAILED = 0, 3, 4
"""Exit statuses; 1 and 2 say that the suite itself could not."""


class Limit(Struct, frozen=True):
    """The most that a measured value may be, and who says so."""

    most: float
    unit: str
    source: str

    def __str__(self) -> str:
        return f"{self.most:g} {self.unit}".rstrip()


class Measured(Struct, frozen=True):
    """One measurement; `trace` is (seconds, level 0 to 1) of what a pin did.

    `waited_s`: for so long the bench waited meanwhile for a core of a busy machine.
    """

    value: float
    trace: tuple[tuple[float, float], ...] = ()
    waited_s: float = 0.0


class Result(Struct, frozen=True):
    """All measurements of one check. `why`: what failed, or why it was not run."""

    name: str
    group: str
    proves: str
    limit: Limit
    verdict: Verdict
    values: tuple[float, ...] = ()
    why: str = ""
    trace: tuple[tuple[float, float], ...] = ()
    metal: bool = False
    repeated: tuple[str, ...] = ()
    """Why measurements were made again: something else stopped the car, or the pins."""

    @property
    def median(self) -> float | None:
        """Of the values; None without one."""
        return statistics.median(self.values) if self.values else None

    @property
    def worst(self) -> float | None:
        """The largest value; None without one."""
        return max(self.values, default=None)


class Report(Struct, frozen=True):
    """One run of the suite. `where` is "bench" unless real pins were measured."""

    where: Where
    date: str
    version: str
    machine: str
    results: tuple[Result, ...]


def status(results: Iterable[Result]) -> int:
    """The exit status, by the worst; what waits for metal, or a person, is no gap."""
    verdicts = {
        one.verdict for one in results if not one.metal or one.verdict != "not run"
    }
    if "failed" in verdicts:
        return STATUS_FAILED
    return STATUS_NOT_RUN if "not run" in verdicts else STATUS_OK


def as_json(report: Report) -> bytes:
    """For programs, and for the next report to compare with."""
    return msgspec.json.encode(report) + b"\n"


def from_json(data: bytes) -> Report:
    """Raises msgspec.DecodeError for what is no report."""
    return msgspec.json.decode(data, type=Report)


def again(result: Result) -> str:
    """How often a measurement was made again, and why; "" of never."""
    count = len(result.repeated)
    return f"{count} repeated: {'; '.join(result.repeated)}" if count else ""


def summary(results: Iterable[Result]) -> str:
    """How many of what: "12 passed, 1 failed, 9 not run"."""
    found = [one.verdict for one in results]
    order: tuple[Verdict, ...] = ("passed", "failed", "not run")
    said = [f"{found.count(one)} {one}" for one in order if one in found]
    return ", ".join(said) or "no check"

"""Interface between the server and the recorder."""

from typing import Protocol

from fpvcar.wire import up
from fpvcar.wire.telemetry import Recording


class Recorder(Protocol):
    """Recorder as used by the server. Calls neither block nor raise."""

    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        """Record a `drive`: "fresh", "late", "stale", "old" or "not at the wheel".

        `seen_us` is the creation time of the message acknowledged by the wish; 0 if unknown.
        """

    def turn(self, name: str | None, why: str) -> None:
        """Record that `name` has the wheel; None if the seat is free."""

    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        """Record the measurements of a page."""

    def switch(self, on: bool, name: str) -> None:
        """Turn recording on or off on behalf of `name`."""

    def keep(self, name: str) -> None:
        """Keep the last minute on behalf of `name`."""

    def mark(self, text: str, name: str) -> None:
        """Mark this moment on behalf of `name`."""

    def status(self) -> Recording | None:
        """Return the state shown on pages; None without a recorder."""


class NoRecorder:
    """Recorder for a car without recording."""

    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        pass

    def turn(self, name: str | None, why: str) -> None:
        pass

    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        pass

    def switch(self, on: bool, name: str) -> None:
        pass

    def keep(self, name: str) -> None:
        pass

    def mark(self, text: str, name: str) -> None:
        pass

    def status(self) -> Recording | None:
        return None

"""What the server tells the recorder, and what it asks of it."""

from typing import Protocol

from fpvcar.wire import up
from fpvcar.wire.telemetry import Recording


class Recorder(Protocol):
    """A recorder as the server sees it. No call waits or raises."""

    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        """Records a `drive`: "fresh", "late", "stale", "old" or "not at the wheel".

        `seen_us`: when the message that it returns was made; 0 if unknown.
        """

    def turn(self, name: str | None, why: str) -> None:
        """`name` has the wheel now; None: nobody has."""

    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        """A page has measured."""

    def switch(self, on: bool, name: str) -> None:
        """`name` turns recording on or off."""

    def keep(self, name: str) -> None:
        """`name` keeps the last minute."""

    def mark(self, text: str, name: str) -> None:
        """`name` marks this moment."""

    def status(self) -> Recording | None:
        """What pages show of it; None where nothing records."""


class NoRecorder:
    """A Recorder that records nothing."""

    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        """Is dropped."""

    def turn(self, name: str | None, why: str) -> None:
        """Is dropped."""

    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        """Is dropped."""

    def switch(self, on: bool, name: str) -> None:
        """Does nothing: there is nothing to switch."""

    def keep(self, name: str) -> None:
        """Does nothing: there is no minute to keep."""

    def mark(self, text: str, name: str) -> None:
        """Is dropped."""

    def status(self) -> Recording | None:
        """None: nothing records."""
        return None

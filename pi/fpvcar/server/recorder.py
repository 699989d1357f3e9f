"""What the hub tells the recorder of, and what it may ask of it."""

from typing import Protocol

from fpvcar import status
from fpvcar.wire import up


class Book(Protocol):
    """feed.Feed, or NoBook. Nothing here waits or raises."""

    def wish(self, drive: up.Drive, name: str, verdict: str) -> None:
        """A `drive` came: "fresh", "stale", "old" or "not at the wheel"."""

    def turn(self, name: str | None, why: str) -> None:
        """Who is at the wheel now."""

    def latency(self, name: str, drives: bool, report: up.Report) -> None:
        """A page has measured."""

    def switch(self, on: bool, name: str) -> None:
        """Record, or do not."""

    def keep(self, name: str) -> None:
        """Keep the last minute."""

    def mark(self, text: str, name: str) -> None:
        """Remember this moment."""

    def told(self) -> status.Recording | None:
        """For the page; None where nothing records."""


class NoBook:
    """Nobody writes anything down."""

    def wish(self, drive: up.Drive, name: str, verdict: str) -> None:
        """As Book says."""

    def turn(self, name: str | None, why: str) -> None:
        """As Book says."""

    def latency(self, name: str, drives: bool, report: up.Report) -> None:
        """As Book says."""

    def switch(self, on: bool, name: str) -> None:
        """As Book says."""

    def keep(self, name: str) -> None:
        """As Book says."""

    def mark(self, text: str, name: str) -> None:
        """As Book says."""

    def told(self) -> status.Recording | None:
        """As Book says."""
        return None

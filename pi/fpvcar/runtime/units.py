"""Unit conversions, and numbers with their nouns."""

SECOND_NS = 1_000_000_000
SECOND_US = 1_000_000
MB = 1_000_000
"""Decimal megabyte, as in cards, profiles and the pages."""
MIB = 1 << 20
"""Binary megabyte, as in buffer sizes."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in English: "1 file", "2 files"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"

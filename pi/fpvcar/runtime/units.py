"""Units: how many of the small one make the large one; a number with its noun."""

SECOND_NS = 1_000_000_000
SECOND_US = 1_000_000
MB = 1_000_000
"""Bytes, as cards, profiles and the pages count them."""
MIB = 1 << 20
"""Bytes, as buffers are sized."""


def counted(count: int, noun: str) -> str:
    """In English: "1 file", "2 files"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"

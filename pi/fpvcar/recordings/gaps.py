"""Finds what a recording lacks by the numbers of its messages. Pure.

The recorder numbers the messages of a topic one after the other, so a gap tells what
was lost there. What is lost at the beginning or the end of a file leaves no gap: there
the counts of the summary tell.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fpvcar.mcap import parsing, records


class Gap(NamedTuple):
    """Messages of a channel that are missing, between these times (UTC); both are 0 for
    the beginning or the end of the file."""

    number: int
    lost: int
    after_ns: int = 0
    before_ns: int = 0


class Sequences:
    """Follows the numbers of all messages, in the order in which they stand there."""

    def __init__(self) -> None:
        self.gaps: list[Gap] = []
        self._last: dict[int, tuple[int, int]] = {}

    def note(self, body: memoryview) -> None:
        """Takes the next message's body. A number that does not grow says nothing."""
        number = int.from_bytes(body[:2], "little")
        sequence = int.from_bytes(body[2:6], "little")
        log_ns = int.from_bytes(body[6:14], "little")
        last = self._last.get(number)
        if last is not None and sequence > last[0] + 1:
            self.gaps.append(Gap(number, sequence - last[0] - 1, last[1], log_ns))
        self._last[number] = sequence, log_ns

    def all(self, summary: Iterable[tuple[int, bytes]], found: Mapping[int, int]) -> Iterator[Gap]:
        """Yields the gaps, and what the summary counts beyond them; `found` are the
        messages that are there, by channel."""
        yield from self.gaps
        known = Counter[int]()
        for gap in self.gaps:
            known[gap.number] += gap.lost
        for opcode, body in summary:
            if opcode == records.STATISTICS:
                for number, count in parsing.take_counts(body).messages.items():
                    more = count - found.get(number, 0) - known[number]
                    if more > 0:
                        yield Gap(number, more)

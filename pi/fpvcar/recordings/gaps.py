"""Detection of missing messages by their sequence numbers. Pure.

The recorder numbers the messages of a topic consecutively, so a gap gives the number of lost
messages. Losses at the beginning or end of a file leave no gap; the summary's counts reveal them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fpvcar.recordings.mcap import parsing, records


class Gap(NamedTuple):
    """Missing messages of a channel between two UTC times.

    Both times are 0 for a loss at the beginning or end of the file.
    """

    number: int
    lost: int
    after_ns: int = 0
    before_ns: int = 0


class GapDetector:
    """Sequence numbers of all messages, in stored order."""

    def __init__(self) -> None:
        self.gaps: list[Gap] = []
        self._last: dict[int, tuple[int, int]] = {}

    def note(self, body: memoryview) -> None:
        """Process the next message's body. Numbers that do not increase are ignored."""
        number = int.from_bytes(body[:2], "little")
        sequence = int.from_bytes(body[2:6], "little")
        log_ns = int.from_bytes(body[6:14], "little")
        last = self._last.get(number)
        if last is not None and sequence > last[0] + 1:
            self.gaps.append(Gap(number, sequence - last[0] - 1, last[1], log_ns))
        self._last[number] = sequence, log_ns

    def all(
        self, summary: Iterable[tuple[int, bytes]], received: Mapping[int, int]
    ) -> Iterator[Gap]:
        """Yield the gaps, and further losses according to the summary's counts.

        `received` is the number of messages present by channel.
        """
        yield from self.gaps
        in_gaps = Counter[int]()
        for gap in self.gaps:
            in_gaps[gap.number] += gap.lost
        for opcode, body in summary:
            if opcode == records.STATISTICS:
                for number, count in parsing.take_counts(body).messages.items():
                    lost = count - received.get(number, 0) - in_gaps[number]
                    if lost > 0:
                        yield Gap(number, lost)

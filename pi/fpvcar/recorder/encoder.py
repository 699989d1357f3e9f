"""Makes bytes of what waits between the event loop and the recorder's thread.

The loop only queues what it knows. Between two runs of the gate its caches are cold, so
that the same work costs three times as much there as in one go in the thread.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec import Struct

from fpvcar.mcap import records
from fpvcar.recorder.writer import Item
from fpvcar.recordings import messages

Message = messages.Message | Callable[[], messages.Message]
"""A message, or what makes one, in the thread, of things that do not change any
more."""
SIZE = 512
"""What any message but a picture counts for while it waits, bytes."""
TALLIED = (messages.Step, messages.Turn)
"""What a Tally takes: see recordings/library/driver_spans.py."""
log = logging.getLogger("fpvcar.recorder")


class Begin(NamedTuple):
    """What follows belongs to another recording. `rolling`: only its last minute stays;
    `idle`: nothing of it is written."""

    about: messages.About
    rolling: bool
    idle: bool


class Keep(NamedTuple):
    """The minute before this moment, CLOCK_MONOTONIC, is to stay."""

    now_ns: int


class Rest(NamedTuple):
    """The car has come to rest: the file of this moment, CLOCK_MONOTONIC, may end."""

    now_ns: int


class Noted(Struct, frozen=True, gc=False):
    """A message with its times, UTC. `size` is what it counts for while it waits."""

    number: int
    sequence: int
    log_ns: int
    publish_ns: int
    message: Message
    size: int = SIZE
    key: bool = False


class Encoder:
    """Encodes in the thread what was noted; leaves out what cannot be encoded."""

    def __init__(self) -> None:
        self._broken: set[int] = set()

    def items(self, noted: Iterable[Noted]) -> list[Item]:
        """Encodes them; returns what can be written."""
        found = []
        for one in noted:
            message, data = self._encoded(one)
            if data is not None:
                record = records.message(one.number, one.sequence, one.log_ns, one.publish_ns, data)
                told = message if isinstance(message, TALLIED) else None
                found.append(Item(one.number, one.log_ns, record, one.key, told))
        return found

    def _encoded(self, one: Noted) -> tuple[messages.Message | None, bytes | None]:
        try:
            message = one.message() if callable(one.message) else one.message
            return message, messages.encode(message)
        except Exception:  # a bug: the others are written all the same
            if one.number not in self._broken:
                self._broken.add(one.number)
                log.exception("not recorded: channel %d", one.number)
            return None, None

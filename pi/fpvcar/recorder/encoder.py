"""Encoding of queued messages in the recorder's thread.

The event loop only queues its values. Between two gate runs the loop's caches are cold, so the same
encoding costs three times as much there as in one batch in the thread.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec import Struct

from fpvcar.recorder.writer import EncodedMessage
from fpvcar.recordings import codec, messages
from fpvcar.recordings.mcap import records

Message = messages.Message | Callable[[], messages.Message]
"""Message, or a function that builds one in the thread from immutable values."""
SIZE = 512
"""Queue space counted for any message except a picture, in bytes."""
TALLIED = (messages.Step, messages.Turn)
"""Messages needed by a Tally: see library/driver_spans.py."""
log = logging.getLogger("fpvcar.recorder")


class BeginCommand(NamedTuple):
    """Start of another recording for all following messages.

    `rolling`: only its last minute is kept. `idle`: no data of it is written.
    """

    about: messages.About
    rolling: bool
    idle: bool


class KeepCommand(NamedTuple):
    """Request to keep the minute before this CLOCK_MONOTONIC time."""

    now_ns: int


class RestCommand(NamedTuple):
    """Request to end the file, as the car stopped at this CLOCK_MONOTONIC time."""

    now_ns: int


class QueuedMessage(Struct, frozen=True, gc=False):
    """Message with its UTC times; `size` is its share of the queue space in bytes."""

    number: int
    sequence: int
    log_ns: int
    publish_ns: int
    message: Message
    size: int = SIZE
    key: bool = False


class Encoder:
    """Encoder of queued messages. Skips messages that cannot be encoded."""

    def __init__(self) -> None:
        self._broken: set[int] = set()

    def items(self, queue: Iterable[QueuedMessage]) -> list[EncodedMessage]:
        """Encode the messages; return only the valid ones."""
        items = []
        for queued in queue:
            message, data = self._encoded(queued)
            if data is not None:
                record = records.message(
                    queued.number, queued.sequence, queued.log_ns, queued.publish_ns, data
                )
                source = message if isinstance(message, TALLIED) else None
                items.append(
                    EncodedMessage(queued.number, queued.log_ns, record, queued.key, source)
                )
        return items

    def _encoded(self, queued: QueuedMessage) -> tuple[messages.Message | None, bytes | None]:
        try:
            message = queued.message() if callable(queued.message) else queued.message
            return message, codec.encode(message)
        except Exception:  # a bug: still write the other messages
            if queued.number not in self._broken:
                self._broken.add(queued.number)
                log.exception("not recorded: channel %d", queued.number)
            return None, None

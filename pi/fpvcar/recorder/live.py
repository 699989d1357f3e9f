"""Live copy of the messages that the recorder gets, as an MCAP file without chunks and end.

    magic, header, schemas, channels, message, message, ...

Topics, encodings and times are those of the files, so that a program shows both in the same way.
"""

from fpvcar import __version__
from fpvcar.recorder.encoder import Encoder, QueuedMessage
from fpvcar.recorder.writer import LIBRARY, Catalogue
from fpvcar.recordings import messages
from fpvcar.recordings.mcap import records
from fpvcar.runtime.units import MB

MOST = 4 * MB
"""Limit of waiting bytes; then everything that waits is dropped."""


class Tap:
    """Queue of one reader, on the event loop."""

    def __init__(self, catalogue: Catalogue) -> None:
        head = records.MAGIC + records.header(f"{LIBRARY} {__version__}")
        self.head = head + catalogue.schemas + catalogue.channels
        """Bytes that come first."""
        self.dropped = 0
        """Messages that a slow reader has missed."""
        self._encoder, self._queue = Encoder(), list[QueuedMessage]()
        self._bytes, self._to_key = 0, True

    def put(self, queued: QueuedMessage) -> None:
        """Take a message. Pictures begin with a key frame, also after a loss."""
        if isinstance(queued.message, messages.Picture):
            self._to_key = self._to_key and not queued.key
            if self._to_key:
                return
        if self._bytes + queued.size > MOST:
            self.dropped += len(self._queue) + 1
            self._queue.clear()
            self._bytes, self._to_key = 0, True
            return
        self._queue.append(queued)
        self._bytes += queued.size

    def take(self) -> bytes:
        """Return the records of all waiting messages."""
        queue, self._queue, self._bytes = self._queue, [], 0
        return b"".join(item.record for item in self._encoder.items(queue))

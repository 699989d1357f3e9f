"""What /metrics and /healthz say of the recorder."""

from collections.abc import Callable, Iterator

from fpvcar import status
from fpvcar.recordings.names import MEGA
from fpvcar.server.metrics import Metric, counter, gauge

Told = Callable[[], status.Recording]


def metrics(told: Told) -> Iterator[Metric]:
    """The recorder in figures."""
    now = told()
    free = None if now.free_mb is None else now.free_mb * MEGA
    yield gauge("recording_on", "1 while a drive is recorded.", now.on)
    yield gauge("recording_up", "1 while the card takes what is recorded.",
                now.state == "ok")  # fmt: skip
    yield gauge("recording_free_bytes", "Room until something must go.", free)
    yield counter("recording_dropped_total", "Messages that it did not take.",
                  now.dropped)  # fmt: skip


def faults(told: Told) -> Iterator[str]:
    """A sentence, if nothing can be recorded."""
    now = told()
    if now.on and now.state != "ok":
        yield f"nothing is recorded: {now.state}"

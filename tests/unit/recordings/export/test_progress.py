"""Progress of long work on a terminal and in a log."""

import io
from collections.abc import Iterable

import pytest

from fpvcar.recordings.export.progress import Progress, span


class Terminal(io.StringIO):
    """Stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, done: Iterable[float], unit: str = "MB") -> str:
    progress = Progress(stream, 200e6, 10.0, unit)
    for number, size in enumerate(done, 1):
        progress.to(size, 10.0 + number)
    progress.end()
    return stream.getvalue()


def test_terminal_shows_percent_rate_and_time_left() -> None:
    seen = told(Terminal(), [50e6, 100e6, 200e6])
    assert "[########......................]  25%  50.0 MB/s, 3 s left" in seen
    assert " 50%  50.0 MB/s, 2 s left" in seen
    assert "100%  66.7 MB/s, 0 s left" in seen
    assert seen.endswith(" \r")


def test_rate_has_the_given_unit() -> None:
    assert "20000000 sessions/s" in told(Terminal(), [2e7], "sessions")


def test_log_has_a_line_per_30_seconds() -> None:
    assert told(io.StringIO(), [50e6, 200e6]) == ""
    lines = told(io.StringIO(), [x * 2e6 for x in range(1, 65)]).splitlines()
    assert lines == ["30%  2.0 MB/s, 1:10 min left", "60%  2.0 MB/s, 40 s left"]


def test_shorter_line_overwrites_the_longer_one_before() -> None:
    stream = Terminal()
    progress = Progress(stream, 1e12, 0.0)
    progress.to(1e6, 1.0)
    progress.to(9e11, 2.0)
    first, second = stream.getvalue().split("\r")[1:]
    assert len(second) == len(first)


def test_message_is_printed_above_the_bar() -> None:
    stream = Terminal()
    progress = Progress(stream, 10, 0.0)
    progress.to(5, 1.0)
    progress.say("one is bad")
    assert stream.getvalue().endswith(" \rone is bad\n")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1:00 min"),
        (185, "3:05 min"),
        (3599.7, "1:00 h"),
        (7500, "2:05 h"),
    ],
)
def test_time_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words

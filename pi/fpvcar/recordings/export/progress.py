"""Progress display of long tasks: a bar on a terminal, otherwise occasional log lines."""

from typing import TextIO

WIDTH = 30
TERMINAL_S, ELSEWHERE_S = 0.1, 30.0
"""Interval of updates on a terminal, and of lines in a log."""


def words_of(done: float, whole: float, rate: float, unit: str = "MB") -> str:
    """Format share, rate per second and time left. `unit` "MB" means the figures are bytes."""
    scale, digits = (1e6, 1) if unit == "MB" else (1.0, 0)
    left = f", {span(max(whole - done, 0.0) / rate)} left" if rate > 0.0 else ""
    return f"{done / whole:4.0%}  {rate / scale:.{digits}f} {unit}/s{left}"


def bar_of(done: float, whole: float) -> str:
    """Format a bar such as [####......]."""
    filled = "#" * round(min(done / whole, 1.0) * WIDTH)
    return f"[{filled.ljust(WIDTH, '.')}]"


def span(seconds: float) -> str:
    """Format a duration as 12 s, 3:05 min or 2:05 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    many, few, unit = (
        (whole // 60, whole % 60, "min") if whole < 3600 else (whole // 3600, whole // 60 % 60, "h")
    )
    return f"{many}:{few:02d} {unit}"


class Progress:
    """Progress display of one task. The time is passed as an argument."""

    def __init__(self, stream: TextIO, whole: float, now_s: float, unit: str = "MB") -> None:
        self._stream, self._whole, self._unit = stream, max(whole, 1), unit
        self._began_s = now_s
        self._terminal = stream.isatty()
        # Short tasks write no line to a log.
        self._drawn_s = now_s - TERMINAL_S if self._terminal else now_s
        self._length = 0

    def to(self, done: float, now_s: float) -> None:
        """Update the amount done; redraw if the interval has elapsed."""
        every_s = TERMINAL_S if self._terminal else ELSEWHERE_S
        ended = self._terminal and done >= self._whole
        if now_s - self._drawn_s < every_s and not ended:
            return
        self._drawn_s = now_s
        done = min(done, self._whole)
        rate = done / max(now_s - self._began_s, 1e-3)
        words = words_of(done, self._whole, rate, self._unit)
        if self._terminal:
            line = f"  {bar_of(done, self._whole)} {words} "
            self._stream.write("\r" + line.ljust(self._length))
            self._length = len(line)
        else:
            self._stream.write(f"{words.strip()}\n")
        self._stream.flush()

    def say(self, words: str) -> None:
        """Print a line above the bar."""
        self.end()
        print(words, file=self._stream)

    def end(self) -> None:
        """Clear the bar from the terminal."""
        if self._length:
            self._stream.write("\r" + " " * self._length + "\r")
            self._stream.flush()
            self._length = 0

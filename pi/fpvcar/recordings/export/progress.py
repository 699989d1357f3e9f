"""Progress display of long tasks: a bar on a terminal, otherwise occasional log lines."""

from typing import TextIO

WIDTH = 30
TERMINAL_S, ELSEWHERE_S = 0.1, 30.0
"""Interval of updates on a terminal, and of lines in a log."""


def progress_text(done: float, total: float, rate: float, unit: str = "MB") -> str:
    """Format share, rate per second and time left. `unit` "MB" means the figures are bytes."""
    scale, digits = (1e6, 1) if unit == "MB" else (1.0, 0)
    remaining = f", {span(max(total - done, 0.0) / rate)} left" if rate > 0.0 else ""
    return f"{done / total:4.0%}  {rate / scale:.{digits}f} {unit}/s{remaining}"


def bar_of(done: float, total: float) -> str:
    """Format a bar such as [####......]."""
    filled = "#" * round(min(done / total, 1.0) * WIDTH)
    return f"[{filled.ljust(WIDTH, '.')}]"


def span(seconds: float) -> str:
    """Format a duration as 12 s, 3:05 min or 2:05 h."""
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    large, small, unit = (
        (total // 60, total % 60, "min") if total < 3600 else (total // 3600, total // 60 % 60, "h")
    )
    return f"{large}:{small:02d} {unit}"


class Progress:
    """Progress display of one task. The time is passed as an argument."""

    def __init__(self, stream: TextIO, total: float, now_s: float, unit: str = "MB") -> None:
        self._stream, self._total, self._unit = stream, max(total, 1), unit
        self._began_s = now_s
        self._terminal = stream.isatty()
        # Short tasks write no line to a log.
        self._drawn_s = now_s - TERMINAL_S if self._terminal else now_s
        self._length = 0

    def to(self, done: float, now_s: float) -> None:
        """Update the amount done; redraw if the interval has elapsed."""
        every_s = TERMINAL_S if self._terminal else ELSEWHERE_S
        ended = self._terminal and done >= self._total
        if now_s - self._drawn_s < every_s and not ended:
            return
        self._drawn_s = now_s
        done = min(done, self._total)
        rate = done / max(now_s - self._began_s, 1e-3)
        text = progress_text(done, self._total, rate, self._unit)
        if self._terminal:
            line = f"  {bar_of(done, self._total)} {text} "
            self._stream.write("\r" + line.ljust(self._length))
            self._length = len(line)
        else:
            self._stream.write(f"{text.strip()}\n")
        self._stream.flush()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.end()
        print(text, file=self._stream)

    def end(self) -> None:
        """Clear the bar from the terminal."""
        if self._length:
            self._stream.write("\r" + " " * self._length + "\r")
            self._stream.flush()
            self._length = 0

"""Plots: pin levels over time and the spread of values as inline SVG, a histogram as text. Pure."""

from collections import Counter
from collections.abc import Sequence

from fpvcar.hil.results import Result

WIDTH, HEIGHT, EDGE = 220, 56, 6
INK, LIMIT, BEFORE = "#1a6fd4", "#d03020", "#909090"
Points = Sequence[tuple[float, float]]
MANY, BINS, BAR = 20, 16, 40
"""Values from which a histogram is drawn, its most lines, and the length of its longest bar."""


def trace(result: Result) -> str:
    """Plot a pin's level over time. For a stop the failure is at 0 and the limit is
    marked. Returns "" for a result without a trace."""
    points = result.trace
    if len(points) < 2:
        return ""
    stop = result.group == "stops"
    limit_s = result.limit.most
    begin, end = points[0][0], points[-1][0]
    if stop:
        begin, end = -0.1 * limit_s, max(1.2 * limit_s, result.worst or 0.0)
    span = (end - begin) or 1.0

    def at(x: float) -> float:
        share = min(max((x - begin) / span, 0.0), 1.0)
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)

    marks = _mark(at(0.0), BEFORE, "failure") + _mark(at(limit_s), LIMIT, "limit")
    label = f"0 to {end:.3g} s" if stop else f"{1e3 * span:.3g} ms"
    return _svg((marks if stop else "") + _steps(points, at), label)


def _steps(points: Points, at: object) -> str:
    assert callable(at)
    way, top = [], max(level for _, level in points) or 1.0
    way.append(f"M{at(points[0][0])} {_height(points[0][1] / top)}")
    for x, after in points[1:]:
        way.append(f"H{at(x)}V{_height(after / top)}")
    way.append(f"H{WIDTH - EDGE}")
    return f'<path d="{"".join(way)}" fill="none" stroke="{INK}" stroke-width="1.5"/>'


def _height(level: float) -> float:
    return round(HEIGHT - 16 - min(max(level, 0.0), 1.0) * (HEIGHT - 24), 1)


def values(result: Result, before: Result | None = None) -> str:
    """Plot each value as a dot below the dots of the last report, with a line at the
    limit. Returns "" without values."""
    if not result.values:
        return ""
    last = before.values if before is not None else ()
    most = max(*result.values, *last, result.limit.most) * 1.1 or 1.0

    def at(value: float) -> float:
        return round(EDGE + max(value, 0.0) / most * (WIDTH - 2 * EDGE), 1)

    dots = "".join(
        f'<circle cx="{at(value)}" cy="{y}" r="3" fill="{colour}" fill-opacity="0.6"/>'
        for y, colour, shown in ((32, INK, result.values), (14, BEFORE, last))
        for value in shown
    )
    mark = _mark(at(result.limit.most), LIMIT, "limit")
    return _svg(mark + dots, f"0 to {most:.3g} {result.limit.unit}")


def histogram(result: Result) -> str:
    """Return the spread of many values as lines of text; "" for fewer than MANY."""
    if len(result.values) < MANY:
        return ""
    scale, unit = (1e3, "ms") if result.limit.unit == "s" else (1.0, result.limit.unit)
    shown = [scale * value for value in result.values]
    span = max(shown) - min(shown)
    widths = (step * 10.0**power for power in range(-3, 9) for step in (1, 2, 5))
    width = next(width for width in widths if span < (BINS - 1) * width)
    counts = Counter(int(value // width) for value in shown)
    lines = [
        f"{number * width:10.6g} {unit}  {'#' * -(-BAR * counts[number] // max(counts.values()))}"
        f" {counts[number]}"
        for number in range(min(counts), max(counts) + 1)
    ]
    figures = [
        f"{name} {percentile(shown, percent):.4g} {unit}"
        for name, percent in (("median", 50), ("p95", 95), ("p99", 99))
    ]
    return "\n".join([*lines, f"{', '.join(figures)} of {len(shown)}; {result.missed} missed"])


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the least of the values that so many percent of them do not exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


def _mark(x: float, colour: str, title: str) -> str:
    return (
        f'<line x1="{x}" x2="{x}" y1="4" y2="{HEIGHT - 14}" stroke="{colour}" '
        f'stroke-dasharray="3 2"><title>{title}</title></line>'
    )


def _svg(inside: str, label: str) -> str:
    base = HEIGHT - 14
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img"><title>{label}</title>'
        f'<line x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{base}" y2="{base}" '
        f'stroke="#c0c0c0"/>{inside}'
        f'<text x="{WIDTH - EDGE}" y="{HEIGHT - 2}" text-anchor="end" font-size="10" '
        f'fill="#606060">{label}</text></svg>'
    )

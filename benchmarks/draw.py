"""Plots of a benchmark's results: `python -m benchmarks.draw`.

    bench-latency.png    age of the picture on the screen, compared with the rivals
    bench-stops.png      from each failure to motors off, and the design's limit

The background is white, for legibility on a dark page. The same figures give the same bytes.
"""

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

from matplotlib.figure import Figure

Figures = dict[str, Any]
WIDE_IN = 8.0
"""Width in inches: at 100 dots per inch 800 pixels, a README's width for a picture."""
OURS = ("#0072b2", "#009e73", "#56b4e9", "#cc79a7", "#6a3d9a", "#1b1b1b")
THEIRS = ("#d55e00", "#e69f00", "#8c510a", "#7f7f7f", "#b2182b", "#f4a582", "#bf9b30", "#4d4d4d")
LIMIT = "#c00000"
STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
}
STEPS = 200
BESIDE = "beside: "
LATENCY_MOST_MS = 100.0
TICKS_MOST = 60
"""Number of runs above which the plot shows quantiles, from the best to the worst."""


def quantiles(values: Sequence[float], steps: int = STEPS) -> list[float]:
    """Return the samples that 0, 1, ... `steps` parts of all do not exceed."""
    ordered = sorted(values)
    end = len(ordered) - 1
    return [ordered[round(part * end / steps)] for part in range(steps + 1)]


def spread(count: int, half: float = 0.28) -> list[float]:
    """Return offsets that spread `count` ticks across a strip; the same for each run."""
    if count == 1:
        return [0.0]
    golden = 0.618033988749895
    return [half * (2 * (number * golden % 1.0) - 1) for number in range(count)]


def ticks(values: Sequence[float], at: float) -> tuple[list[float], list[float]]:
    """Return a short tick for each value, as one path: markers need ten times the bytes."""
    xs, ys = [], []
    for value, aside in zip(values, spread(len(values)), strict=True):
        xs += [value, value, math.nan]
        ys += [at + aside - 0.06, at + aside + 0.06, math.nan]
    return xs, ys


def is_age(result: Figures) -> bool:
    """Return whether this row is a distribution of picture ages."""
    name = result["name"]
    named = name.startswith(("path ", "whole ", BESIDE)) or name.endswith("capture to glass")
    return (
        result["part"] == "video"
        and result["unit"] == "ms"
        and named
        and (len(result["values"]) > 1 and "between pictures" not in name)
    )


def latency(figure: Figure, figures: Figures) -> bool:
    """Plot shares of pictures over their age. Returns False if there are no ages."""
    rows = [result for result in figures["rows"] if is_age(result)]
    if not rows:
        return False
    axes = figure.subplots()
    colours = {True: itertools.cycle(THEIRS), False: itertools.cycle(OURS)}
    for result in sorted(rows, key=lambda result: float(result["median"])):
        beside = result["name"].startswith(BESIDE)
        axes.plot(
            quantiles(result["values"]),
            [part * 100 / STEPS for part in range(STEPS + 1)],
            color=next(colours[beside]),
            linestyle="--" if beside else "-",
            linewidth=2,
            label=f"{result['median']:5.1f} ms  {result['name'].removeprefix(BESIDE)}",
        )
    axes.set_xlim(0, LATENCY_MOST_MS)
    axes.set_ylim(0, 100)
    axes.set_xlabel("capture to glass, ms (dashed: other ways, the same camera)")
    axes.set_ylabel("% of pictures at most so old")
    axes.legend(
        title="median",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        frameon=False,
        fontsize=9,
        ncols=2,
    )
    return True


def stops(figure: Figure, figures: Figures) -> bool:
    """Plot a tick for each stop, and the limit. Returns False if there are no stops."""
    rows = [
        result
        for result in figures["rows"]
        if result["part"] == "stop" and result["unit"] == "ms" and result["aim"]["worst"]
    ]
    if not rows:
        return False
    figure.set_size_inches(WIDE_IN, 1.7 + 0.36 * len(rows))
    axes = figure.subplots()
    for at, result in enumerate(rows):
        values, limit = result["values"], result["aim"]["worst"]
        if len(values) > TICKS_MOST:
            values = quantiles(values, TICKS_MOST - 1)
        xs, ys = ticks(values, at)
        axes.plot(xs, ys, color=OURS[0], linewidth=2, alpha=0.7)
        axes.plot([limit, limit], [at - 0.42, at + 0.42], color=LIMIT, linewidth=2.5)
    most = max(max(result["worst"], result["aim"]["worst"]) for result in rows)
    axes.set_xlim(0, most * 1.05)
    axes.set_yticks(range(len(rows)), [f"{result['name']}" for result in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("from the failure to motors off, ms (blue: runs, red: the limit)")
    return True


TARGET = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WHERE = "emulated, on a PC"
PICTURES: dict[str, tuple[str, Callable[[Figure, Figures], bool]]] = {
    "bench-latency.png": ("Age of a picture on the screen", latency),
    "bench-stops.png": ("Time from a failure to motors off", stops),
}


def everything(figures: Figures, directory: Path) -> list[Path]:
    """Draw each plot that has figures; return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, (title, draw) in PICTURES.items():
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(WIDE_IN, 5.2), dpi=100, layout="constrained")
            if not draw(figure, figures):
                continue
            origin = f"{figures['machine']}, {figures['date']}"
            figure.suptitle(f"{title}: {WHERE}", fontsize=13, fontweight="bold")
            figure.supxlabel(origin, fontsize=7.5, color="#666666")
            path = directory / name
            figure.savefig(path, format="png", metadata={"Software": None, "Title": origin})
        drawn.append(path)
    return drawn


def main() -> int:
    """Draw the results of `make benchmark`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.draw", description=main.__doc__)
    parser.add_argument("json", type=Path, nargs="?", default=Path("benchmark.json"))
    parser.add_argument("directory", type=Path, nargs="?", default=TARGET)
    options = parser.parse_args()
    figures = json.loads(options.json.read_text(encoding="utf-8"))
    for path in everything(figures, options.directory):
        print(f"drawn {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

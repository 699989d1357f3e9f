"""Page of the station's tiers: a picture of the storage pyramid, and when each tier is full.

In English only, like the same figures of `fpvstation size`.
"""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from fpvcar.runtime.units import MB
from fpvstation.errors import StationError
from fpvstation.sizing.measure import load
from fpvstation.sizing.plan import CAR_MBIT, LINK_MBIT, Demand, Tier, plan

FIELDS = (
    ("cars", "Cars", "1", 1.0, 100_000.0),
    ("hours", "Hours a day, each", "1", 0.01, 24.0),
    ("mbit", "Mbit/s of a car", f"{CAR_MBIT:g}", 0.01, 1000.0),
    ("link", "Mbit/s of the link", f"{LINK_MBIT:g}", 0.1, 1e6),
)
"""Name, label, default and limits of each field."""
COLOURS = ("#1c6b3e", "#1d5f78", "#5b4a8a", "#74492c")
WIDTH, LAYER, TOP, STEP = 360, 104, 190, 50
"""Sizes of the picture: height of a layer, width of the first one, and growth per layer."""
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<title>How much room do I need?</title>
<link rel="stylesheet" href="recordings/recordings.css">
<link rel="stylesheet" href="recordings/light.css" media="(prefers-color-scheme: light)">
<style>
main {{ display: block; max-width: 760px; padding: 16px var(--pad); }}
form {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
align-items: end; }}
label {{ display: grid; gap: 4px; }}
input {{ font: inherit; min-height: 48px; width: 100%; padding: 8px; border-radius: 12px;
border: 1px solid var(--soft); background: var(--plate); color: var(--text); }}
svg {{ width: 100%; max-width: 560px; margin: 16px auto; stroke: none; }}
svg text {{ fill: #fff; text-anchor: middle; font: 12px system-ui, sans-serif; }}
svg .name {{ font-weight: 700; }}
li {{ margin-top: 12px; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<header class="bar"><a class="button" href="./">Recordings</a><h1>Room</h1></header>
<main><form>{fields}<button class="primary">Compute</button></form>{content}</main>
</body>
</html>
"""


def page(query: Mapping[str, str], state: Path) -> str:
    """Return the page for the values of its form. Raises OSError."""
    values = {name: query.get(name, default) for name, _, default, _, _ in FIELDS}
    fields = "".join(
        f'<label>{label}<input name="{name}" inputmode="decimal" '
        f'value="{html.escape(values[name][:20])}"></label>'
        for name, label, *_ in FIELDS
    )
    try:
        numbers = [_number(values[name], label, *rest) for name, label, _, *rest in FIELDS]
        demand = Demand(int(numbers[0]), *numbers[1:])
        tiers = plan(demand, load(state))
    except StationError as fault:
        content = f'<p class="fault" role="alert">{html.escape(str(fault))}</p>'
    else:
        daily = f"<p>{demand.daily / MB / 1000:.1f} GB a day.</p>"
        content = f"{daily}{pyramid(tiers)}<ul>{''.join(map(_row, tiers))}</ul>"
    return PAGE.format(fields=fields, content=content)


def _number(text: str, label: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise StationError(f'{label}: "{text[:20]}" refused: expected {least:g} to {most:g}')
    return number


def pyramid(tiers: Sequence[Tier]) -> str:
    """Return an SVG of the tiers, the fastest at the top."""
    parts = []
    for number, tier in enumerate(tiers):
        top, bottom = (min(TOP + STEP * step, WIDTH) / 2 for step in (number, number + 1))
        centre, y = WIDTH / 2, LAYER * number
        corners = (
            (centre - top, y),
            (centre + top, y),
            (centre + bottom, y + LAYER - 3),
            (centre - bottom, y + LAYER - 3),
        )
        points = " ".join(f"{x:g},{height:g}" for x, height in corners)
        parts.append(f'<polygon points="{points}" fill="{COLOURS[number % len(COLOURS)]}"/>')
        for line, text in enumerate(_labels(tier)):
            parts.append(
                f'<text x="{centre:g}" y="{y + 20 + 18 * line}"{" class=name" * (not line)}>'
                f"{html.escape(text)}</text>"
            )
    height = LAYER * len(tiers)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Storage pyramid">'
        f"{''.join(parts)}</svg>"
    )


def _labels(tier: Tier) -> list[str]:
    measured = tier.measured
    folder = measured.folder
    return [
        folder if len(folder) <= 22 else f"…{folder[-21:]}",
        f"latency {measured.latency_s * 1e3:.2f} ms",
        f"read {measured.read / MB:.0f}, synced {measured.append / MB:.0f} MB/s",
        f"full in {tier.days:.1f} days",
        f"limit: {tier.limit}",
    ]


def _row(tier: Tier) -> str:
    lines = "".join(f"<br>{html.escape(line)}" for line in tier.lines())
    return f"<li><strong>{html.escape(tier.measured.folder)}</strong>{lines}</li>"

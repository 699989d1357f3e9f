"""Page of the station's tiers: a picture of the storage pyramid, and when each tier is full."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from fpvcar.http.languages import translated
from fpvcar.runtime.texts import OUT_OF_RANGE, Phrase, Refusal, Text, fault_text
from fpvcar.runtime.units import MB
from fpvstation.errors import StationError
from fpvstation.sizing.measure import load
from fpvstation.sizing.plan import CAR_MBIT, LINK_MBIT, Demand, Tier, Unmeasured, plan

SIZE_SPEED = Phrase(
    "size_speed", "latency {latency} ms; reads {read} MB/s, synced writes {written} MB/s"
)

FIELDS = (
    ("cars", Text("size_of_cars", "Cars"), "1", 1.0, 100_000.0),
    ("hours", Text("size_of_hours", "Hours a day, each"), "1", 0.01, 24.0),
    ("mbit", Text("size_of_mbit", "Mbit/s of a car"), f"{CAR_MBIT:g}", 0.01, 1000.0),
    ("link", Text("size_of_link", "Mbit/s of the link"), f"{LINK_MBIT:g}", 0.1, 1e6),
)
"""Name, label, default and limits of each field."""
WORDS = {
    "title": Text("size_title", "How much room do I need?"),
    "back": Text("size_back", "Recordings"),
    "compute": Text("size_compute", "Compute"),
}
"""Texts of PAGE."""
COLOURS = ("#1c6b3e", "#1d5f78", "#5b4a8a", "#74492c")
WIDTH, LAYER, TOP, STEP = 360, 104, 190, 50
"""Sizes of the picture: height of a layer, width of the first one, and growth per layer."""
PAGE = """\
<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<title>{title}</title>
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
<header class="bar"><a class="button" href="./">{back}</a><h1>{title}</h1></header>
<main><form>{fields}<button class="primary">{compute}</button></form>{content}</main>
</body>
</html>
"""


def page(query: Mapping[str, str], state: Path, language: str = "en") -> str:
    """Return the page for the values of its form. Raises OSError."""

    def say(text: Text) -> str:
        return html.escape(translated(language, text))

    values = {name: query.get(name, default) for name, _, default, *_ in FIELDS}
    fields = "".join(
        f'<label>{say(label)}<input name="{name}" inputmode="decimal" '
        f'value="{html.escape(values[name][:20])}"></label>'
        for name, label, *_ in FIELDS
    )
    try:
        numbers = [_number(values[name], *limits) for name, _, _, *limits in FIELDS]
        demand = Demand(int(numbers[0]), *numbers[1:])
        tiers = plan(demand, load(state))
    except Unmeasured as step:
        content = f'<p class="hint">{say(fault_text(step))}</p>'
    except (Refusal, StationError) as fault:
        content = f'<p class="fault" role="alert">{say(fault_text(fault))}</p>'
    else:
        daily = Text(
            "size_daily", "{gigabytes} GB a day.", gigabytes=f"{demand.daily / MB / 1000:.1f}"
        )
        rows = "".join(
            f"<li><strong>{html.escape(tier.measured.folder)}</strong>"
            f"{''.join(f'<br>{say(line)}' for line in (_speed(tier), *tier.lines()))}</li>"
            for tier in tiers
        )
        content = f"<p>{say(daily)}</p>{pyramid(tiers)}<ul>{rows}</ul>"
    words = {name: say(text) for name, text in WORDS.items()}
    return PAGE.format(language=language, fields=fields, content=content, **words)


def _number(text: str, least: float, most: float) -> float:
    """Return the number of a field. Raises Refusal."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise Refusal(OUT_OF_RANGE(value=text[:20], least=f"{least:g}", most=f"{most:g}"))
    return number


def _speed(tier: Tier) -> Text:
    measured = tier.measured
    return SIZE_SPEED(
        latency=f"{measured.latency_s * 1e3:.2f}",
        read=f"{measured.read / MB:.0f}",
        written=f"{measured.append / MB:.0f}",
    )


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
    return f'<svg viewBox="0 0 {WIDTH} {height}" aria-hidden="true">{"".join(parts)}</svg>'


def _labels(tier: Tier) -> list[str]:
    """Return the name of a tier and its figures, without words: the list below has them."""
    measured = tier.measured
    folder = measured.folder
    return [
        folder if len(folder) <= 22 else f"…{folder[-21:]}",
        f"{tier.free / 1000 / MB:.0f} / {tier.total / 1000 / MB:.0f} GB",
        f"{measured.latency_s * 1e3:.2f} ms",
        f"{measured.read / MB:.0f} / {measured.append / MB:.0f} MB/s",
    ]

"""Elements of a drawing as SVG text, on sheets as wide as a phone.

The same sheet gives the same bytes, and a car needs no library for it.
"""

import textwrap
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

WIDTH = 390
"""Width of a sheet: a phone shows it in its real size, and a larger screen enlarges it."""
MARGIN = 12
INK, PALE, PAPER = "#202020", "#f0f0f0", "#ffffff"
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
DARK = ("black", "brown", "blue", "violet", "green", "red")
"""Wire colours that need white letters."""
TITLE, NAME, TEXT, SMALL = 17, 13, 12, 11
"""Sizes of letters in pixels."""
WIDEST, WIDEST_BOLD = 0.58, 0.68
"""Average width of a character per size, in the widest font that a browser may choose."""
SENTENCE = 0.55
"""The same of sentences, which have many narrow characters."""
FOOT_LINE = 17


def sheet(title: str, elements: Iterable[str], height: int) -> str:
    """Return a drawing. It sets no size: a browser fits it to the screen, or to one page."""
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {WIDTH} {height}" font-family={quoteattr(FONT)}>',
        f"<title>{_safe(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>',
        *elements,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def text(
    x: int,
    y: int,
    content: str,
    size: int = TEXT,
    *,
    bold: bool = False,
    anchor: str = "start",
    fill: str = INK,
) -> str:
    """Return a text whose baseline is at `y`."""
    weight = ' font-weight="bold"' if bold else ""
    alignment = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{weight}{alignment}>'
        f"{_safe(content)}</text>"
    )


def _safe(content: str) -> str:
    """Return text for XML, which allows no control characters."""
    return escape("".join(char if char.isprintable() else "?" for char in content))


def cut(content: str, room: int, size: int, *, bold: bool = False) -> str:
    """Shorten a user-chosen name to the available room."""
    most = int(room / size / (WIDEST_BOLD if bold else WIDEST))
    return content if len(content) <= most else content[: most - 1] + "…"


def rect(x: int, y: int, width: int, height: int, fill: str, stroke: str = INK) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


def line(way: str, colour: str, width: int = 3) -> str:
    """Return a line with a dark edge, so that white wires are visible."""
    return (
        f'<path d="{way}" fill="none" stroke="{INK}" stroke-width="{width + 2}"/>'
        f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    )


def dot(x: int, y: int) -> str:
    """Return a terminal."""
    return f'<circle cx="{x}" cy="{y}" r="4" fill="{PAPER}" stroke="{INK}"/>'


def pill(x: int, y: int, content: str) -> str:
    """Return a short text on a line, around its middle."""
    width = 8 * len(content) + 6
    field = rect(x - width // 2, y - 8, width, 16, PAPER)
    label = text(x, y + 4, content, SMALL, bold=True, anchor="middle")
    return f'<g class="mark">{field}{label}</g>'


def wrapped(content: str, x: int, y: int, *, bold: bool = False) -> tuple[list[str], int]:
    """Return a paragraph's lines, and the baseline below them."""
    room = (WIDTH - MARGIN - x) / TEXT / (WIDEST if bold else SENTENCE)
    lines = textwrap.wrap(content, int(room))
    drawn = [text(x, y + FOOT_LINE * row, one, bold=bold) for row, one in enumerate(lines)]
    return drawn, y + FOOT_LINE * len(lines)

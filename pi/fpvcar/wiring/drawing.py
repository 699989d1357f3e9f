"""Drawing of a plan as SVG: the header in its real layout, the parts beside it, a line per wire.

The SVG is written as text: the same plan gives the same bytes, and a car needs no library for it.
"""

import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from fpvcar.wiring import layout, tables
from fpvcar.wiring.header import PINS, Pin
from fpvcar.wiring.layout import MARGIN, MARK_W, PILL_H, PILL_W, PITCH, VIA_W, Box, WireEnd
from fpvcar.wiring.plan import BATTERY, FIVE_V, GROUND, PI, THREE_V, USES, End, Plan, Terminal, Use

INK, PALE, PAPER = "#202020", "#f0f0f0", "#ffffff"
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
RAILS = {"3V3": THREE_V, "5V": FIVE_V, "GND": GROUND}
DARK = ("black", "brown", "blue", "violet", "green", "red")
"""Wire colours that need white letters."""
FOOT_LINE = 17
NUMBER_W = 30
TITLE_W, NAME_W, ABOUT_W, LABEL_W, NOTE_W = 9.0, 8.0, 7.0, 6.0, 6.2
"""Average widths of a character in pixels, in the widest font that a browser may choose."""
MARKS = (
    "The mark of a wire: a number is its pin of the header, a letter stands for any other wire. "
    "Wires of one colour differ by it: write it on a flag at both ends."
)
UNTRIED = "Not tried on metal yet: look twice before the battery goes on."


def svg(plan: Plan) -> str:
    """Return the drawing. It sets no size: a browser fits it to the screen, or to one page."""
    places = layout.lay_out(plan)
    foot, height = _foot(plan, places)
    size = f'width="{places.width}" height="{height}"'
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {places.width} {height}" font-family={quoteattr(FONT)}>',
        f"<title>{_safe(plan.title)}: wiring</title>",
        f'<rect {size} fill="{PAPER}"/>',
        _text(MARGIN, 28, plan.title, 18, bold=True),
        _text(MARGIN, 48, "The Pi's 40 pins as they lie, its USB sockets below.", 12),
        *_header(plan),
        *("".join(_track(track, places)) for track in places.tracks),
        *_marks(plan, places),
        *("".join(_box(box, plan)) for box in places.boxes),
        *foot,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(
    x: int,
    y: int,
    text: str,
    size: int,
    *,
    bold: bool = False,
    anchor: str = "start",
    fill: str = INK,
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    alignment = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{weight}{alignment}>'
        f"{_safe(text)}</text>"
    )


def _safe(text: str) -> str:
    """Return text for XML, which allows no control characters."""
    return escape("".join(char if char.isprintable() else "?" for char in text))


def _header(plan: Plan) -> Iterator[str]:
    """Yield each pin as a field in the colour of its wire; a free supply pin has a coloured
    edge."""
    uses = {wire.start: wire.use for wire in plan.wires()}
    for pin in PINS:
        use = uses.get(End(PI, str(pin.number)))
        x, y = layout.pill(pin.number)
        fill = PALE if use is None else use.rgb
        ink = PAPER if use is not None and use.colour in DARK else INK
        even = pin.number % 2 == 0
        number = _text(
            x + 8 if even else x + PILL_W - 8,
            y + 14,
            str(pin.number),
            12,
            bold=use is not None,
            anchor="start" if even else "end",
            fill=ink,
        )
        name = _text(
            x + PILL_W - 8 if even else x + 8,
            y + 14,
            pin.name,
            12,
            bold=use is not None,
            anchor="end" if even else "start",
            fill=ink,
        )
        field = _rect(x, y, PILL_W, PILL_H, fill, _border(pin, use))
        yield f'<g class="pin" data-pin="{pin.number}">{field}{number}{name}</g>'


def _border(pin: Pin, use: Use | None) -> str:
    rail = RAILS.get(pin.name)
    return INK if rail is None or use is not None else rail.rgb


def _rect(x: int, y: int, width: int, height: int, fill: str, line: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" '
        f'fill="{fill}" stroke="{line}"/>'
    )


def _ends(track: layout.Track, places: layout.Layout) -> list[WireEnd]:
    ends = [places.spots[track.start, wire.end] for wire in track.wires]
    return [places.spots[None, track.start], *ends]


def _track(track: layout.Track, places: layout.Layout) -> Iterator[str]:
    """Yield a line with a dark edge, so that white wires and crossings are visible."""
    ends = _ends(track, places)
    use = track.wires[0].use
    heavy = track.start.part != PI and use in (BATTERY, GROUND, FIVE_V)
    width = 5 if heavy else 3
    ys = sorted(spot.line for spot in ends)
    way = " ".join(
        [
            f"M{track.x} {ys[0]}V{ys[-1]}",
            *(
                f"M{spot.x} {spot.y}"
                + (f"V{spot.line}" if spot.line != spot.y else "")
                + f"H{track.x}"
                for spot in ends
            ),
        ]
    )
    names = ", ".join(str(wire.end) for wire in track.wires)
    yield '<g class="wire" fill="none" stroke-linejoin="round" stroke-linecap="square">'
    yield f"<title>{_safe(f'{use.colour}: {track.start} to {names}')}</title>"
    yield f'<path d="{way}" stroke="{INK}" stroke-width="{width + 2}"/>'
    yield f'<path d="{way}" stroke="{use.rgb}" stroke-width="{width}"/>'
    for spot in ends:
        if ys[0] < spot.line < ys[-1] and len(ends) > 2:
            yield (
                f'<circle cx="{track.x}" cy="{spot.line}" r="4" fill="{use.rgb}" stroke="{INK}"/>'
            )
    yield "</g>"


def _marks(plan: Plan, places: layout.Layout) -> Iterator[str]:
    """Yield the mark of each wire at its terminals, and in its vertical line if there is room."""
    marks, taken = plan.marks(), list[tuple[int, int]]()
    for track in places.tracks:
        lines = [spot.line for spot in _ends(track, places)]
        middle = (min(lines) + max(lines)) // 2
        room = range(min(lines) + 12, max(lines) - 11)
        crossing = _lines_across(track.x, places)
        for y in sorted(room, key=lambda y: abs(y - middle)):
            if all(abs(y - line) > 8 for line in crossing) and all(
                abs(y - other_y) > 12 or abs(track.x - x) > MARK_W for x, other_y in taken
            ):
                taken.append((track.x, y))
                yield _mark(track.x, y, marks[track.start])
                break
    for box in places.boxes:
        for row, (terminal, start) in enumerate(box.rows()):
            spot = box.spot(row)
            net = start or End(box.part.name, terminal.name)
            if net in marks:
                away = MARK_W // 2 + 1 + (VIA_W - 8 if terminal.via else 0)
                x = spot.x - away if spot.right else spot.x + away
                yield _mark(x, spot.y, marks[net])


def _lines_across(x: int, places: layout.Layout) -> list[int]:
    """Return the heights of all lines that cross or end at a vertical line."""
    return [
        spot.line
        for track in places.tracks
        for spot in _ends(track, places)
        if min(spot.x, track.x) - MARK_W < x < max(spot.x, track.x) + MARK_W
    ]


def _mark(x: int, y: int, mark: str) -> str:
    width = 6 * len(mark) + 4
    return (
        f'<g class="mark">{_rect(x - width // 2, y - 7, width, 13, PAPER, INK)}'
        f"{_text(x, y + 3, mark, 10, bold=True, anchor='middle')}</g>"
    )


def _box(box: Box, plan: Plan) -> Iterator[str]:
    """Yield a part: its name, and its terminals at the edge with the wires."""
    yield '<g class="part">'
    yield _rect(box.x, box.y, box.width, box.height, PALE, INK)
    room = box.width - 28 - ABOUT_W * len(box.part.about)
    name = _cut(box.part.name, room / TITLE_W)
    yield _text(box.x + 10, box.y + 17, name, 14, bold=True)
    if box.part.about:
        right = box.x + box.width - 10
        yield _text(right, box.y + 17, box.part.about, 12, anchor="end")
    last: WireEnd | None = None
    for row, (terminal, start) in enumerate(box.rows()):
        spot = box.spot(row)
        if terminal.also is not None:
            if last is not None:
                yield _rect(spot.x - 4, last.y + 4, 8, spot.y - last.y - 8, INK, INK)
            last = None if last else spot
        yield from _terminal(spot, box.width, terminal, _label(plan, box, terminal, start))
    yield "</g>"


def _terminal(spot: WireEnd, width: int, terminal: Terminal, label: str) -> Iterator[str]:
    """Yield a terminal: its name beside the wire, and the wire's origin at the other side."""
    inwards, near, far = (1, "start", "end") if spot.right else (-1, "end", "start")
    name = _cut(terminal.name, (width - 24 - LABEL_W * len(label)) / NAME_W)
    yield f'<circle cx="{spot.x}" cy="{spot.y}" r="4" fill="{PAPER}" stroke="{INK}"/>'
    yield _text(spot.x + 10 * inwards, spot.y + 5, name, 13, bold=True, anchor=near)
    if label:
        yield _text(spot.x + (width - 8) * inwards, spot.y + 4, label, 11, anchor=far)
    if terminal.via:
        x = spot.x - VIA_W + 4 if spot.right else spot.x + 8
        yield _rect(x, spot.y - 9, VIA_W - 12, 18, PAPER, INK)
        yield _text(x + (VIA_W - 12) // 2, spot.y + 4, terminal.via, 11, anchor="middle")


def _label(plan: Plan, box: Box, terminal: Terminal, start: End | None) -> str:
    """Return the wire's origin and colour as text: "11 · GPIO 17 · green"."""
    marks, notes = plan.marks(), tables.numbered(plan)
    if start is None:
        return "" if End(box.part.name, terminal.name) in marks else "leave open"
    origin = str(start)
    if start.part == PI:
        origin = PINS[int(start.terminal) - 1].name
    numbers = "".join(f" ({notes[note]})" for note in terminal.notes)
    return f"{marks[start]} · {origin} · {terminal.use.colour}{numbers}"


def _cut(text: str, most: float) -> str:
    """Shorten a user-chosen name to the available room."""
    return text if len(text) <= most else text[: int(most) - 1] + "…"


def _foot(plan: Plan, places: layout.Layout) -> tuple[list[str], int]:
    """Return the legend of the colours with the notes, and the lower end of the drawing."""
    used = {wire.use for wire in plan.wires()}
    y = places.bottom + PITCH
    lines: list[str] = []
    for use in (use for use in USES if use in used):
        lines.append(_rect(MARGIN, y - 9, 30, 8, use.rgb, INK))
        lines.append(_text(MARGIN + 38, y, f"{use.colour}: {use.meaning}", 12))
        y += FOOT_LINE
    y += FOOT_LINE // 2
    for line in textwrap.wrap(MARKS, int((places.width - 2 * MARGIN) / NOTE_W)):
        lines.append(_text(MARGIN, y, line, 12))
        y += FOOT_LINE
    y += FOOT_LINE // 2
    room = int((places.width - 2 * MARGIN - NUMBER_W) / NOTE_W)
    for note, number in tables.numbered(plan).items():
        lines.append(_text(MARGIN, y, f"({number})", 12, bold=True))
        for line in textwrap.wrap(note, room):
            lines.append(_text(MARGIN + NUMBER_W, y, line, 12))
            y += FOOT_LINE
    lines.append(_text(MARGIN, y + 8, UNTRIED, 12, bold=True))
    return lines, y + 8 + MARGIN

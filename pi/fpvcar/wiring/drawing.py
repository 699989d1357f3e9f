"""Drawings of a plan: an overview, the Pi's header in its layout, and a sheet per kind of part.

A sheet has a row for each wire: the other end on the left, the part's terminal on the right.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.wiring import overview, shapes, tables
from fpvcar.wiring.header import PINS, ROWS, Pin
from fpvcar.wiring.plan import (
    BATTERY,
    FIVE_V,
    GROUND,
    PI,
    THREE_V,
    End,
    Part,
    Plan,
    Terminal,
    Use,
    Wire,
)
from fpvcar.wiring.shapes import INK, MARGIN, PALE, PAPER, SMALL, WIDTH, cut, rect, text

RAILS = {"3V3": THREE_V, "5V": FIVE_V, "GND": GROUND}
TOP = 58
PITCH = 38
OTHER_W, PART_X = 132, 254
"""Width of the other ends, left edge of the part."""
MARK_X, VIA_X, VIA_W = 160, 176, 72
"""Middle of the marks; place of components in a wire."""
PIN_PITCH, PIN_W, PIN_H, PIN_GAP = 30, 78, 24, 4
NOTE_X = 48
HEADING_H, ABOUT_W = 24, 110
LETTERS = {"µ": "u", "Ω": "ohm"}


class Row(NamedTuple):
    """Terminal, the wire there, and the end of the wire at another part."""

    terminal: Terminal
    wire: Wire | None = None
    other: End | None = None


def sheets(plan: Plan) -> dict[str, str]:
    """Return name -> drawing: "overview", "pi", "supply", and one for each kind of part."""
    drawn = {"overview": overview.draw(plan), "pi": _header(plan)}
    kinds = {"Supply": [part for part in plan.supply if part.terminals]}
    for part in (*plan.parts, *plan.motors):
        if part.terminals:
            kinds.setdefault(_kind(part), []).append(part)
    for kind, alike in kinds.items():
        if alike:
            title = alike[0].name if len(alike) == 1 else kind
            name = stem(title)
            drawn[f"{name}-{len(drawn)}" if name in drawn else name] = _sheet(plan, title, alike)
    return drawn


def _kind(part: Part) -> str:
    """Return the common start of alike names: "LED" of "LED head", "2.2 Ω" of "2.2 Ω, Steering"."""
    before, comma, _ = part.name.partition(",")
    return before if comma else part.name.partition(" ")[0]


def stem(name: str) -> str:
    """Return the file name of a part's sheet without its ending."""
    letters = (LETTERS.get(char, char.lower() if char.isalnum() else " ") for char in name)
    return "-".join("".join(letters).split()) or "part"


def _title(plan: Plan, name: str, about: str) -> list[str]:
    shown = cut(name, WIDTH - 2 * MARGIN, shapes.TITLE, bold=True)
    below = cut(", ".join(filter(None, (plan.title, about))), WIDTH - 2 * MARGIN, shapes.TEXT)
    return [text(MARGIN, 26, shown, shapes.TITLE, bold=True), text(MARGIN, 44, below)]


def _rows(plan: Plan, part: Part) -> list[Row]:
    """Return the wires at each terminal, first those that end there."""
    rows = []
    for terminal in part.terminals:
        here = End(part.name, terminal.name)
        ends = [Row(terminal, wire, wire.start) for wire in plan.wires() if wire.end == here]
        starts = [Row(terminal, wire, wire.end) for wire in plan.wires() if wire.start == here]
        rows += [*ends, *starts] or [Row(terminal)]
    return rows


def _sheet(plan: Plan, title: str, alike: list[Part]) -> str:
    """Return a sheet of parts: their wires, and the notes on them."""
    alone = len(alike) == 1
    elements = _title(plan, title, alike[0].about if alone else "")
    y = TOP
    for part in alike:
        if not alone:
            name = cut(part.name, WIDTH - 2 * MARGIN - ABOUT_W, shapes.NAME, bold=True)
            elements.append(text(MARGIN, y + 16, name, shapes.NAME, bold=True))
            elements.append(text(WIDTH - MARGIN, y + 16, part.about, SMALL, anchor="end"))
            y += HEADING_H
        rows = _rows(plan, part)
        elements += ['<g class="part">', *_box(plan, rows, y), "</g>"]
        y += PITCH * len(rows)
    y += 24
    terminals = [terminal for part in alike for terminal in part.terminals]
    numbers = tables.numbered(plan)
    for note in dict.fromkeys(note for terminal in terminals for note in terminal.notes):
        elements.append(text(MARGIN, y, f"({numbers[note]})", bold=True))
        drawn, y = shapes.wrapped(note, NOTE_X, y)
        elements += drawn
    return shapes.sheet(f"{plan.title}: {title}", elements, y)


def _box(plan: Plan, rows: list[Row], top: int) -> Iterator[str]:
    """Yield a part with its wires; a dark bar joins those of one terminal."""
    yield rect(PART_X, top, WIDTH - MARGIN - PART_X, PITCH * len(rows), PALE)
    for at, row in enumerate(rows):
        y = top + PITCH * at + PITCH // 2
        if at and rows[at - 1].terminal == row.terminal:
            yield rect(PART_X - 4, y - PITCH + 4, 8, PITCH - 8, INK)
        yield from _row(plan, row, y)


def _row(plan: Plan, row: Row, y: int) -> Iterator[str]:
    """Yield the wire of a row, and the texts at its ends."""
    x, room = PART_X + 10, WIDTH - MARGIN - PART_X - 14
    below = "leave open"
    if row.wire is not None and row.other is not None:
        notes = tables.numbered(plan)
        numbers = ", ".join(str(notes[note]) for note in row.terminal.notes)
        below = row.wire.use.colour + (f" ({numbers})" if numbers else "")
        yield from _wire(row.wire, row.other, plan.marks()[row.wire.start], y)
    yield '<g class="terminal">'
    yield shapes.dot(PART_X, y)
    name = cut(row.terminal.name, room, shapes.NAME, bold=True)
    yield text(x, y, name, shapes.NAME, bold=True)
    yield text(x, y + 13, below, SMALL)
    yield "</g>"


def _wire(wire: Wire, other: End, mark: str, y: int) -> Iterator[str]:
    """Yield a line, with its mark and the component in it, from its other end."""
    heavy = wire.start.part != PI and wire.use in (BATTERY, GROUND, FIVE_V)
    yield '<g class="wire">'
    yield shapes.line(f"M{MARGIN + OTHER_W} {y}H{PART_X}", wire.use.rgb, 5 if heavy else 3)
    yield shapes.pill(MARK_X, y, mark)
    if wire.via:
        yield rect(VIA_X, y - 9, VIA_W, 18, PAPER)
        yield text(VIA_X + VIA_W // 2, y + 4, wire.via, SMALL, anchor="middle")
    first, second, fill, ink = other.part, other.terminal, PALE, INK
    if other.part == PI:
        first, second = f"pin {other.terminal}", PINS[int(other.terminal) - 1].name
        fill, ink = wire.use.rgb, PAPER if wire.use.colour in shapes.DARK else INK
    yield rect(MARGIN, y - 16, OTHER_W, 32, fill)
    x, room = MARGIN + 7, OTHER_W - 12
    yield text(x, y - 2, cut(first, room, SMALL), SMALL, fill=ink)
    yield text(x, y + 12, cut(second, room, shapes.TEXT, bold=True), bold=True, fill=ink)
    yield "</g>"


def _header(plan: Plan) -> str:
    """Return the sheet of the Pi: each pin in the colour of its wire, and the wire's other end."""
    wires: dict[str, list[Wire]] = {str(pin.number): [] for pin in PINS}
    for wire in plan.wires():
        if wire.start.part == PI:
            wires[wire.start.terminal].append(wire)
    elements = [
        *_title(plan, "Header of the Pi", "the USB sockets below"),
        *("".join(_pin(pin, wires[str(pin.number)])) for pin in PINS),
    ]
    return shapes.sheet(f"{plan.title}: header", elements, TOP + PIN_PITCH * ROWS + MARGIN)


def _pin(pin: Pin, wires: list[Wire]) -> Iterator[str]:
    """Yield a pin as a field; a free supply pin has a coloured edge."""
    row, even = divmod(pin.number - 1, 2)
    use = wires[0].use if wires else None
    inner, outer = ("start", "end") if even else ("end", "start")
    left = WIDTH // 2 + (PIN_GAP // 2 if even else -PIN_GAP // 2 - PIN_W)
    near, far = (left + 5, left + PIN_W - 5) if even else (left + PIN_W - 5, left + 5)
    y = TOP + PIN_PITCH * row
    ink = PAPER if use is not None and use.colour in shapes.DARK else INK
    yield f'<g class="pin" data-pin="{pin.number}">'
    yield rect(left, y, PIN_W, PIN_H, PALE if use is None else use.rgb, _border(pin, use))
    yield text(near, y + 16, str(pin.number), bold=bool(wires), anchor=inner, fill=ink)
    yield text(far, y + 16, pin.name, SMALL, anchor=outer, fill=ink)
    if wires:
        beside = left + PIN_W + 6 if even else left - 6
        first, second = wires[0].end.part, wires[0].end.terminal
        if len(wires) > 1:
            first, second = f"{len(wires)} wires", wires[0].use.colour
        room = WIDTH // 2 - PIN_GAP // 2 - PIN_W - 6 - MARGIN // 2
        yield text(beside, y + 10, cut(first, room, SMALL), SMALL, anchor=inner)
        yield text(beside, y + 22, cut(second, room, SMALL), SMALL, anchor=inner)
    yield "</g>"


def _border(pin: Pin, use: Use | None) -> str:
    rail = RAILS.get(pin.name)
    return INK if rail is None or use is not None else rail.rgb

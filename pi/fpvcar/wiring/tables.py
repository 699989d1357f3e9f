"""Tables of a plan as text: the header in its real layout, and a list of the wires."""

from collections import defaultdict

from fpvcar.wiring.header import PINS, ROWS, Pin
from fpvcar.wiring.plan import PI, Plan, Wire

SIDE = 38
"""Text columns beside the two rows of pins."""


def pins(plan: Plan) -> str:
    """Return the 40 pins, two per line, as seen with the board's USB sockets below."""
    wires: dict[str, list[Wire]] = defaultdict(list)
    for wire in plan.wires():
        if wire.start.part == PI:
            wires[wire.start.terminal].append(wire)
    lines = [
        f"{plan.title}: the header of the Pi, its USB sockets below.",
        "A number in brackets has a wire.",
        "",
    ]
    for row in range(ROWS):
        odd, even = PINS[2 * row], PINS[2 * row + 1]
        left = _goes_to(odd, wires[str(odd.number)])
        right = _goes_to(even, wires[str(even.number)])
        marks = [
            f"[{pin.number:2}]" if wires[str(pin.number)] else f" {pin.number:2} "
            for pin in (odd, even)
        ]
        line = f"{left:>{SIDE}} {odd.name:>7} {marks[0]}{marks[1]} {even.name:7} {right}"
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


def _goes_to(pin: Pin, wires: list[Wire]) -> str:
    """Return colour and terminal of a pin; for several parts, the rail."""
    if not wires:
        return ""
    colour, first = wires[0].use.colour, wires[0].end
    if len(wires) > 1:
        return f"{colour}, rail of {len(wires)} wires"
    return f"{colour}, {first}"


def wires(plan: Plan) -> str:
    """Return one wire per line: mark, from, to, colour, component in the wire; then the notes."""
    notes, marks = numbered(plan), plan.marks()
    rows = [("wire", "from", "to", "colour", "in line", "note")]
    for wire in plan.wires():
        numbers = ", ".join(str(notes[note]) for note in wire.notes)
        ends = marks[wire.start], str(wire.start), str(wire.end)
        rows.append((*ends, wire.use.colour, wire.via, numbers))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    lines += ["", *(f"{number}. {note}" for note, number in notes.items())]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def numbered(plan: Plan) -> dict[str, int]:
    """Return every note once, in the order of the wires, with its number."""
    numbers: dict[str, int] = {}
    for wire in plan.wires():
        for note in wire.notes:
            numbers.setdefault(note, len(numbers) + 1)
    return numbers

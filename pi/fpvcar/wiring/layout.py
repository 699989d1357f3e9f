"""Layout of a plan: the place of everything in its drawing, in pixels. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from fpvcar.wiring.header import PINS, ROWS
from fpvcar.wiring.plan import PI, End, Part, Plan, Terminal, Wire
from fpvcar.wiring.routes import Net, tracks

MARGIN = 14
TOP = 64
"""Upper end of the header, below the title."""
PITCH = 24
"""Distance between two terminals; a wire of an odd pin runs between two even ones."""
PILL_W, PILL_H, PILL_GAP = 122, 19, 6
LEFT_W, RIGHT_W = 2 * PILL_W + PILL_GAP, 280
VIA_W = 70
"""Room beside a column for components in a wire."""
MARK_W = 22
"""Room beside a column for the marks of wires."""
TRACK = 13
RIGHT_SHIFT = 6
"""Downward shift of the terminals on the right, so that no two wires share a line."""


class WireEnd(NamedTuple):
    """End of a wire at a pin or a terminal."""

    x: int
    y: int
    line: int
    """Height at which the wire runs to its track."""
    right: bool


class Box(NamedTuple):
    """Part with its place in one of the columns."""

    part: Part
    x: int
    y: int
    width: int
    right: bool

    @property
    def height(self) -> int:
        """Height of its title and its terminals."""
        return PITCH * (len(self.rows()) + 1) + 4

    def rows(self) -> list[tuple[Terminal, End | None]]:
        """Return each terminal with the start of its wire; a terminal of two wires twice."""
        return [(terminal, start) for terminal in self.part.terminals for start in terminal.sources]

    def spot(self, row: int) -> WireEnd:
        """Return the end of a terminal's wire."""
        y = self.y + PITCH * (row + 1) + PITCH // 2
        return WireEnd(self.x if self.right else self.x + self.width, y, y, self.right)


class Track(NamedTuple):
    """Vertical line with all wires of one pin or terminal."""

    start: End
    wires: tuple[Wire, ...]
    x: int


class Layout(NamedTuple):
    """Places of all parts, wire ends and tracks."""

    boxes: tuple[Box, ...]
    spots: dict[tuple[End | None, End], WireEnd]
    """Ends of wires by (start of the wire, terminal); where one starts, by (None, terminal)."""
    tracks: tuple[Track, ...]
    bottom: int
    width: int


def pill(number: int) -> tuple[int, int]:
    """Return the upper left corner of a pin."""
    row, even = divmod(number - 1, 2)
    return MARGIN + even * (PILL_W + PILL_GAP), TOP + row * PITCH


def lay_out(plan: Plan) -> Layout:
    """Place the parts in two columns, and a track for each wire between these."""
    nets: dict[End, list[Wire]] = defaultdict(list)
    for wire in plan.wires():
        nets[wire.start].append(wire)
    boxes, bottom = _columns(plan)
    rooms = [
        MARK_W + (VIA_W if any(_has_via(box) for box in boxes if box.right is right) else 0)
        for right in (False, True)
    ]
    first_x = MARGIN + LEFT_W + rooms[0]
    right_x = first_x + TRACK * max(0, len(nets) - 1) + rooms[1]
    boxes = [box._replace(x=right_x) if box.right else box for box in boxes]
    spots: dict[tuple[End | None, End], WireEnd] = {
        (start, End(box.part.name, terminal.name)): box.spot(row)
        for box in boxes
        for row, (terminal, start) in enumerate(box.rows())
    }
    spots |= {(None, End(PI, str(pin.number))): _pin_spot(pin.number) for pin in PINS}
    lines = _tracks(nets, spots, first_x)
    return Layout(tuple(boxes), spots, lines, bottom, right_x + RIGHT_W + MARGIN)


def _has_via(box: Box) -> bool:
    return any(terminal.via for terminal in box.part.terminals)


def _pin_spot(number: int) -> WireEnd:
    """Return the end of a pin's wire: it leaves an even pin at its side, an odd one below it."""
    x, y = pill(number)
    if number % 2 == 0:
        middle = y + PILL_H // 2
        return WireEnd(x + PILL_W, middle, middle, False)
    return WireEnd(x + PILL_W - 10, y + PILL_H, y + PILL_H // 2 + PITCH // 2, False)


def _columns(plan: Plan) -> tuple[list[Box], int]:
    """Place the Pi's supply below its header, parts and motors in the shorter column.

    The right column has no place yet.
    """
    heights = {False: TOP + PITCH * (ROWS + 1), True: TOP + RIGHT_SHIFT}
    boxes: list[Box] = []

    def place(parts: Iterable[Part], may_be_right: bool) -> None:
        for part in parts:
            side = may_be_right and heights[True] <= heights[False]
            box = Box(part, MARGIN, heights[side], RIGHT_W if side else LEFT_W, side)
            boxes.append(box)
            rows = box.height // PITCH + 1  # on the grid of the pins
            heights[side] += PITCH * rows

    place(plan.supply, False)
    place((*plan.parts, *plan.motors), True)
    return boxes, max(heights.values())


def _tracks(
    nets: dict[End, list[Wire]], spots: dict[tuple[End | None, End], WireEnd], first_x: int
) -> tuple[Track, ...]:
    lines = []
    for start, wires in nets.items():
        ends = [spots[None, start], *(spots[start, wire.end] for wire in wires)]
        lines.append(
            Net(
                tuple(spot.line for spot in ends if not spot.right),
                tuple(spot.line for spot in ends if spot.right),
            )
        )
    starts = list(nets)
    return tuple(
        Track(starts[net], tuple(nets[starts[net]]), first_x + TRACK * place)
        for place, net in enumerate(tracks(lines))
    )

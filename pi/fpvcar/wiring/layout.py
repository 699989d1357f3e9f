"""Layout of a plan: the place of everything in its drawing, in pixels. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from fpvcar.wiring.header import PINS, ROWS
from fpvcar.wiring.plan import PI, End, Part, Plan, Wire
from fpvcar.wiring.routes import Net, tracks

MARGIN = 14
TOP = 64
"""Upper end of the header, below the title."""
PITCH = 24
"""Distance between two terminals; a wire of an odd pin runs between two even ones."""
PILL_W, PILL_H, PILL_GAP = 108, 19, 6
LEFT_W, RIGHT_W = 2 * PILL_W + PILL_GAP, 250
VIA_W = 70
"""Room before the right column for components in a wire."""
TRACK = 9
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
        return PITCH * (len(self.part.terminals) + 1) + 4

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
    spots: dict[End, WireEnd]
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
    gap = TRACK * (len(nets) + 2)
    if any(wire.via for wire in plan.wires()):
        gap += VIA_W
    right_x = MARGIN + LEFT_W + gap
    boxes, bottom = _columns(plan, right_x)
    spots = {
        End(box.part.name, terminal.name): box.spot(row)
        for box in boxes
        for row, terminal in enumerate(box.part.terminals)
    }
    spots |= {End(PI, str(pin.number)): _pin_spot(pin.number) for pin in PINS}
    return Layout(tuple(boxes), spots, _tracks(nets, spots), bottom, right_x + RIGHT_W + MARGIN)


def _pin_spot(number: int) -> WireEnd:
    """Return the end of a pin's wire: it leaves an even pin at its side, an odd one below it."""
    x, y = pill(number)
    if number % 2 == 0:
        middle = y + PILL_H // 2
        return WireEnd(x + PILL_W, middle, middle, False)
    return WireEnd(x + PILL_W - 10, y + PILL_H, y + PILL_H // 2 + PITCH // 2, False)


def _columns(plan: Plan, right_x: int) -> tuple[list[Box], int]:
    """Place the Pi's supply below its header, parts beside it, motors in the shorter column."""
    heights = {False: TOP + PITCH * (ROWS + 1), True: TOP + RIGHT_SHIFT}
    boxes: list[Box] = []

    def place(parts: Iterable[Part], right: bool | None) -> None:
        for part in parts:
            side = heights[True] <= heights[False] if right is None else right
            x, width = (right_x, RIGHT_W) if side else (MARGIN, LEFT_W)
            box = Box(part, x, heights[side], width, side)
            boxes.append(box)
            rows = box.height // PITCH + 1  # on the grid of the pins
            heights[side] += PITCH * rows

    place(plan.supply, False)
    place(plan.parts, True)
    place(plan.motors, None)
    return boxes, max(heights.values())


def _tracks(nets: dict[End, list[Wire]], spots: dict[End, WireEnd]) -> tuple[Track, ...]:
    lines = []
    for start, wires in nets.items():
        ends = [spots[start], *(spots[wire.end] for wire in wires)]
        lines.append(
            Net(
                tuple(spot.line for spot in ends if not spot.right),
                tuple(spot.line for spot in ends if spot.right),
            )
        )
    starts = list(nets)
    return tuple(
        Track(starts[net], tuple(nets[starts[net]]), MARGIN + LEFT_W + TRACK * (place + 2))
        for place, net in enumerate(tracks(lines))
    )

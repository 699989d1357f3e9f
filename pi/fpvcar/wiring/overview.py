"""Overview of a plan: a block for each part under the part that feeds it, and its wires to the
Pi."""

from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.wiring import shapes
from fpvcar.wiring.plan import PI, USES, Part, Plan, Use, Wire
from fpvcar.wiring.shapes import MARGIN, WIDTH

TOP, PITCH, BLOCK_H, INDENT = 58, 44, 36, 15
RIGHT, PI_X = 268, 326
"""Right edge of the blocks, left edge of the Pi."""
STRIPE = 5
"""Distance of two wires in a bundle."""
INTRODUCTION = "Each part below its supply; numbers: wires to the Pi."
MARKS = (
    "The mark of a wire: a number is its pin of the header, a letter stands for any other wire. "
    "Wires of one colour differ by it: write it on a flag at both ends."
)
UNTRIED = "Never run on a real Pi: look twice before the battery goes on."


class Block(NamedTuple):
    """Part with its place, and the wires that feed it."""

    part: Part
    x: int
    y: int
    feed: Use | None
    """Use of the wire from the block that it hangs below."""
    parent: int

    @property
    def middle(self) -> int:
        return self.y + BLOCK_H // 2


def draw(plan: Plan) -> str:
    """Return the blocks, and the legend of the colours."""
    blocks = _blocks(plan)
    bottom = TOP + PITCH * len(blocks)
    legend, height = _legend(plan, bottom + shapes.FOOT_LINE)
    pi_h = bottom - TOP - (PITCH - BLOCK_H)
    elements = [
        shapes.text(MARGIN, 26, plan.title, shapes.TITLE, bold=True),
        shapes.text(MARGIN, 44, INTRODUCTION),
        *(_feed(block, blocks[block.parent]) for block in blocks if block.feed is not None),
        *("".join(_bundle(block, plan)) for block in blocks),
        shapes.rect(PI_X, TOP, WIDTH - MARGIN - PI_X, pi_h, shapes.PALE),
        shapes.text((PI_X + WIDTH - MARGIN) // 2, TOP + 23, PI, bold=True, anchor="middle"),
        *("".join(_block(block)) for block in blocks),
        *legend,
    ]
    return shapes.sheet(f"{plan.title}: overview", elements, height)


def _feeding(plan: Plan, part: Part) -> Wire | None:
    """Return the first wire to a part from a part other than the Pi."""
    wires = (wire for wire in plan.wires() if wire.end.part == part.name)
    return next((wire for wire in wires if wire.start.part != PI), None)


def _blocks(plan: Plan) -> list[Block]:
    """Return the blocks from top to bottom: below each part those that it feeds."""
    feeds = {part.name: _feeding(plan, part) for part in plan.all()}
    blocks: list[Block] = []

    def place(part: Part, depth: int, parent: int) -> None:
        feed = feeds[part.name]
        here, y = len(blocks), TOP + PITCH * len(blocks)
        use = None if feed is None else feed.use
        blocks.append(Block(part, MARGIN + INDENT * depth, y, use, parent))
        for other in plan.all():
            source = feeds[other.name]
            if source is not None and source.start.part == part.name:
                place(other, depth + 1, here)

    for part in plan.all():
        if feeds[part.name] is None:
            place(part, 0, -1)
    return blocks


def _feed(block: Block, parent: Block) -> str:
    """Return the line from the part that feeds this one."""
    assert block.feed is not None
    way = f"M{parent.x + INDENT // 2} {parent.y + BLOCK_H}V{block.middle}H{block.x}"
    return shapes.line(way, block.feed.rgb)


def _bundle(block: Block, plan: Plan) -> Iterator[str]:
    """Yield the wires between a block and the Pi, with their number; a plug has none."""
    wires = [w for w in plan.wires() if w.end.part == block.part.name and w.start.part == PI]
    uses = [use for use in USES if any(wire.use == use for wire in wires)]
    way = f"M{RIGHT} {{y}}H{PI_X}"
    if not block.part.terminals:
        yield shapes.line(way.format(y=block.middle), shapes.PALE)
    for place, use in enumerate(uses):
        y = block.middle + STRIPE * place - STRIPE * (len(uses) - 1) // 2
        yield shapes.line(way.format(y=y), use.rgb)
    if wires:
        yield shapes.pill((RIGHT + PI_X) // 2, block.middle, str(len(wires)))


def _block(block: Block) -> Iterator[str]:
    """Yield a part: its name, and the note on it if there is one."""
    room = RIGHT - block.x - 16
    name = shapes.cut(block.part.name, room, shapes.NAME, bold=True)
    up = 8 if block.part.about else 0
    yield '<g class="block">'
    yield shapes.rect(block.x, block.y, RIGHT - block.x, BLOCK_H, shapes.PALE)
    yield shapes.text(block.x + 8, block.middle + 5 - up, name, shapes.NAME, bold=True)
    if block.part.about:
        about = shapes.cut(block.part.about, room, shapes.SMALL)
        yield shapes.text(block.x + 8, block.middle + 13, about, shapes.SMALL)
    yield "</g>"


def _legend(plan: Plan, y: int) -> tuple[list[str], int]:
    """Return the colours and the marks, and the lower end of the sheet."""
    used = {wire.use for wire in plan.wires()}
    lines: list[str] = []
    for use in (use for use in USES if use in used):
        lines.append(shapes.rect(MARGIN, y - 9, 30, 8, use.rgb))
        drawn, y = shapes.wrapped(f"{use.colour}: {use.meaning}", MARGIN + 38, y)
        lines += drawn
    for paragraph, bold in ((MARKS, False), (UNTRIED, True)):
        drawn, y = shapes.wrapped(paragraph, MARGIN, y + shapes.FOOT_LINE // 2, bold=bold)
        lines += drawn
    return lines, y

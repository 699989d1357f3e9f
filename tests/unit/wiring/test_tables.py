"""Pin table in the layout of the header, and the list of wires."""

import re

import pytest

from fpvcar.wiring import parts, tables
from fpvcar.wiring.header import PINS
from fpvcar.wiring.plan import PI
from tests.unit.wiring.cars import CARS

LINE = re.compile(r"^(.*?) *(GPIO \d+|3V3|5V|GND) (.{4})(.{4}) (GPIO \d+|3V3|5V|GND) *")
"""Part on the odd pin, its name, the two numbers, the even pin's name."""


@pytest.mark.parametrize("name", CARS)
def test_pin_table_follows_the_board_and_names_wires(name: str) -> None:
    plan = parts.plan_of(CARS[name], name)
    lines = tables.pins(plan).splitlines()[3:]
    used = {wire.start.terminal for wire in plan.wires() if wire.start.part == PI}
    assert len(lines) == 20
    for row, line in enumerate(lines):
        found = LINE.match(line)
        assert found is not None, line
        left, odd_name, odd, even, even_name = found.groups()
        for pin, pin_name, mark, words in zip(
            PINS[2 * row :],
            (odd_name, even_name),
            (odd, even),
            (left, line[found.end() :]),
            strict=False,
        ):
            wired = str(pin.number) in used
            assert pin_name == pin.name and bool(words) == wired
            assert mark == (f"[{pin.number:2}]" if wired else f" {pin.number:2} ")


def test_pin_row_names_colour_and_terminal_or_rail_count() -> None:
    text = tables.pins(parts.plan_of(CARS["bench"], "bench"))
    assert "green, MX1508 IN1 GPIO 17 [11]" in text
    assert "[38] GPIO 20 violet, HC-SR04 rear Trig" in text
    assert "[ 6] GND     black, rail of 19 wires" in text


@pytest.mark.parametrize("name", CARS)
def test_wire_list_has_all_wires_and_notes(name: str) -> None:
    plan = parts.plan_of(CARS[name], name)
    text = tables.wires(plan)
    lines = text.splitlines()
    columns = [lines[0].index(head) for head in ("wire", "from", "to ", "col", "in l", "note")]
    rows = [
        [line[a:b].strip() for a, b in zip(columns, [*columns[1:], None], strict=True)]
        for line in lines[1:]
    ]
    numbers, mark = tables.numbered(plan), plan.marks()
    for note, number in numbers.items():
        assert f"{number}. {note}" in lines
    for wire in plan.wires():
        marks = ", ".join(str(numbers[note]) for note in wire.notes)
        row = [mark[wire.start], str(wire.start), str(wire.end), wire.use.colour, wire.via, marks]
        assert row in rows

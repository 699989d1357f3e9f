"""Drawings, read like a person reads them: a row of a sheet is followed from end to end.

The only input is the SVG: a line, the field at its left end, the terminal at its right end, and the
texts beside both.
"""

import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, get_args

import matplotlib
import pytest
from PIL import ImageFont
from tools.docs import wiring_docs

from fpvcar.config import Colour, Shape, profiles
from fpvcar.runtime import paths
from fpvcar.wiring import drawing, parts, shapes
from fpvcar.wiring.header import PINS
from fpvcar.wiring.plan import BATTERY, PI, USES, End, Part, Plan, Terminal
from tests.unit.wiring.cars import CARS

SVG = "{http://www.w3.org/2000/svg}"
SHIPPED = [path.stem for path in sorted(paths.HARDWARE.glob("*.toml"))]
COLOUR_OF = {use.rgb: use.colour for use in USES}
PHONE_PX, LEAST_PX = 390, 11
"""Width of a phone's screen, and the smallest letters that are legible on it."""


class Seen(NamedTuple):
    """Wire as a row shows it: its mark, its colour, and the texts at its ends."""

    mark: str
    colour: str
    other: tuple[str, str]
    terminal: str
    below: str


def number(element: ET.Element, key: str) -> int:
    return int(element.attrib[key])


def groups(root: ET.Element, kind: str) -> Iterator[ET.Element]:
    return (one for one in root.iter(f"{SVG}g") if one.get("class") == kind)


def said(group: ET.Element) -> list[str]:
    return [one.text or "" for one in group.iter(f"{SVG}text")]


@cache
def roots(name: str) -> dict[str, ET.Element]:
    """Return the sheets of a car."""
    sheets = drawing.sheets(parts.plan_of(CARS[name], name))
    return {stem: ET.fromstring(text) for stem, text in sheets.items()}


def boxes(sheets: dict[str, str]) -> dict[str, ET.Element]:
    """Return the part's box on a sheet for each part with terminals; its name is above it."""
    found = {}
    for text in sheets.values():
        above = ""
        for one in ET.fromstring(text):
            if one.tag == f"{SVG}text" and one.get("font-weight") == "bold":
                above = one.text or ""
            if one.get("class") == "part":
                found[above] = one
    return found


def rows(root: ET.Element) -> Iterator[Seen]:
    """Yield the wires of a part."""
    terminals = {}
    for group in groups(root, "terminal"):
        circle = next(group.iter(f"{SVG}circle"))
        terminals[number(circle, "cx"), number(circle, "cy")] = said(group)
    for wire in groups(root, "wire"):
        edge, colour = wire.iter(f"{SVG}path")
        assert edge.attrib["d"] == colour.attrib["d"]
        x, y, end = map(int, re.fullmatch(r"M(\d+) (\d+)H(\d+)", edge.attrib["d"]).groups())  # type: ignore[union-attr]
        (field,) = (one for one in wire.findall(f"{SVG}rect") if number(one, "x") < x // 2)
        assert number(field, "x") + number(field, "width") == x, "a line begins at its field"
        assert number(field, "y") < y < number(field, "y") + number(field, "height")
        mark, *_, first, second = said(wire)
        name, below = terminals[end, y]
        yield Seen(mark, COLOUR_OF[colour.attrib["stroke"]], (first, second), name, below)


def other_end(end: End) -> tuple[str, str]:
    """Return the texts of a wire's other end: "pin 11", "GPIO 17"."""
    if end.part != PI:
        return end.part, end.terminal
    return f"pin {end.terminal}", PINS[int(end.terminal) - 1].name


def expected(plan: Plan, part: Part) -> set[tuple[str, str, tuple[str, str], str]]:
    """Return mark, colour, other end and terminal of all wires of a part."""
    marks = plan.marks()
    return {
        (marks[wire.start], wire.use.colour, other_end(other), here.terminal)
        for wire in plan.wires()
        for here, other in ((wire.start, wire.end), (wire.end, wire.start))
        if here.part == part.name
    }


def committed(name: str) -> dict[str, str]:
    folder = wiring_docs.PICTURES / name
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_drawings_exist_for_shipped_profiles_only() -> None:
    assert {path.name for path in wiring_docs.PICTURES.iterdir()} == set(SHIPPED)
    assert "bench" in SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_committed_drawings_are_the_output_of_make_docs(name: str) -> None:
    assert committed(name) == wiring_docs.files(name), "stale: make docs"
    shown = re.findall(r'src="([^"]+)"', committed(name)[wiring_docs.PAGE])
    assert {*shown, wiring_docs.PAGE} == set(committed(name))


def test_older_drawings_are_removed(tmp_path: Path) -> None:
    old = tmp_path / "pictures" / "gone" / "overview.svg"
    old.parent.mkdir(parents=True)
    old.touch()
    wiring_docs.write(tmp_path / "pictures")
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_committed_sheets_show_each_wire_at_both_ends(name: str) -> None:
    plan, files = parts.plan_of(CARS[name], name), committed(name)
    drawn = boxes({file: text for file, text in files.items() if file.endswith(".svg")})
    assert set(drawn) == {part.name for part in plan.all() if part.terminals}
    ends = {end for wire in plan.wires() for end in (wire.start, wire.end)}
    for part in plan.all():
        if part.terminals:
            found = list(rows(drawn[part.name]))
            assert {one[:4] for one in found} == expected(plan, part)
            assert all(one.below.startswith(one.colour) for one in found), "a print is grey"
            texts = said(drawn[part.name])
            assert not any("…" in text for text in texts)
            loose = [End(part.name, one.name) not in ends for one in part.terminals]
            assert texts.count("leave open") == sum(loose)


@pytest.mark.parametrize("name", CARS)
def test_pin_has_the_colour_and_the_other_end_of_its_wire(name: str) -> None:
    plan, root = parts.plan_of(CARS[name], name), roots(name)["pi"]
    assert len(list(groups(root, "pin"))) == 40
    for pin, group in zip(PINS, groups(root, "pin"), strict=True):
        wires = [wire for wire in plan.wires() if wire.start == End(PI, str(pin.number))]
        field = next(group.iter(f"{SVG}rect"))
        label, pin_name, *beside = said(group)
        assert (label, pin_name) == (str(pin.number), pin.name)
        assert field.attrib["fill"] == (wires[0].use.rgb if wires else shapes.PALE)
        if len(wires) == 1:
            assert all(
                shown.rstrip("…") == text[: len(shown.rstrip("…"))]
                for shown, text in zip(beside, wires[0].end, strict=True)
            )
        else:
            assert beside == ([f"{len(wires)} wires", wires[0].use.colour] if wires else [])


@pytest.mark.parametrize("name", CARS)
def test_overview_has_each_part_below_its_feeder_and_counts_wires_to_the_pi(name: str) -> None:
    plan, root = parts.plan_of(CARS[name], name), roots(name)["overview"]
    places = {}
    for block in groups(root, "block"):
        field = next(block.iter(f"{SVG}rect"))
        places[said(block)[0]] = number(field, "x"), number(field, "y")
    assert len(places) == len(plan.all())
    counts = {number(next(m.iter(f"{SVG}rect")), "y"): said(m) for m in groups(root, "mark")}
    for part in plan.all():
        x, y = places[part.name]
        ends = [wire for wire in plan.wires() if wire.end.part == part.name]
        to_pi = sum(wire.start.part == PI for wire in ends)
        assert counts.get(y + 10, ["0"]) == [str(to_pi)]
        feeders = [wire.start.part for wire in ends if wire.start.part != PI]
        if feeders:
            parent_x, parent_y = places[feeders[0]]
            assert parent_x < x and parent_y < y
            between = [a for a, b in places.values() if parent_y < b < y]
            assert all(a > parent_x for a in between), "the line crosses a block"


def sheets_of(name: str) -> list[tuple[str, ET.Element]]:
    drawn = list(roots(name).items())
    if name in SHIPPED:
        files = committed(name).items()
        drawn += [(file, ET.fromstring(text)) for file, text in files if file.endswith(".svg")]
    return drawn


@cache
def font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    """Return the widest font that a browser may choose."""
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    return ImageFont.truetype(folder / f"DejaVuSans{'-Bold' if bold else ''}.ttf", size)


def text_boxes(root: ET.Element) -> list[tuple[str, float, float, float, float]]:
    """Return each text with its left, upper, right and lower end."""
    found = []
    for one in root.iter(f"{SVG}text"):
        size, words = number(one, "font-size"), one.text or ""
        width = font(size, one.get("font-weight") == "bold").getlength(words)
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[one.get("text-anchor", "start")]
        left, y = number(one, "x") - share * width, number(one, "y")
        found.append((words, left, y - 0.74 * size, left + width, y + 0.22 * size))
    return found


@pytest.mark.parametrize("name", CARS)
def test_texts_are_legible_on_a_phone_and_never_overlap(name: str) -> None:
    for sheet, root in sheets_of(name):
        assert not {"width", "height"} & set(root.attrib), "it would print on two pages"
        *_, width, height = (int(one) for one in root.attrib["viewBox"].split())
        for one in root.iter(f"{SVG}text"):
            assert number(one, "font-size") * PHONE_PX / width >= LEAST_PX, (sheet, one.text)
        boxes = text_boxes(root)
        for words, left, top, right, bottom in boxes:
            assert left >= 0 and top >= 0 and right <= width and bottom <= height, (sheet, words)
        for (one_, x, y, r, b), (other, u, v, s, c) in combinations(boxes, 2):
            assert r <= u or s <= x or b <= v or c <= y, (sheet, one_, other)


@pytest.mark.parametrize("name", CARS)
def test_texts_stay_inside_their_fields(name: str) -> None:
    for sheet, root in sheets_of(name):
        fields = [
            tuple(number(one, key) for key in ("x", "y", "width", "height"))
            for one in root.iter(f"{SVG}rect")
            if one.get("rx")
        ]
        for words, left, top, right, bottom in text_boxes(root):
            middle = (left + right) / 2, (top + bottom) / 2
            for x, y, w, h in fields:
                if x < middle[0] < x + w and y < middle[1] < y + h:
                    assert x <= left and right <= x + w, (sheet, words)
                else:
                    beside = right <= x or x + w <= left or bottom <= y or y + h <= top
                    assert beside, (sheet, words)


def test_part_between_driver_and_motor_has_a_sheet_and_a_block() -> None:
    """A resistor in a motor's lead."""
    leads = (
        Part("MX1508", (Terminal("MOTOR-A 1"),)),
        Part(
            "2.2 Ω, Steering", (Terminal("1", End("MX1508", "MOTOR-A 1"), BATTERY), Terminal("2"))
        ),
        Part("Steering", (Terminal("1", End("2.2 Ω, Steering", "2"), BATTERY),), "100 nF across"),
    )
    sheets = drawing.sheets(Plan("", (), leads, ()))
    assert list(sheets) == ["overview", "pi", "mx1508", "2-2-ohm-steering", "steering"]
    box = boxes(sheets)["2.2 Ω, Steering"]
    seen = [(one.terminal, one.other) for one in rows(box)]
    assert seen == [("1", ("MX1508", "MOTOR-A 1")), ("2", ("Steering", "1"))]
    xs = [
        number(next(block.iter(f"{SVG}rect")), "x")
        for block in groups(ET.fromstring(sheets["overview"]), "block")
    ]
    assert xs == sorted(set(xs)), "each below the one before"


def test_long_and_strange_names_are_cut_not_drawn_over_others() -> None:
    text = """
        car.name = "A"
        motors.left = {forward = 17, reverse = 27}
        motors.right = {forward = 24, reverse = 23}
        sensors.tof.front-left-of-the-bumper = {power = 4}
    """
    buttons = {
        f"<{colour}> & the\a longest name": {
            "button": pin,
            "led": pin + 6,
            "colour": colour,
            "shape": shape,
        }
        for pin, (colour, shape) in enumerate(
            zip(get_args(Colour)[:4], get_args(Shape)[:4], strict=True), start=5
        )
    }
    plan = parts.plan_of(profiles.parse(tomllib.loads(text) | {"buttons": buttons}), "")
    drawn = {stem: ET.fromstring(text) for stem, text in drawing.sheets(plan).items()}
    blocks = [said(block)[0] for block in groups(drawn["overview"], "block")]
    assert "VL53L0X front-left-of-the-…" in blocks
    assert [one for one in blocks if one.startswith("Button <red> & t") and one.endswith("…")]
    assert not any("\a" in one for root in drawn.values() for one in said(root))
    assert next(rows(drawn["mx1508"])) == ("11", "green", ("pin 11", "GPIO 17"), "IN1", "green (2)")


def test_names_that_differ_by_signs_only_have_sheets_of_their_own() -> None:
    names = ("A. <a>", "B <a>", "A (a)", "<>", "Pi", "B, b")
    plan = Plan("", (), tuple(Part(name, (Terminal("1"),)) for name in names), ())
    assert list(drawing.sheets(plan)) == ["overview", "pi", "a-a", "b", "a-a-4", "part", "pi-6"]

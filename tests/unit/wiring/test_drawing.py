"""Drawings, read like a person reads them: a line is followed from end to end.

The only input is the committed file: the ends of a line, the pin's field or the part's terminal
there, and the text beside it.
"""

import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from tools.docs import wiring_docs

from fpvcar.config import Colour, Shape, profiles
from fpvcar.runtime import paths
from fpvcar.wiring import drawing, parts
from fpvcar.wiring.header import PINS
from fpvcar.wiring.plan import PI, USES, Plan
from tests.unit.wiring.cars import CARS

SVG = "{http://www.w3.org/2000/svg}"
SHIPPED = [path.stem for path in sorted(paths.HARDWARE.glob("*.toml"))]
COLOUR_OF = {use.rgb: use.colour for use in USES}
Point = tuple[int, int]
Line = tuple[Point, Point]


class Seen(NamedTuple):
    """Line with its colour, all points that it touches, and its pieces."""

    colour: str
    ends: frozenset[str]
    pieces: tuple[Line, ...]


def number(element: ET.Element, key: str) -> int:
    return int(element.attrib[key])


def groups(root: ET.Element, kind: str) -> Iterator[ET.Element]:
    return (one for one in root.iter(f"{SVG}g") if one.get("class") == kind)


def words(group: ET.Element) -> list[ET.Element]:
    return list(group.iter(f"{SVG}text"))


def said(group: ET.Element) -> list[str]:
    return [one.text or "" for one in words(group)]


def terminals(root: ET.Element) -> dict[Point, str]:
    """Return the name of each terminal, such as "MX1508 IN1", by its place."""
    found = {}
    for part in groups(root, "part"):
        name = said(part)[0]
        for circle in part.iter(f"{SVG}circle"):
            x, y = number(circle, "cx"), number(circle, "cy")
            beside = min(
                (one for one in words(part) if abs(number(one, "y") - y) < 8),
                key=lambda one: abs(number(one, "x") - x),
            )
            found[x, y] = f"{name} {beside.text}"
    return found


def pin_at(root: ET.Element, point: Point) -> str | None:
    """Return the pin on whose edge a line begins: "pin 11 (GPIO 17)"."""
    x, y = point
    for pin in groups(root, "pin"):
        (field,) = pin.iter(f"{SVG}rect")
        left, top = number(field, "x"), number(field, "y")
        right, bottom = left + number(field, "width"), top + number(field, "height")
        on_edge = x in (left, right) or y in (top, bottom)
        if left <= x <= right and top <= y <= bottom and on_edge:
            return "pin {} ({})".format(*said(pin))
    return None


def pieces(way: str) -> list[tuple[Point, list[Line]]]:
    """Return each stroke of a path: its start, and its straight pieces."""
    strokes = []
    for stroke in way.split(" M"):
        x, y = (int(one) for one in re.match(r"M?(\d+) (\d+)", stroke).groups())  # type: ignore[union-attr]
        start, lines = (x, y), []
        for axis, value in re.findall(r"([HV])(\d+)", stroke):
            to = (int(value), y) if axis == "H" else (x, int(value))
            lines.append(((x, y), to))
            x, y = to
        strokes.append((start, lines))
    return strokes


def lines_of(root: ET.Element) -> list[Seen]:
    """Return every line, with all that it touches."""
    places, found = terminals(root), []
    for wire in groups(root, "wire"):
        edge, colour = wire.iter(f"{SVG}path")
        assert edge.attrib["d"] == colour.attrib["d"]
        (_, (trunk,)), *taps = pieces(colour.attrib["d"])
        ends = set()
        for start, way in taps:
            end = places.get(start) or pin_at(root, start)
            assert end is not None, f"a line ends at {start}, where nothing is"
            (track_x, low), (_, high) = trunk
            assert way[-1][1][0] == track_x and low <= way[-1][1][1] <= high
            ends.add(end)
        strokes = [line for _, way in taps for line in way]
        rgb = colour.attrib["stroke"]
        found.append(Seen(COLOUR_OF[rgb], frozenset(ends), (trunk, *strokes)))
    return found


def wanted(plan: Plan) -> set[tuple[str, frozenset[str]]]:
    """Return the lines of a plan: colour, and all ends."""
    nets: dict[str, set[str]] = {}
    colours = {}
    for wire in plan.wires():
        nets.setdefault(str(wire.start), {str(wire.start)}).add(str(wire.end))
        colours[str(wire.start)] = wire.use.colour
    return {(colours[start], frozenset(ends)) for start, ends in nets.items()}


def read(path: Path) -> ET.Element:
    return ET.fromstring(path.read_text(encoding="utf-8"))


def test_drawings_exist_for_shipped_profiles_only() -> None:
    drawn = {path.stem for path in wiring_docs.PICTURES.glob("*.svg")}
    assert drawn == set(SHIPPED) and "bench" in drawn


@pytest.mark.parametrize("name", SHIPPED)
def test_committed_drawing_lines_are_the_profile_wires(name: str) -> None:
    root = read(wiring_docs.PICTURES / f"{name}.svg")
    seen = {(line.colour, line.ends) for line in lines_of(root)}
    assert seen == wanted(parts.plan_of(CARS[name], name)), "stale: make docs"


@pytest.mark.parametrize("name", SHIPPED)
def test_committed_drawing_is_the_output_of_make_docs(name: str) -> None:
    committed = (wiring_docs.PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert committed == wiring_docs.drawings()[name], "stale: make docs"


@pytest.mark.parametrize("name", CARS)
def test_terminal_labels_name_the_wire_start_and_colour(name: str) -> None:
    """A print in black and white is enough."""
    plan = parts.plan_of(CARS[name], name)
    root = ET.fromstring(drawing.svg(plan))
    assert {(one.colour, one.ends) for one in lines_of(root)} == wanted(plan)
    text = [words for part in groups(root, "part") for words in said(part)]
    for wire in plan.wires():
        pin = None if wire.start.part != PI else PINS[int(wire.start.terminal) - 1]
        start = str(wire.start) if pin is None else pin.name
        start = f"{plan.marks()[wire.start]} · {start}"
        assert any(one.startswith(f"{start} · {wire.use.colour}") for one in text)


@pytest.mark.parametrize("name", CARS)
def test_pin_has_the_colour_of_its_wire(name: str) -> None:
    plan = parts.plan_of(CARS[name], name)
    root = ET.fromstring(drawing.svg(plan))
    uses = {str(wire.start): wire.use.rgb for wire in plan.wires()}
    assert len(list(groups(root, "pin"))) == 40
    for pin in groups(root, "pin"):
        (field,) = pin.iter(f"{SVG}rect")
        name_of_pin = "pin {} ({})".format(*said(pin))
        assert field.attrib["fill"] == uses.get(name_of_pin, drawing.PALE)


@pytest.mark.parametrize("name", CARS)
def test_each_wire_has_its_mark_at_every_terminal(name: str) -> None:
    """Wires of one colour side by side differ by it, also in a black-and-white print."""
    plan = parts.plan_of(CARS[name], name)
    root = ET.fromstring(drawing.svg(plan))
    marks = dict(marks_of(root))
    assert len(set(plan.marks().values())) == len(plan.marks())
    lines, places = lines_of(root), terminals(root).items()
    of_line = {line: {text for at, text in marks.items() if on(line, at)} for line in lines}
    for line, texts in of_line.items():
        assert len(texts) == 1, (line.ends, texts)
        for end in line.ends & {name for _, name in places}:
            assert any(
                on(line, at) and at[1] == y and abs(at[0] - x) < 100
                for at in marks
                for (x, y), name in places
                if name == end
            ), end
    assert len({text for texts in of_line.values() for text in texts}) == len(lines)
    for one, other in combinations(sorted(lines, key=trunk), 2):
        (x, low, high), (x2, low2, high2) = trunk(one), trunk(other)
        if one.colour == other.colour and x2 - x < 20 and min(high, high2) - max(low, low2) > 150:
            assert all(
                any(x == at[0] and on(line, at) for at in marks)
                for line, x in ((one, x), (other, x2))
            )


@pytest.mark.parametrize("name", CARS)
def test_marks_cover_neither_each_other_nor_a_part(name: str) -> None:
    root = ET.fromstring(drawing.svg(parts.plan_of(CARS[name], name)))
    marks = [
        tuple(number(next(group.iter(f"{SVG}rect")), key) for key in ("x", "y", "width", "height"))
        for group in groups(root, "mark")
    ]
    for x, y, w, h in marks:
        assert not any(
            x + w > u and u + r > x and y + h > v and v + s > y for u, v, r, s in boxes(root)
        )
    for (x, y, w, h), (u, v, r, s) in combinations(marks, 2):
        assert x + w <= u or u + r <= x or y + h <= v or v + s <= y


def marks_of(root: ET.Element) -> Iterator[tuple[Point, str]]:
    """Yield the place and the text of each mark."""
    for group in groups(root, "mark"):
        box, (text,) = next(group.iter(f"{SVG}rect")), said(group)
        x, width = number(box, "x"), number(box, "width")
        yield (x + width // 2, number(box, "y") + 7), text


def on(line: Seen, at: Point) -> bool:
    """Return True if a point lies on a line."""
    return any(
        min(a, c) <= at[0] <= max(a, c) and min(b, d) <= at[1] <= max(b, d)
        for (a, b), (c, d) in line.pieces
    )


def trunk(line: Seen) -> tuple[int, int, int]:
    """Return place, upper and lower end of a line's vertical piece."""
    (x, low), (_, high) = line.pieces[0]
    return x, min(low, high), max(low, high)


def overlap(one: Line, other: Line) -> bool:
    """Return True if two lines run on top of one another."""
    for across in (0, 1):
        same = {point[across] for point in (*one, *other)}
        if len(same) == 1:
            along = 1 - across
            (a, b), (c, d) = (sorted(p[along] for p in line) for line in (one, other))
            return max(a, c) < min(b, d)
    return False


@pytest.mark.parametrize("name", CARS)
def test_wires_never_overlap(name: str) -> None:
    root = ET.fromstring(drawing.svg(parts.plan_of(CARS[name], name)))
    for one, other in combinations(lines_of(root), 2):
        for line in one.pieces:
            assert not any(overlap(line, more) for more in other.pieces), (one.ends, other.ends)


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
    root = ET.fromstring(drawing.svg(plan))
    names = [said(part)[0] for part in groups(root, "part")]
    assert "VL53L0X front-left-of-t…" in names
    lines = [words for part in groups(root, "part") for words in said(part)]
    assert [one for one in lines if one.startswith("Button <red> & t") and one.endswith("…")]
    assert not any("\a" in one for one in lines)
    assert "11 · GPIO 17 · green (2)" in lines


def boxes(root: ET.Element) -> list[tuple[int, int, int, int]]:
    found = []
    for kind in ("part", "pin"):
        for group in groups(root, kind):
            box = next(group.iter(f"{SVG}rect"))
            found.append(tuple(number(box, k) for k in ("x", "y", "width", "height")))
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("name", CARS)
def test_parts_neither_overlap_nor_leave_the_picture(name: str) -> None:
    root = ET.fromstring(drawing.svg(parts.plan_of(CARS[name], name)))
    *_, width, height = (int(one) for one in root.attrib["viewBox"].split())
    assert not {"width", "height"} & set(root.attrib), "it would print on two pages"
    for x, y, w, h in boxes(root):
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
    for (x, y, w, h), (u, v, r, s) in combinations(boxes(root), 2):
        assert x + w <= u or u + r <= x or y + h <= v or v + s <= y

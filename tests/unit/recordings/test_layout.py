"""Topics and fields in docs/reference/foxglove-layout.json exist in recordings."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from testkit.recorder.recording import PROFILE

from fpvcar.recordings import messages, topics

LAYOUT = json.loads(
    (Path(__file__).parents[3] / "docs" / "reference" / "foxglove-layout.json").read_text()
)
SENSORS = [*PROFILE.sensors.tof, *PROFILE.sensors.ultrasound]
TOPICS = {one.name: one for one in topics.topics(SENSORS)}


def texts(value: Any) -> Iterator[str]:
    """Yield all texts in a layout, names of fields too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def field_of(schema: dict[str, Any], path: list[str]) -> bool:
    """Return True if a JSON Schema has this field, in any of its alternatives."""
    known = schema.get("$defs", {})

    def found(node: dict[str, Any], left: list[str]) -> bool:
        if "$ref" in node:
            node = known[node["$ref"].rpartition("/")[2]]
        if any(found(one, left) for one in node.get("anyOf", ())):
            return True
        inner = node.get("properties", {})
        return not left or left[0] in inner and found(inner[left[0]], left[1:])

    return found(schema, path)


def test_layout_topics_and_fields_are_recorded() -> None:
    named = [one for one in texts(LAYOUT["configById"]) if one.startswith("/")]
    assert len(named) >= 10
    for one in named:
        match = re.fullmatch(r"(/[a-z/]+)((?:\.[a-z_]+)*)", one)
        assert match is not None and match[1] in TOPICS, one
        if match[2]:
            schema = msgspec.json.decode(TOPICS[match[1]].schema_data)
            assert field_of(schema, match[2].strip(".").split(".")), one


def test_unknown_field_is_detected() -> None:
    schema = msgspec.json.decode(TOPICS[messages.STEP].schema_data)
    assert field_of(schema, ["wish", "throttle"])
    assert not field_of(schema, ["wish", "brake"]) and not field_of(schema, ["brake"])


def test_panels_are_placed_and_all_ranges_drawn() -> None:
    placed = {one for one in texts(LAYOUT["layout"]) if "!" in one}
    assert placed == set(LAYOUT["configById"])
    drawn = LAYOUT["configById"]["3D!around"]["topics"]
    assert set(drawn) == {messages.POINTS + name for name in SENSORS}

"""The channels of a file: each topic of format.py with its schema. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fpvcar.recording import format, protobuf


class Topic(NamedTuple):
    """A channel of a file: its topic, coding, and schema."""

    name: str
    coding: str
    schema: str
    schema_coding: str
    schema_data: bytes


def json_schema(kind: type[Struct]) -> bytes:
    """A JSON Schema whose root is an object: Foxglove resolves no $ref there."""
    (root,), defined = msgspec.json.schema_components(
        [kind], ref_template="#/$defs/{name}"
    )
    name = str(root["$ref"]).rpartition("/")[2]
    whole = {"title": name, **defined.pop(name)}
    return format.encode_json({**whole, "$defs": defined} if defined else whole)


def topics(ranges: Iterable[str] = ()) -> tuple[Topic, ...]:
    """All topics of a file; `ranges` are the names of the car's range sensors."""
    video = protobuf.descriptor_set(protobuf.TIMESTAMP_FILE, protobuf.VIDEO_FILE)
    log = protobuf.descriptor_set(protobuf.TIMESTAMP_FILE, protobuf.LOG_FILE)
    kinds: dict[str, type[Struct]] = dict(format.JSON_KINDS)
    kinds |= {format.RANGE + name: format.Reading for name in ranges}
    return (
        Topic(format.CAMERA, "protobuf", "foxglove.CompressedVideo", "protobuf", video),
        Topic(format.EVENT, "protobuf", "foxglove.Log", "protobuf", log),
        Topic(format.MARK, "protobuf", "foxglove.Log", "protobuf", log),
        *(
            Topic(name, "json", f"fpvcar.{kind.__name__}", "jsonschema",
                  json_schema(kind))
            for name, kind in kinds.items()
        ),
    )  # fmt: skip

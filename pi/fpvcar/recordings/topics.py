"""Channels of a file: each topic of messages.py with its schema. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fpvcar.recordings import codec, messages
from fpvcar.recordings.mcap import calibration, cloud, frames, joint_state, protobuf


class Topic(NamedTuple):
    """Channel of a file: topic, encoding and schema."""

    name: str
    coding: str
    schema: str
    schema_coding: str
    schema_data: bytes


def json_schema(kind: type[Struct]) -> bytes:
    """Return a JSON Schema with an object as root: Foxglove does not resolve $ref there."""
    (root,), defined = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    name = str(root["$ref"]).rpartition("/")[2]
    schema = {"title": name, **defined.pop(name)}
    return codec.encode_json({**schema, "$defs": defined} if defined else schema)


def topics(ranges: Iterable[str] = (), servos: Iterable[str] = ()) -> tuple[Topic, ...]:
    """Return all topics of a file; `ranges` are the names of the car's range sensors, `servos`
    those of the servos that do not steer."""
    video = protobuf.descriptor_set(protobuf.TIMESTAMP_FILE, protobuf.VIDEO_FILE)
    log = protobuf.descriptor_set(protobuf.TIMESTAMP_FILE, protobuf.LOG_FILE)
    points = protobuf.descriptor_set(*cloud.FILES)
    lens = protobuf.descriptor_set(*calibration.FILES)
    places = protobuf.descriptor_set(*frames.FILES)
    kinds: dict[str, type[Struct]] = dict(messages.JSON_KINDS)
    names = tuple(ranges)
    kinds |= {messages.RANGE + name: messages.Reading for name in names}
    kinds |= {messages.SERVO + name: messages.Servo for name in servos}
    return (
        Topic(messages.CAMERA, "protobuf", "foxglove.CompressedVideo", "protobuf", video),
        Topic(messages.TRANSFORMS, "protobuf", "foxglove.FrameTransforms", "protobuf", places),
        Topic(messages.CALIBRATION, "protobuf", "foxglove.CameraCalibration", "protobuf", lens),
        Topic(messages.EVENT, "protobuf", "foxglove.Log", "protobuf", log),
        Topic(messages.MARK, "protobuf", "foxglove.Log", "protobuf", log),
        Topic(messages.PLOT, "cdr", joint_state.SCHEMA, "ros2msg", joint_state.DEFINITION),
        *(
            Topic(name, "json", f"fpvcar.{kind.__name__}", "jsonschema", json_schema(kind))
            for name, kind in kinds.items()
        ),
        *(
            Topic(messages.POINTS + name, "protobuf", "foxglove.PointCloud", "protobuf", points)
            for name in names
        ),
    )

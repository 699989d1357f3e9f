"""Conversion of the messages of a recording to and from bytes. Pure."""

from typing import Any

import msgspec

from fpvcar.recordings.mcap import calibration, cloud, frames, joint_state, protobuf, records
from fpvcar.recordings.mcap.parsing import RecordError
from fpvcar.recordings.messages import (
    CALIBRATION,
    CAMERA,
    EVENT,
    JSON_KINDS,
    MARK,
    METADATA,
    NAMED_KINDS,
    PLOT,
    POINTS,
    TRANSFORMS,
    About,
    Calibration,
    Event,
    FormatError,
    Message,
    Picture,
    Plot,
    Points,
    Transforms,
)

_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    topic: msgspec.json.Decoder(kind) for topic, kind in JSON_KINDS.items()
}
_named_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    prefix: msgspec.json.Decoder(kind) for prefix, kind in NAMED_KINDS.items()
}
_encoder = msgspec.json.Encoder()


def encode(message: Message) -> bytes:
    """Encode any message. Non-finite floats become null."""
    if isinstance(message, Picture):
        return protobuf.video(message.capture_ns, message.frame_id, message.unit, message.coding)
    if isinstance(message, Event):
        return protobuf.log(message.time_ns, message.level, message.text, message.name)
    if isinstance(message, Transforms):
        return frames.transforms(message.time_ns, message.transforms)
    if isinstance(message, Calibration):
        return calibration.calibration(message.time_ns, message.frame_id, message.camera)
    if isinstance(message, Plot):
        return joint_state.joint_state(*message)
    if isinstance(message, Points):
        return cloud.cloud(message.time_ns, message.frame_id, message.points)
    return _encoder.encode(message)


def encode_json(value: object) -> bytes:
    """Encode an fpvcar value as JSON."""
    return _encoder.encode(value)


def encode_metadata(about: About) -> bytes:
    """Encode the metadata record of a recording."""
    texts = {
        "car": about.car,
        "version": about.version,
        "recording": about.recording,
        "segment": str(about.segment),
        "utc_offset_ns": str(about.utc_offset_ns),
        "profile": encode_json(about.profile).decode(),
    }
    return records.metadata(METADATA, texts)


def decode(topic: str, data: bytes) -> Message:
    """Decode a message of a known topic. Raises FormatError."""
    try:
        if topic == CAMERA:
            return _picture(data)
        if topic in (EVENT, MARK):
            return _event(data)
        if topic == TRANSFORMS:
            return Transforms(*frames.take_transforms(data))
        if topic == CALIBRATION:
            time_ns, frame_id, camera = calibration.take_calibration(data)
            return Calibration(time_ns, camera, frame_id)
        if topic == PLOT:
            return Plot(*joint_state.take_joint_state(data))
        if topic.startswith(POINTS):
            return _points(data)
        decoder = _decoders.get(topic) or next(
            (one for prefix, one in _named_decoders.items() if topic.startswith(prefix)), None
        )
        if decoder is None:
            raise FormatError(f"unknown topic {topic!r}")
        message: Message = decoder.decode(data)
        return message
    except (msgspec.DecodeError, UnicodeError, RecordError) as fault:
        raise FormatError(f"{topic}: {fault}") from None


def _picture(data: bytes) -> Picture:
    values = dict(protobuf.fields(data))
    unit = values.get(3, b"")
    if isinstance(unit, int):
        raise RecordError("a number where a picture was expected")
    return Picture(
        protobuf.take_timestamp(values.get(1, b"")),
        unit,
        protobuf.take_text(values.get(4, b"")),
        protobuf.take_text(values.get(2, b"")),
    )


def _event(data: bytes) -> Event:
    values = dict(protobuf.fields(data))
    level = values.get(2, 0)
    if isinstance(level, bytes):
        raise RecordError("bytes where a level was expected")
    return Event(
        protobuf.take_timestamp(values.get(1, b"")),
        level,
        protobuf.take_text(values.get(3, b"")),
        protobuf.take_text(values.get(4, b"")),
    )


def _points(data: bytes) -> Points:
    values = dict(protobuf.fields(data))
    return Points(
        protobuf.take_timestamp(values.get(1, b"")),
        cloud.take_points(values.get(6, b"")),
        protobuf.take_text(values.get(2, b"")),
    )

"""Whole recording in foreign programs: mcap in Python, @mcap/core, PyAV, rerun."""

import io
import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import av
from mcap.reader import NonSeekingReader, make_reader
from mcap.records import Channel, Chunk, Schema
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer
from mcap_protobuf.decoder import DecoderFactory

from fpvcar.recordings import codec, messages

HAS_RERUN = platform.machine() == "x86_64"
"""Condition of pyproject.toml for rerun."""
CHANNEL = re.compile(r"^ *\d+ +(/\S+) +(\d+) ", re.MULTILINE)
JAVASCRIPT = Path(__file__).parents[2] / "tests" / "web" / "recordings" / "mcap.js"


def theirs(compression: CompressionType = CompressionType.NONE, **options: bool) -> bytes:
    """Return a file by the writer of mcap, of 40 messages in chunks of ten."""
    out = io.BytesIO()
    writer = Writer(out, compression=compression, **options)  # type: ignore[arg-type]
    writer.start("", "someone else")
    schema = writer.register_schema("fpvcar.Lights", "jsonschema", b"{}")
    channel = writer.register_channel(messages.LIGHTS, "json", schema)
    for number in range(40):
        writer.add_message(channel, number, codec.encode(messages.Lights(True)), number)
        if number % 10 == 9 and options.get("use_chunking", True):
            writer.flush()  # type: ignore[no-untyped-call]
    writer.add_attachment(1, 2, "a", "text/plain", b"words")
    writer.add_metadata("somebody's", {"car": "Other"})
    writer.finish()  # type: ignore[no-untyped-call]
    return out.getvalue()


def by_mcap(path: Path) -> Counter[str]:
    """Count messages by topic: by the indexes, in the order of time, and as a stream; every CRC
    is checked, every schema and message decoded."""
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        assert summary is not None and summary.statistics is not None
        counted: Counter[str] = Counter()
        before_ns, decoder = 0, av.CodecContext.create("h264", "r")
        pictures = 0
        for schema, channel, message in reader.iter_messages():
            assert schema is not None and message.log_time >= before_ns
            before_ns = message.log_time
            counted[channel.topic] += 1
            if channel.message_encoding == "json":
                fits(schema, json.loads(message.data))
        for _, _, _, video in reader.iter_decoded_messages(topics=[messages.CAMERA]):
            assert video.format == "h264" and video.timestamp.seconds > 0
            pictures += len(decoder.decode(av.Packet(video.data)))
        pictures += len(decoder.decode(None))
        decoded = [
            log.message for _, _, _, log in reader.iter_decoded_messages(topics=[messages.EVENT])
        ]
        assert len(decoded) == counted[messages.EVENT] and all(decoded)
        drawn = [one for one in counted if one.startswith(messages.POINTS)]
        for _, _, _, cloud in reader.iter_decoded_messages(topics=drawn or [""]):
            assert len(cloud.data) in (0, 5 * cloud.point_stride)
    assert pictures >= counted[messages.CAMERA] - 1, "a film may begin in its middle"
    statistics = summary.statistics
    by_channel = {
        summary.channels[number].topic: count
        for number, count in statistics.channel_message_counts.items()
        if count
    }
    assert by_channel == counted and statistics.message_count == counted.total()
    assert statistics.chunk_count == len(summary.chunk_indexes)
    assert streamed(path) == counted
    return counted


def streamed(path: Path) -> Counter[str]:
    """Count the same from the beginning to the end, without indexes."""
    counted: Counter[str] = Counter()
    with path.open("rb") as file:
        for _, channel, _ in NonSeekingReader(file, validate_crcs=True).iter_messages():
            counted[channel.topic] += 1
    with path.open("rb") as file:
        records = list(StreamReader(file, emit_chunks=True, validate_crcs=True).records)
    assert sum(isinstance(one, Chunk) for one in records) > 0
    assert any(isinstance(one, Channel) for one in records), "again behind the data"
    return counted


def fits(schema: Schema, message: dict[str, Any]) -> None:
    """Check that a message has only fields that its schema names."""
    assert schema.encoding == "jsonschema"
    said = json.loads(schema.data)
    assert said["type"] == "object" and said["title"] == schema.name.partition(".")[2]
    assert set(message) <= set(said["properties"]), schema.name
    assert set(said.get("required", ())) <= set(message), schema.name


def by_javascript(path: Path) -> Any:
    """Return the output of recordings/mcap.js."""
    done = subprocess.run(["node", JAVASCRIPT, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_rerun(path: Path, scratch: Path) -> Counter[str]:
    """Count messages by topic; its check finds no fault, the pictures become its video."""
    said = rerun(scratch, "mcap", "check", "--full", str(path))
    rows = [line.split() for line in said.splitlines() if " /" in line and "—" in line]
    assert rows and all(row[0] == "ok" for row in rows), said
    rerun(scratch, "mcap", "convert", str(path), "-o", str(scratch / "its.rrd"))
    made = rerun(scratch, "rrd", "print", str(scratch / "its.rrd"))
    assert "VideoStream:sample" in made
    assert "/points/" not in said or "Points3D:positions" in made, "not drawn"
    assert "/tf" not in said or "Transform3D:translation" in made, "no places"
    assert "/camera_info" not in said or "Pinhole:image_from_camera" in made, "no lens"
    assert "/plot" not in said or "Scalars:scalars" in made, "no curves"
    info = rerun(scratch, "mcap", "info", str(path))
    found = {topic: int(count) for topic, count in CHANNEL.findall(info)}
    return Counter({topic: count for topic, count in found.items() if count})


def rerun(scratch: Path, *words: str) -> str:
    """Run rerun; return its output. `scratch` is its home: it keeps no other files, and sends no
    data."""
    home = {"HOME": str(scratch), "XDG_CONFIG_HOME": str(scratch / "config")}
    program = Path(sys.executable).with_name("rerun")
    for line in (("analytics", "disable"), words):
        done = subprocess.run(
            [program, *line], env={**os.environ, **home}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    return done.stdout

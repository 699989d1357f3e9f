"""`fpvstation foxglove`: a driven bench car in a client of Foxglove's protocol."""

import asyncio
import base64
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import websockets
from mcap.reader import make_reader
from testkit.driver import Driver, sit_down
from testkit.harness import RunningBench, apart, started, wait_for
from testkit.network.ports import free_port

from fpvcar.recordings import codec, messages
from fpvstation.fetch import client
from fpvstation.fetch.cars import Cars

pytestmark = pytest.mark.e2e
PROTOCOL = websockets.Subprotocol("foxglove.sdk.v1")
"""Foxglove's WebSocket protocol: github.com/foxglove/ws-protocol."""
DATA = struct.Struct("<BIQ")


async def pair(bench: RunningBench, home: Path) -> None:
    url = f"http://127.0.0.1:{bench.port}"
    code = json.loads((bench.state / "codes.json").read_text())["grown_up"]
    made = await client.pair(url, "", code, "workshop")
    Cars(home).add(made, url, "")


async def watch(port: int, topics: set[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the channels, and the first message of each of these topics."""
    found, channels = dict[str, bytes](), dict[str, Any]()
    async with (
        asyncio.timeout(60.0),
        websockets.connect(
            f"ws://127.0.0.1:{port}", subprotocols=[PROTOCOL], max_size=None
        ) as socket,
    ):
        async for message in socket:
            if isinstance(message, str):
                said = json.loads(message)
                if said["op"] == "advertise":
                    new = {channel["topic"]: channel for channel in said["channels"]}
                    channels |= new
                    wanted = [
                        {"id": channel["id"], "channelId": channel["id"]}
                        for topic, channel in new.items()
                        if topic in topics
                    ]
                    await socket.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
            elif message[0] == 1:
                _, number, _ = DATA.unpack_from(message)
                (topic,) = (one for one in topics if channels[one]["id"] == number)
                found.setdefault(topic, message[DATA.size :])
                if found.keys() == topics:
                    break
    return channels, found


def test_live_topics_are_those_of_the_recording(tmp_path: Path) -> None:
    recordings, port = tmp_path / "recordings", free_port()
    state = tmp_path / "own/fpvstation"
    state.mkdir(parents=True)
    topics = {messages.CAMERA, messages.STEP, messages.BATTERY, messages.TRANSFORMS}
    with started(tmp_path, f"--set=recording.directory = '{recordings}'") as bench:
        apart(lambda: asyncio.run(pair(bench, state)))
        log_path = tmp_path / "foxglove.log"
        with Driver(bench.port) as driver, log_path.open("wb") as log:
            sit_down(driver)
            driver.wish = (0.3, 0.0)
            process = subprocess.Popen(
                [sys.executable, "-m", "fpvstation", "foxglove", f"--port={port}"],
                env={**os.environ, "XDG_STATE_HOME": str(state.parent)},
                stdout=log,
                stderr=log,
            )
            try:
                wait_for(lambda: "ws://" in log_path.read_text(), "no server", 30.0)
                channels, found = apart(lambda: asyncio.run(watch(port, topics)))
                bench.kill("run")  # the bench starts it again
                again = apart(lambda: asyncio.run(watch(port, {messages.HEALTH})))[0]
            finally:
                process.send_signal(signal.SIGINT)
                assert process.wait(20.0) == 0
        said = log_path.read_text()
        assert "trying again" in said and "connected again" in said
    with min(recordings.glob("*.mcap")).open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary
    filed = {one.topic: one for one in summary.channels.values()}
    assert channels.keys() == again.keys() == filed.keys()
    for topic, channel in channels.items():
        schema = summary.schemas[filed[topic].schema_id]
        binary = channel["schemaEncoding"] == "protobuf"
        data = base64.b64decode(channel["schema"]) if binary else channel["schema"].encode()
        assert (channel["encoding"], channel["schemaName"], channel["schemaEncoding"], data) == (
            filed[topic].message_encoding,
            schema.name,
            schema.encoding,
            schema.data,
        )
    step = codec.decode(messages.STEP, found[messages.STEP])
    assert isinstance(step, messages.Step) and step.now_ns > 0
    picture = codec.decode(messages.CAMERA, found[messages.CAMERA])
    assert isinstance(picture, messages.Picture) and picture.unit[:4] == b"\0\0\0\x01"

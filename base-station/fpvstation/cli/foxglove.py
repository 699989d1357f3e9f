"""Verb `fpvstation foxglove`: shows a car live in Foxglove, with the topics of its recordings.

    car -- /api/station/topics, MCAP --> Records --> Show --> Foxglove's WebSocket server

The library is Foxglove's own, foxglove-sdk. Its server serves each topic with the schema of the
recordings, so a layout that was made on a recording shows the car that drives now.
"""

import argparse
import asyncio
import contextlib
import importlib
import struct
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from fpvcar.http.addresses import is_loopback
from fpvcar.recordings.mcap import records
from fpvcar.recordings.mcap.parsing import Channel, RecordError, Schema, take_channel, take_schema
from fpvcar.runtime.arguments import within
from fpvcar.runtime.texts import NOT_INSTALLED
from fpvcar.runtime.units import MB
from fpvstation.errors import StationError
from fpvstation.fetch.cars import PORT_MOST, Car, Cars
from fpvstation.fetch.client import HttpCar, session
from fpvstation.fetch.pull import CarFault, invalid
from fpvstation.service import state_directory

INSTALL = "pip install 'fpvcar[foxglove]'"
PORT = 8765
"""Port that Foxglove proposes."""
RECORD_MOST = 8 * MB
FIRST_WAIT_S, LAST_WAIT_S = 1.0, 10.0
"""Wait after the first lost connection and after many."""
HELP = """\
show a car live in Foxglove, with the topics of its recordings

  fpvstation foxglove Plague      then in Foxglove: Open connection, ws://localhost:8765

The car must be paired. A layout that was made on a recording works on the live car, too.
"""


class Message(NamedTuple):
    """Message record: the number of its channel, its time and its data."""

    channel: int
    log_ns: int
    data: bytes


class Records:
    """Parser of a stream of records. Trusts no length."""

    def __init__(self) -> None:
        self._data, self._begun = bytearray(), False

    def add(self, data: bytes) -> Iterator[Schema | Channel | Message]:
        """Take bytes; yield the records that are complete. Raises CarFault."""
        self._data += data
        if not self._begun and len(self._data) >= len(records.MAGIC):
            if not self._data.startswith(records.MAGIC):
                raise invalid("no MCAP")
            del self._data[: len(records.MAGIC)]
            self._begun = True
        while self._begun and len(self._data) >= records.HEAD.size:
            opcode, length = records.HEAD.unpack_from(self._data)
            if length > RECORD_MOST:
                raise invalid(f"a record of {length} bytes")
            end = records.HEAD.size + length
            if len(self._data) < end:
                return
            body = bytes(self._data[records.HEAD.size : end])
            del self._data[:end]
            try:
                record = _record(opcode, body)
            except (RecordError, struct.error) as fault:
                raise invalid(str(fault)) from None
            if record is not None:
                yield record


def _record(opcode: int, body: bytes) -> Schema | Channel | Message | None:
    if opcode == records.SCHEMA:
        return take_schema(body)
    if opcode == records.CHANNEL:
        return take_channel(body)
    if opcode != records.MESSAGE:
        return None
    number, _, log_ns, _ = struct.unpack_from("<HIQQ", body)
    return Message(number, log_ns, body[records.MESSAGE_FIXED :])


class Output(Protocol):
    """Channel of the library."""

    def log(self, msg: bytes, *, log_time: int) -> None: ...

    def close(self) -> None: ...


class Show:
    """Channels of Foxglove's server. They stay while the connection to the car is lost."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._open: dict[str, tuple[Channel, Schema, Output]] = {}
        self._schemas: dict[int, Schema] = {}
        self._outputs: dict[int, Output] = {}

    def begin(self) -> None:
        """Forget the numbers of the last connection."""
        self._schemas, self._outputs = {}, {}

    def take(self, record: Schema | Channel | Message) -> None:
        """Show a record. Raises CarFault for a channel without a schema."""
        if isinstance(record, Schema):
            self._schemas[record.number] = record
        elif isinstance(record, Channel):
            self._outputs[record.number] = self._output(record)
        elif output := self._outputs.get(record.channel):
            output.log(record.data, log_time=record.log_ns)

    def _output(self, channel: Channel) -> Output:
        schema = self._schemas.get(channel.schema)
        if schema is None:
            raise invalid(f"{channel.topic}: no schema")
        known = self._open.get(channel.topic)
        if known and (known[0].coding, known[1][1:]) == (channel.coding, schema[1:]):
            return known[2]
        if known:
            known[2].close()
        made: Output = self._library.Channel(
            channel.topic,
            message_encoding=channel.coding,
            schema=self._library.Schema(name=schema.name, encoding=schema.coding, data=schema.data),
        )
        self._open[channel.topic] = channel, schema, made
        return made


def add_to(verb: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    verb.description, verb.formatter_class = HELP, argparse.RawDescriptionHelpFormatter
    verb.add_argument("car", nargs="?", help="name of a paired car (default: the only one)")
    verb.add_argument(
        "--port",
        type=within(int, 1, PORT_MOST),
        default=PORT,
        help="port for Foxglove (default: %(default)s)",
    )
    verb.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; Foxglove has no password, so any other machine that reaches "
        "this one may watch (default: %(default)s)",
    )


def chosen(cars: Cars, name: str | None) -> Car:
    """Return the car of that name; without a name, the only one. Raises StationError."""
    if name is not None:
        return cars.find(name)
    paired = cars.all()
    if not paired:
        raise StationError("no car is paired: fpvstation pair ADDRESS")
    if len(paired) > 1:
        raise StationError(f"name one of the cars: {', '.join(car.folder for car in paired)}")
    return paired[0]


def run(arguments: argparse.Namespace) -> int:
    """Show a car until Ctrl-C. Raises StationError."""
    car = chosen(Cars(state_directory()), arguments.car)
    try:
        library = importlib.import_module("foxglove")
    except ImportError:
        raise StationError(NOT_INSTALLED(program="foxglove-sdk", command=INSTALL)) from None
    try:
        server = library.start_server(name=car.name, host=arguments.host, port=arguments.port)
    except RuntimeError as fault:
        place = f"{arguments.host}:{arguments.port}"
        raise StationError(f"{place}: {fault}: choose another --port or --host") from None
    shown = "localhost" if is_loopback(arguments.host) else arguments.host
    print(f"{car.name}: in Foxglove, Open connection, ws://{shown}:{server.port}", flush=True)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(follow(car, Show(library)))
    finally:
        server.stop()
    return 0


async def follow(car: Car, show: Show) -> None:
    """Show a car's topics for ever; connect again after each loss."""
    wait_s, said = FIRST_WAIT_S, ""
    while True:
        show.begin()
        parser = Records()
        try:
            async with session(car.url, car.fingerprint) as client:
                async for data in HttpCar(car, client).topics():
                    for record in parser.add(data):
                        show.take(record)
                    if said or wait_s > FIRST_WAIT_S:
                        print(f"{car.name}: connected again", flush=True)
                    wait_s, said = FIRST_WAIT_S, ""
            fault = f"{car.url}: it hung up"
        except CarFault as lost:
            fault = str(lost)
        if fault != said:
            print(f"{fault}; trying again", file=sys.stderr)
        said = fault
        await asyncio.sleep(wait_s)
        wait_s = min(2.0 * wait_s, LAST_WAIT_S)

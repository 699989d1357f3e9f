"""`fpvstation foxglove`: records of a stream, and the channels that Foxglove gets."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpvcar.recordings.mcap import records
from fpvcar.recordings.mcap.parsing import Channel, Schema
from fpvcar.wire.station import Pairing
from fpvstation.cli.foxglove import RECORD_MOST, Message, Records, Show, chosen
from fpvstation.errors import StationError
from fpvstation.fetch.cars import Cars
from fpvstation.fetch.pull import CarFault

STEP = Schema(1, "fpvcar.Step", "jsonschema", b"{}")
GATE = Channel(7, 1, "/gate/step", "json")
STREAM = (
    records.MAGIC
    + records.header("fpvcar")
    + records.schema(*STEP)
    + records.channel(GATE.number, GATE.schema, GATE.topic, GATE.coding)
    + records.message(7, 0, 5, 4, b"{}")
    + records.message(7, 1, 6, 6, b"")
)
ALL: list[Schema | Channel | Message] = [STEP, GATE, Message(7, 5, b"{}"), Message(7, 6, b"")]


@dataclass
class Made:
    """Channel of a library that notes its calls."""

    topic: str
    schema: Any
    message_encoding: str
    logged: list[tuple[bytes, int]] = field(default_factory=list)
    closed: bool = False

    def log(self, msg: bytes, *, log_time: int) -> None:
        assert not self.closed
        self.logged.append((msg, log_time))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[Made]:
    return []


@pytest.fixture
def show(made: list[Made]) -> Show:
    def channel(topic: str, **more: Any) -> Made:
        made.append(Made(topic, **more))
        return made[-1]

    return Show(SimpleNamespace(Channel=channel, Schema=lambda **given: given))


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_records_are_found_however_the_bytes_arrive(cuts: list[int]) -> None:
    parser, edges = Records(), [0, *sorted(cuts), len(STREAM)]
    parts = [STREAM[low:high] for low, high in zip(edges, edges[1:], strict=False)]
    assert [record for part in parts for record in parser.add(part)] == ALL


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_records_or_a_fault_of_the_car(data: bytes, begins: bool) -> None:
    parser = Records()
    try:
        for record in parser.add((records.MAGIC if begins else b"") + data):
            assert isinstance(record, Schema | Channel | Message)
    except CarFault as fault:
        assert "invalid answer" in str(fault)


def test_record_of_any_length_is_refused_before_it_arrives() -> None:
    parser = Records()
    assert list(parser.add(records.MAGIC)) == []
    with pytest.raises(CarFault, match=str(RECORD_MOST + 1)):
        list(parser.add(records.HEAD.pack(records.MESSAGE, RECORD_MOST + 1)))


def test_topics_keep_schema_encoding_and_time(show: Show, made: list[Made]) -> None:
    for record in ALL:
        show.take(record)
    (gate,) = made
    assert (gate.topic, gate.message_encoding) == ("/gate/step", "json")
    assert gate.schema == {"name": STEP.name, "encoding": STEP.coding, "data": STEP.data}
    assert gate.logged == [(b"{}", 5), (b"", 6)]
    show.take(Message(8, 7, b"of no channel"))
    assert len(gate.logged) == 2


def test_channel_stays_over_a_lost_connection_unless_it_changed(
    show: Show, made: list[Made]
) -> None:
    """Foxglove keeps its subscriptions; a new version of the car may number anew."""
    for record in ALL:
        show.take(record)
    show.begin()
    show.take(Message(7, 8, b"before its channel"))
    show.take(STEP._replace(number=2))
    show.take(GATE._replace(number=3, schema=2))
    show.take(Message(3, 9, b"again"))
    assert len(made) == 1 and made[0].logged[2:] == [(b"again", 9)]
    show.begin()
    show.take(STEP._replace(data=b"new"))
    show.take(GATE)
    show.take(Message(7, 10, b"new"))
    assert made[0].closed and made[1].logged == [(b"new", 10)]


def test_channel_without_its_schema_is_refused(show: Show) -> None:
    with pytest.raises(CarFault, match="/gate/step: no schema"):
        show.take(GATE)


def test_only_car_needs_no_name(tmp_path: Path) -> None:
    cars = Cars(tmp_path)
    with pytest.raises(StationError, match="no car is paired: fpvstation pair ADDRESS"):
        chosen(cars, None)
    first = cars.add(Pairing("Plague", "1", "1", "ab"), "http://one", "")
    assert chosen(cars, None) == chosen(cars, "Plague") == first
    cars.add(Pairing("Toad", "2", "2", "cd"), "http://two", "")
    with pytest.raises(StationError, match="name one of the cars: Plague, Toad"):
        chosen(cars, None)
    with pytest.raises(StationError, match='"Rat" matches no car'):
        chosen(cars, "Rat")

"""Datagrams on loopback into access units: whole, of one sender, with their stamps."""

import os
import socket
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpvcar.video.programs.datagrams import (
    DATAGRAM_BYTES,
    LOOSE_S,
    Reassembly,
    ReceivedBuffer,
    Receiver,
    Stamps,
    owns,
)
from fpvcar.wire.video import UNIT_MAX_BYTES

START = b"\0\0\0\1"


def pieces(unit: bytes) -> list[bytes]:
    return [unit[at : at + DATAGRAM_BYTES] for at in range(0, len(unit), DATAGRAM_BYTES)]


def unit_of(size: int) -> bytes:
    return START + b"e" * (size - len(START))


@given(
    st.lists(st.integers(5, 3 * DATAGRAM_BYTES).filter(lambda n: n % DATAGRAM_BYTES), max_size=5)
)
def test_split_units_are_reassembled(sizes: list[int]) -> None:
    reassembly, units = Reassembly(), [unit_of(size) for size in sizes]
    sent = [piece for unit in units for piece in pieces(unit)]
    got = [reassembly.feed(piece) for piece in sent]
    assert [unit for unit in got if unit] == units and reassembly.lost == 0


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_unit_with_a_missing_piece_is_dropped(missing: int) -> None:
    reassembly, large, small = Reassembly(), unit_of(150_000), unit_of(900)
    for at, piece in enumerate(pieces(large)):
        if at == missing:
            reassembly.gap()
        else:
            assert reassembly.feed(piece) is None or at < missing
    if missing == 2:  # its end is missing: the next piece starts a new unit
        assert reassembly.feed(small) == small
    assert reassembly.feed(small) == small
    assert reassembly.lost == 1


def test_unit_without_an_end_is_dropped() -> None:
    reassembly = Reassembly()
    for _ in range(UNIT_MAX_BYTES // DATAGRAM_BYTES + 2):
        assert reassembly.feed(b"x" * DATAGRAM_BYTES) is None
    assert reassembly.lost == 1
    assert reassembly.feed(b"the end of it") is None
    assert reassembly.feed(unit_of(900)) == unit_of(900)


# --- the socket ----------------------------------------------------------------------


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def test_receiver_hears_only_the_started_process(receiver: Receiver) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        to = ("127.0.0.1", receiver.port)
        sender.sendto(unit_of(100), to)
        assert receiver.buffers(os.getppid()) == [] and receiver.refused == 1
        sender.sendto(unit_of(200), to)
        (arrived,) = receiver.buffers(os.getpid())
        assert arrived.data == unit_of(200)
        assert 0 <= time.monotonic_ns() // 1000 - arrived.time_us < 1_000_000
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(unit_of(300), to)  # of this process, too: only one sender counts
        sender.sendto(unit_of(400), to)
        assert [one.data for one in receiver.buffers(os.getpid())] == [unit_of(400)]


def test_receiver_listens_on_loopback_only(receiver: Receiver) -> None:
    assert receiver._socket.getsockname()[0] == "127.0.0.1"
    assert not owns(os.getpid(), 1) and not owns(1 << 22, receiver.port)
    assert owns(os.getpid(), receiver.port)


def test_datagrams_dropped_by_the_kernel_count_as_lost_unit(receiver: Receiver) -> None:
    receiver._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(20):
            sender.sendto(unit_of(9000), ("127.0.0.1", receiver.port))
        before = len(receiver.buffers(os.getpid()))
        assert before < 20 and receiver.reassembly.lost == 0
        sender.sendto(unit_of(500), ("127.0.0.1", receiver.port))
        receiver.buffers(os.getpid())
        assert receiver.reassembly.lost == 1


# --- stamps --------------------------------------------------------------------------


class Pipe:
    """Metadata pipe with its reader."""

    def __init__(self) -> None:
        ours, self._theirs = os.pipe()
        os.set_blocking(ours, False)
        self.stamps = Stamps(ours)

    def write(self, *stamps_us: int) -> None:
        for one in stamps_us:
            os.write(self._theirs, b"Lux=1\nSensorTimestamp=%d\nGain=2\n\n" % (one * 1000))

    def end(self) -> None:
        os.close(self._theirs)


def test_buffer_gets_the_stamp_of_its_frame() -> None:
    pipe = Pipe()
    pipe.write(1000, 2000)
    os.write(pipe._theirs, b"SensorTimes")
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 1500), 1.0) == 1000
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 2500), 1.0) == 2000
    os.write(pipe._theirs, b"tamp=3000000\n\n")
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 3600), 1.0) == 3000
    assert pipe.stamps.known == 3


def test_buffer_without_metadata_takes_the_last_known_age() -> None:
    pipe = Pipe()
    pipe.write(1000)
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 1400), 0.0) == 1400, "not read yet"
    pipe.write(2000)
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 2300), 1.0) == 2000, "1000 came too late"
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 3300), 0.0) == 3000
    pipe.end()
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 4300), 1.0) == 4000


def test_metadata_of_a_lost_buffer_is_forgotten() -> None:
    pipe = Pipe()
    pipe.write(1000)
    assert pipe.stamps.read()
    time.sleep(1.5 * LOOSE_S)
    pipe.write(2000)
    assert pipe.stamps.stamp_us(ReceivedBuffer(b"", 2300), 1.0) == 2000

"""Bit-banged serial reads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.pins.pigpiod import Core, make_core, words

from fpvbench.pigpiod.buses.bitbang_serial import BUFFER, Receiver
from fpvbench.pigpiod.protocol import Cmd

WIRED = [(17, 27)]

SDA, SCL = 5, 6


def send(core: Core, data: bytes, baud: int, data_bits: int = 8) -> None:
    """Send data on GPIO 17 as a wave; return when all is sent and reported."""
    core(Cmd.WRITE, 17, 1)
    core(Cmd.WVNEW)
    core(Cmd.WVAS, 17, baud, words(data_bits, 2, 0) + data)
    core(Cmd.WVTX, core(Cmd.WVCRE))
    while core(Cmd.WVBSY):
        core.run(10_000)
    core.run(3_000_000 * (data_bits + 2) // baud + 5000)


def received(core: Core, gpio: int = 27, count: int = 60_000) -> bytes:
    data = core.raw(Cmd.SLR, gpio, count)
    assert isinstance(data, bytes)
    return data


def test_serial_loop(core: Core) -> None:
    assert core(Cmd.SLRO, 27, 9600, words(8)) == 0
    assert received(core) == b""
    send(core, b"Hello, Plague\n", 9600)
    assert received(core, count=5) == b"Hello"
    assert received(core) == b", Plague\n"
    assert received(core) == b""
    assert (core(Cmd.SLRC, 27), core(Cmd.SLR, 27, 1)) == (0, -38)
    assert core.daemon.due_us(core.now_us) is None


def test_sending_pin_can_be_read(core: Core) -> None:
    assert core(Cmd.SLRO, 17, 4800, words(8)) == 0
    send(core, b"abc", 4800)
    assert received(core, 17) == b"abc"


@settings(max_examples=40, deadline=None)
@given(st.integers(300, 57_600), st.integers(1, 30), st.data())
def test_sent_bytes_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, baud: int, data_bits: int, data: st.DataObject
) -> None:
    core = make_core(tmp_path_factory.getbasetemp(), wires=[(17, 27)])
    size = 1 if data_bits <= 8 else 2 if data_bits <= 16 else 4
    sent = data.draw(st.lists(st.integers(0, 2**data_bits - 1), min_size=1, max_size=6))
    raw = b"".join(value.to_bytes(size, "little") for value in sent)
    core(Cmd.WRITE, 17, 1)
    assert core(Cmd.SLRO, 27, baud, words(data_bits)) == 0
    send(core, raw, baud, data_bits)
    assert received(core) == raw


def test_read_gives_whole_characters(core: Core) -> None:
    core(Cmd.SLRO, 27, 9600, words(16))
    send(core, b"\x01\x02\x03\x04", 9600, 16)
    assert received(core, count=3) == b"\x01\x02"
    assert received(core, count=1) == b""
    assert received(core, count=2) == b"\x03\x04"


def test_inverted_line_is_read(core: Core) -> None:
    """The line rests low, a start bit is high; 0x2A ends with an edge."""
    assert core(Cmd.SLRO, 27, 10_000, words(8)) == 0
    assert (core(Cmd.SLRI, 27, 2), core(Cmd.SLRI, 27, 1)) == (-121, 0)
    core(Cmd.WRITE, 17, 0)
    pin = 1 << 17
    bits = [0, *(0x2A >> number & 1 for number in range(8)), 1]
    pulses = [(0, pin, 100) if bit else (pin, 0, 100) for bit in bits]
    core(Cmd.WVAG, 0, 0, words(*sum([*pulses, (0, pin, 100)], ())))
    core(Cmd.WVTX, core(Cmd.WVCRE))
    core.run(10_000)
    assert received(core) == b"\x2a"


def test_watchdog_ends_a_character_without_edges(core: Core) -> None:
    """The watchdog belongs to the pin: a client that watches the pin gets its reports."""
    reader = core.reader(1 << 27)
    core(Cmd.SLRO, 27, 1000, words(8))
    core(Cmd.WRITE, 17, 1)
    core.run(2000)
    core(Cmd.WVAS, 17, 1000, words(8, 2, 5000) + b"\xff")
    core(Cmd.WVTX, core(Cmd.WVCRE))
    core.run(16_000)  # 5 ms, the start bit, ten bits of 1
    assert received(core) == b""
    core.run(3000)
    assert received(core) == b"\xff"
    reports = [report for report in reader.take() if report.flags]
    assert [report.flags for report in reports] == [0x20 | 27]
    core.run(50_000)
    assert reader.take() == []


def test_pin_has_one_bit_bang_user(core: Core) -> None:
    assert core(Cmd.SLRO, 27, 9600, words(8)) == 0
    assert core(Cmd.SLRO, 27, 9600, words(8)) == -50
    assert core(Cmd.BI2CO, 27, 22, words(100_000)) == -50
    assert core(Cmd.BSPIO, 5, 0, words(27, 6, 7, 50_000, 0)) == -50
    assert core(Cmd.BI2CO, SDA, SCL, words(100_000)) == 0
    assert core(Cmd.SLRO, SCL, 9600, words(8)) == -50
    assert core(Cmd.SLRC, SCL) == 0  # pigpio returns 0, and closes no pin
    assert core(Cmd.SLRI, SCL, 1) == -38
    assert core(Cmd.BI2CC, SCL) == -108
    assert (core(Cmd.BI2CC, SDA), core(Cmd.SLRO, SCL, 9600, words(8))) == (0, 0)


def character(value: int, bits: int, start_us: int, bit_us: int) -> list[tuple[int, int]]:
    """Return the edges of one character, (level, time)."""
    levels = [0, *(value >> number & 1 for number in range(bits)), 1]
    out, last = [], 1
    for number, level in enumerate(levels):
        if level != last:
            out.append((level, start_us + number * bit_us))
        last = level
    return out


def test_full_ring_keeps_the_first_bytes() -> None:
    receiver = Receiver(10_000, 8)
    for number in range(BUFFER + 100):
        value = number % 128
        for level, at_us in character(value, 8, number * 2000, 100):
            receiver.process(level, at_us)
        receiver.process(2, number * 2000 + 1500)
    data = receiver.read(60_000)
    assert len(data) == BUFFER - 1
    assert data == bytes(number % 128 for number in range(BUFFER - 1))


def test_read_ends_at_the_end_of_the_ring() -> None:
    receiver = Receiver(10_000, 8)
    for number in range(BUFFER + 10):
        for level, at_us in character(number % 128, 8, number * 2000, 100):
            receiver.process(level, at_us)
        if number == 99:
            assert len(receiver.read(100)) == 100
    assert len(receiver.read(60_000)) == BUFFER - 100
    rest = receiver.read(60_000)
    assert rest == bytes(number % 128 for number in range(BUFFER, BUFFER + 10))

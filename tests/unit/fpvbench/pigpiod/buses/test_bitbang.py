"""Bit-banged I2C and SPI: effect on pins, and answers."""

from pathlib import Path

import pytest
from testkit.pins.pigpiod import Core, Report, make_core, words

from fpvbench.outside import drive
from fpvbench.pigpiod.protocol import Cmd, Wait

WIRED = [(17, 27)]

INPUT, OUTPUT = 0, 1
SDA, SCL = 5, 6
END, ESCAPE, START, STOP, ADDRESS, FLAGS, READ, WRITE = range(8)
CS, MISO, MOSI, SCLK = 8, 9, 10, 11
TX_LSB, RX_LSB = 1 << 14, 1 << 15


# --- I2C


def program(*parts: int) -> bytes:
    return bytes(parts)


@pytest.fixture
def i2c(core: Core) -> Core:
    """Open the bus at 100 kbaud, pulled up."""
    core(Cmd.PUD, SDA, 2)
    core(Cmd.PUD, SCL, 2)
    core(Cmd.MODES, SCL, 4)
    assert core(Cmd.BI2CO, SDA, SCL, words(100_000)) == 0
    assert (core(Cmd.MODEG, SDA), core(Cmd.MODEG, SCL)) == (INPUT, INPUT)
    return core


def heard_i2c(reports: list[Report]) -> list[str]:
    """Decode SDA and SCL like a listener: S, P, and each byte with its answer."""
    out, bits = list[str](), list[int]()
    sda = scl = 1
    for report in reports:
        new_sda, new_scl = report.levels >> SDA & 1, report.levels >> SCL & 1
        if scl and new_scl and sda != new_sda:
            out.append("P" if new_sda else "S")
            bits = []
        elif new_scl and not scl:
            bits.append(new_sda)
            if len(bits) == 9:
                value = sum(bit << 7 - number for number, bit in enumerate(bits[:8]))
                out.append(f"{value:02x}{'-' if bits[8] else '+'}")
                bits = []
        sda, scl = new_sda, new_scl
    return out


def test_i2c_without_a_device_fails_with_nack(i2c: Core) -> None:
    reader = i2c.reader(1 << SDA | 1 << SCL)
    written = program(ADDRESS, 0x53, START, WRITE, 2, 0x12, 0x34, STOP, END)
    assert i2c(Cmd.BI2CZ, SDA, 0, written) == -82
    i2c.run(5000)
    assert heard_i2c(reader.take()) == ["S", "a6-"]
    read = program(ADDRESS, 0x53, START, READ, 1, STOP)
    assert i2c(Cmd.BI2CZ, SDA, 0, read) == -83
    i2c.run(5000)
    assert heard_i2c(reader.take())[-1] == "a7-"
    assert i2c(Cmd.BI2CZ, SDA, 0, program(STOP)) == 0
    i2c.run(5000)
    assert heard_i2c(reader.take())[-1] == "P"
    assert (i2c(Cmd.READ, SDA), i2c(Cmd.READ, SCL)) == (1, 1)
    assert (i2c(Cmd.BI2CC, SDA), i2c(Cmd.MODEG, SCL)) == (0, 4)


def test_i2c_bits_take_their_time(i2c: Core) -> None:
    """Half a bit takes 5 us, and the microsecond that pigpio spins longer."""
    reader = i2c.reader(1 << SCL)
    i2c(Cmd.BI2CZ, SDA, 0, program(ADDRESS, 0x53, START, WRITE, 1, 0))
    i2c.run(5000)
    rises = [tick for tick, level in reader.edges(SCL) if level]
    assert len(rises) == 9
    assert rises[8] - rises[0] == pytest.approx(8 * 12, abs=5)


def test_data_line_held_low_acknowledges(i2c: Core) -> None:
    drive(i2c.soc, SDA, 0, i2c.now_us)
    head = (ADDRESS, 0x53, START)
    assert i2c(Cmd.BI2CZ, SDA, 0, program(*head, WRITE, 2, 1, 2, STOP)) == 0
    assert i2c.raw(Cmd.BI2CZ, SDA, 0, program(*head, READ, 3, STOP)) == bytes(3)
    wide = program(*head, ESCAPE, READ, 1, 1, STOP, END, 99)
    assert i2c.raw(Cmd.BI2CZ, SDA, 0, wide) == bytes(257)


@pytest.mark.parametrize(
    "parts,error",
    [
        ((99,), -111),
        ((ADDRESS,), -111),
        ((FLAGS, 1), -111),
        ((READ,), -111),
        ((WRITE,), -111),
        ((START, READ, 0), -111),
        ((START, WRITE, 0), -111),
        ((START, ESCAPE, READ, 1), -111),
        ((START, WRITE, 3, 1, 2), -109),
        ((START, READ, 1, ESCAPE, READ, 0xFF, 0x7F), -110),
        ((START, ESCAPE, READ, 0, 0x80), -110),
        ((END, 99), 0),
        ((FLAGS, 1, 1), 0),
        ((ESCAPE, ADDRESS, 1, 1), 0),
        ((ESCAPE, START, STOP), 0),
        ((), -90),
    ],
)
def test_i2c_program_errors_have_their_codes(i2c: Core, parts: tuple[int, ...], error: int) -> None:
    drive(i2c.soc, SDA, 0, i2c.now_us)  # acknowledges
    assert i2c(Cmd.BI2CZ, SDA, 0, bytes(parts)) == error


def test_clock_held_low_is_waited_for(i2c: Core) -> None:
    drive(i2c.soc, SCL, 0, i2c.now_us)
    before_us = i2c.now_us
    assert i2c(Cmd.BI2CZ, SDA, 0, program(ADDRESS, 1, START, WRITE, 1, 0)) == -82
    assert i2c.now_us - before_us == pytest.approx(9 * 100_000, rel=0.01)


def test_long_i2c_transfer_lets_others_run(i2c: Core) -> None:
    drive(i2c.soc, SDA, 0, i2c.now_us)
    outcome = i2c.start(Cmd.BI2CZ, SDA, 0, program(ADDRESS, 1, START, ESCAPE, READ, 0, 16))
    waits = 0
    while isinstance(outcome, Wait):
        waits += 1
        i2c.run(max(0, outcome.until_us - i2c.now_us))
        outcome = outcome.finish(i2c.now_us)
    assert outcome == bytes(4096) and waits >= 4096 // 16


# --- SPI


def open_spi(core: Core, flags: int = 0, cs: int = CS, baud: int = 50_000) -> int:
    return core(Cmd.BSPIO, cs, 0, words(MISO, MOSI, SCLK, baud, flags))


def heard_spi(reports: list[Report], flags: int, before: int) -> list[int]:
    """Return the bytes that a slave of this mode reads on MOSI while it is selected."""
    out, bits, last = list[int](), list[int](), before
    rising = not flags & 1 ^ flags >> 1 & 1
    for report in reports:
        selected = report.levels >> CS & 1 == flags >> 2 & 1
        clock = report.levels >> SCLK & 1
        if selected and clock != last >> SCLK & 1 and clock == rising:
            bits.append(report.levels >> MOSI & 1)
            if len(bits) == 8:
                order = bits[::-1] if flags & TX_LSB else bits
                out.append(sum(bit << 7 - number for number, bit in enumerate(order)))
                bits = []
        last = report.levels
    assert not bits
    return out


@pytest.mark.parametrize("lsb", [0, TX_LSB | RX_LSB])
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("high", [0, 4])
def test_spi_slave_hears_and_wire_echoes(tmp_path: Path, lsb: int, mode: int, high: int) -> None:
    core = make_core(tmp_path, wires=[(MISO, MOSI)])
    flags = lsb | mode | high
    assert open_spi(core, flags) == 0
    assert core(Cmd.READ, CS) == (0 if high else 1)
    core(Cmd.BSPIX, CS, 0, b"\x55")
    reader = core.reader(1 << CS | 1 << SCLK | 1 << MOSI)
    core.run(2000)
    reader.take()
    before, data = core(Cmd.BR1), bytes([0xC1, 0x00, 0xFF, 0x35])
    assert core.raw(Cmd.BSPIX, CS, 0, data) == data
    core.run(5000)
    assert heard_spi(reader.take(), flags, before) == list(data)


def test_spi_bit_orders_can_differ_by_direction(tmp_path: Path) -> None:
    core = make_core(tmp_path, wires=[(MISO, MOSI)])
    open_spi(core, TX_LSB)
    assert core.raw(Cmd.BSPIX, CS, 0, b"\x01\xc0") == b"\x80\x03"


@pytest.mark.parametrize("pull,byte", [(1, 0x00), (2, 0xFF)])
def test_miso_without_a_device_reads_its_pull(core: Core, pull: int, byte: int) -> None:
    core(Cmd.PUD, MISO, pull)
    open_spi(core)
    assert core.raw(Cmd.BSPIX, CS, 0, b"abc") == bytes([byte] * 3)
    assert core(Cmd.BSPIX, CS, 0, b"") == -90


def test_spi_selects_share_pins_and_close_restores_modes(core: Core) -> None:
    core(Cmd.MODES, MOSI, 4)
    assert (open_spi(core), open_spi(core), open_spi(core, cs=7)) == (0, -50, 0)
    modes = [core(Cmd.MODEG, gpio) for gpio in (7, CS, MISO, MOSI, SCLK)]
    assert modes == [OUTPUT, OUTPUT, INPUT, OUTPUT, OUTPUT]
    swapped = words(MOSI, MISO, SCLK, 50_000, 0)
    assert core(Cmd.BSPIO, 5, 0, swapped) == -50
    assert core(Cmd.BSPIC, SCLK) == -142
    assert core(Cmd.BSPIC, CS) == 0
    assert (core(Cmd.MODEG, CS), core(Cmd.MODEG, SCLK)) == (INPUT, OUTPUT)
    assert core(Cmd.BSPIX, 7, 0, b"a") == 1
    assert core(Cmd.BSPIC, 7) == 0
    modes = [core(Cmd.MODEG, gpio) for gpio in (7, CS, MISO, MOSI, SCLK)]
    assert modes == [INPUT, INPUT, INPUT, 4, INPUT]
    assert (core(Cmd.BSPIC, 7), open_spi(core)) == (-142, 0)


def test_spi_transfer_takes_its_time(core: Core) -> None:
    open_spi(core, baud=50)
    before_us = core.now_us
    core(Cmd.BSPIX, CS, 0, b"ab")
    assert core.now_us - before_us == pytest.approx(20_000 * 18, rel=0.01)

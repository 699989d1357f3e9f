"""Hardware SPI, the MCP3008 on it, and the BSC slave without a master."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.pins.pigpiod import START_US, Core, make_core, words

from fpvbench.chips.mcp3008 import Mcp3008, fixed_inputs
from fpvbench.pigpiod.protocol import Cmd, Wait

T0 = START_US
AUX = 1 << 8
MAIN_PINS, AUX_PINS = (8, 7, 9, 10, 11), (18, 17, 16, 19, 20, 21)
SHARES = [0.0, 0.25, 0.5, 0.999, 1.0, -1.0, 2.0]


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return make_core(tmp_path, spi={7: Mcp3008(fixed_inputs(SHARES))})


def modes(core: Core, pins: tuple[int, ...]) -> list[int]:
    return [core(Cmd.MODEG, gpio) for gpio in pins]


def open_spi(core: Core, channel: int = 0, flags: int = 0, baud: int = 500_000) -> int:
    return core(Cmd.SPIO, channel, baud, words(flags))


def test_pins_while_a_bus_is_open(core: Core) -> None:
    core(Cmd.WRITE, 11, 1)
    first, second = open_spi(core), open_spi(core, 1)
    assert (first, second, modes(core, MAIN_PINS)) == (0, 1, [4] * 5)
    core(Cmd.SPIC, first)
    assert modes(core, MAIN_PINS) == [4] * 5
    core(Cmd.SPIC, second)
    assert modes(core, MAIN_PINS) == [0, 0, 0, 0, 1]
    assert core(Cmd.SPIC, second) == -25


def test_auxiliary_bus_sets_and_restores_pin_modes(core: Core) -> None:
    handle = open_spi(core, 2, AUX | 2 << 2)  # the second select is active high
    assert modes(core, AUX_PINS) == [1, 1, 1, 3, 3, 3]
    assert [core(Cmd.READ, gpio) for gpio in (18, 17, 16)] == [1, 0, 1]
    core(Cmd.SPIC, handle)
    assert modes(core, AUX_PINS) == [0] * 6


def test_reserved_selects_are_left_alone(core: Core) -> None:
    core(Cmd.WRITE, 8, 0)
    open_spi(core, 1, 1 << 5)
    assert modes(core, MAIN_PINS) == [1, 4, 4, 4, 4]


def test_handles_run_out(core: Core) -> None:
    handles = [open_spi(core, n % 2, AUX * (n % 3 == 0)) for n in range(33)]
    assert handles == [*range(32), -24]
    core(Cmd.SPIC, 7)
    assert open_spi(core) == 7


@pytest.mark.parametrize("pull,byte", [(1, 0x00), (2, 0xFF)])
def test_transfer_without_a_device_reads_the_pull(core: Core, pull: int, byte: int) -> None:
    core(Cmd.PUD, 9, pull)
    handle = open_spi(core)
    assert core.raw(Cmd.SPIX, handle, 0, b"abc") == bytes([byte] * 3)
    assert core.raw(Cmd.SPIR, handle, 5) == bytes([byte] * 5)
    assert core.raw(Cmd.SPIW, handle, 0, b"abcd") == 4
    assert core.raw(Cmd.SPIX, handle, 0, b"") == core.raw(Cmd.SPIR, handle, 0) == 0


def test_words_of_the_auxiliary_bus(core: Core) -> None:
    core(Cmd.PUD, 19, 2)
    handle = open_spi(core, 0, AUX | 12 << 16)
    assert core.raw(Cmd.SPIX, handle, 0, b"abcd") == b"\xff\x0f\xff\x0f"


def test_wire_from_mosi_to_miso_echoes(tmp_path: Path) -> None:
    core = make_core(tmp_path, wires=[(9, 10)])
    assert core.raw(Cmd.SPIX, open_spi(core), 0, b"echo") == b"echo"


def test_select_edges_are_reported(core: Core) -> None:
    core(Cmd.PUD, 7, 2)
    handle = open_spi(core, 1)
    reader = core.reader(1 << 7)
    core(Cmd.SPIX, handle, 0, bytes(20))
    core.run(5000)
    (fall, low), (rise, high) = reader.edges(7)
    assert (fall, low, high) == (T0, 0, 1) and rise - fall >= 320


def test_long_transfer_takes_its_time(core: Core) -> None:
    handle = open_spi(core, baud=32_000)
    outcome = core.start(Cmd.SPIX, handle, 0, bytes(100))
    assert isinstance(outcome, Wait) and outcome.until_us == T0 + 25_001
    assert outcome.finish(outcome.until_us) == bytes(100)


def test_mcp3008_is_read_by_bit_banging(core: Core) -> None:
    assert core(Cmd.BSPIO, 7, 0, words(9, 10, 11, 100_000, 0)) == 0
    assert core.raw(Cmd.BSPIX, 7, 0, bytes([1, 0xA0, 0])) == bytes([0, 2, 0])
    core(Cmd.BSPIC, 7)
    assert core(Cmd.BSPIO, 7, 0, words(10, 9, 11, 100_000, 0)) == 0
    assert core.raw(Cmd.BSPIX, 7, 0, bytes([1, 0xA0, 0])) == bytes(3)  # crossed


@given(
    st.integers(0, 7),
    st.booleans(),
    st.integers(0, 20),
    st.lists(st.floats(0, 1), min_size=8, max_size=8),
    st.integers(0, 1),
)
def test_mcp3008_on_any_clock(
    code: int, single: bool, idle_bits: int, shares: list[float], idle: int
) -> None:
    """Start bit at any place: the answer follows it, then again backwards."""
    chip = Mcp3008(fixed_inputs(shares))
    pair = max(0.0, shares[code] - shares[code ^ 1])
    value = min(1023, int((shares[code] if single else pair) * 1024))
    asked = "0" * idle_bits + f"1{int(single)}{code:03b}"
    asked = asked.ljust(idle_bits + 48, "0")
    asked += "0" * (-len(asked) % 8)
    answer = chip.transfer(int(asked, 2).to_bytes(len(asked) // 8, "big"), idle)
    bits = "".join(f"{byte:08b}" for byte in answer)
    ten = f"{value:010b}"
    start = idle_bits + 6
    assert bits[:start] == str(idle) * start
    assert bits[start:] == ("0" + ten + ten[-2::-1]).ljust(len(bits) - start, "0")


@given(st.binary(max_size=12), st.integers(0, 1))
def test_mcp3008_takes_any_bytes(data: bytes, idle: int) -> None:
    assert len(Mcp3008([]).transfer(data, idle)) == len(data)


def status(core: Core, control: int, data: bytes = b"") -> tuple[int, int]:
    """Return the number of copied bytes, and the flags."""
    answer = core.raw(Cmd.BSCX, control, 0, data)
    assert isinstance(answer, bytes) and len(answer) == 4
    value = int.from_bytes(answer, "little")
    return value >> 16, value & 0xFFFF


def test_bsc_slave_without_a_master_fills_its_fifo(core: Core) -> None:
    """The FIFO of 16 fills up; flags: RE 2, TF 4, TE 16, the level from bit 6 on."""
    enabled = 0x33 << 16 | 0x305
    assert status(core, enabled) == (0, 2 | 16)
    assert modes(core, (18, 19, 20)) == [7, 7, 0]
    assert status(core, enabled, b"hello") == (5, 2 | 5 << 6)
    assert status(core, enabled, bytes(20)) == (11, 2 | 4 | 16 << 6)
    assert status(core, enabled | 0x80) == (0, 2 | 16)
    assert status(core, 0x303) == (0, 2 | 16)
    assert modes(core, (18, 19, 20, 21)) == [7] * 4
    assert status(core, 0) == (0, 0)
    assert modes(core, (18, 19, 20, 21)) == [0] * 4

"""I2C commands, their checks, and the INA219's registers."""

from pathlib import Path

import pytest
from testkit.pins.pigpiod import Core, checks, make_core, words

from fpvbench.chips.i2c import Bus, Nack
from fpvbench.chips.ina219 import battery_monitor
from fpvbench.pigpiod.protocol import Cmd


class Memory:
    """Device with 256 registers and an advancing index; refuses writes from 0xF0 up."""

    address = 0x50

    def __init__(self) -> None:
        self.registers = bytearray(range(256))
        self.index = 0

    def write(self, data: bytes) -> None:
        if data:
            self.index = data[0]
        for value in data[1:]:
            if self.index >= 0xF0:
                raise Nack("write protected")
            self.registers[self.index] = value
            self.index += 1

    def read(self, count: int) -> bytes:
        data = bytes(self.registers[self.index : self.index + count])
        self.index = (self.index + count) % 256
        return data.ljust(count, b"\xff")


@pytest.fixture
def core(tmp_path: Path) -> Core:
    bus = Bus()
    bus.devices.append(Memory())
    core = make_core(tmp_path, buses={1: bus})
    bus.devices.append(battery_monitor(core.soc))
    assert core(Cmd.I2CO, 1, 0x50, words(0)) == 0
    assert core(Cmd.I2CO, 1, 0x33, words(0)) == 1
    return core


CHECKS = checks(
    ("I2CO", (9, 0x80, -75, words(1)), (9, 0x7F, -77, words(1)), (9, 0x7F, -74, words(0))),
    ("I2CO", (1, 0x7F, 2, words(0))),
    ("I2CC", (5, 0, -25), (1, 0, 0), (2**32 - 1, 0, -25)),
    ("I2CWQ", (5, 2, -25), (0, 2, -81), (0, 1, 0), (1, 0, -82)),
    ("I2CRS", (5, 0, -25), (1, 0, -83)),
    ("I2CWS", (0, 256, -81), (1, 0, -82), (0, 7, 0)),
    ("I2CRB", (0, 256, -81), (1, 0, -83), (0, 7, 7)),
    ("I2CWB", (0, 256, -81, words(0)), (0, 0, -81, words(256)), (1, 0, -82, words(0))),
    ("I2CWB", (0, 0xF0, -82, words(1)), (0, 1, 0, words(1))),
    ("I2CRW", (0, 256, -81), (0, 7, 0x0807), (1, 7, -83)),
    ("I2CWW", (0, 1, -81, words(0x10000)), (0, 1, 0, words(0xFFFF)), (1, 1, -82, words(0))),
    ("I2CRK", (5, 0, -25), (0, 0, -107)),
    ("I2CWK", (0, 1, -81), (0, 1, -81, bytes(33)), (0, 1, 0, bytes(32))),
    ("I2CRI", (0, 1, -81, words(0)), (0, 1, -81, words(33)), (0, 1, 32, words(32))),
    ("I2CRI", (1, 1, -83, words(2))),
    ("I2CWI", (0, 1, -81), (0, 1, 0, b"ab"), (1, 1, -82, b"a")),
    ("I2CPC", (0, 1, -81, words(0x10000)), (0, 1, 0x0403, words(5))),
    ("I2CPK", (0, 1, -81), (0, 1, -83, b"a")),
    ("I2CRD", (0, 0, -81), (0, 70000, 65535), (1, 1, -83)),
    ("I2CWD", (0, 0, -81), (0, 0, 0, b"\1\2"), (1, 0, -82, b"\1")),
    ("I2CZ", (5, 0, -25, b"\0"), (0, 0, -90), (0, 0, -111, b"\x08"), (0, 0, -109, b"\x07\x01")),
    ("I2CZ", (0, 0, -109, b"\x07\x01\x05"), (0, 0, -110, b"\x06"), (0, 0, -111, b"\x04")),
    ("I2CZ", (1, 0, -106, b"\x06\x01\0"), (0, 0, -110, b"\x01\x06\xff\x7f")),
    ("I2CZ", (0, 0, 0, b"\x02\x03\0")),
)


@pytest.mark.parametrize("name,p1,p2,result,ext", CHECKS)
def test_i2c_command_check_gives_pigpios_result(
    core: Core, name: str, p1: int, p2: int, result: int, ext: bytes
) -> None:
    assert core(Cmd[name], p1, p2, ext) == result


def test_handles_run_out(core: Core) -> None:
    for handle in range(2, 512):
        assert core(Cmd.I2CO, 1, 0x50, words(0)) == handle
    assert core(Cmd.I2CO, 1, 0x50, words(0)) == -24
    core(Cmd.I2CC, 77)
    assert core(Cmd.I2CO, 1, 0x50, words(0)) == 77


def test_zip_reads_and_writes_in_one_call(core: Core) -> None:
    program = bytes([4, 0x50, 7, 3, 0x20, 9, 8, 7, 1, 0x20, 6, 3, 5, 0, 0, 0])
    assert core.raw(Cmd.I2CZ, 0, 0, program) == bytes([9, 8, 0x22])


def test_zip_with_long_counts(core: Core) -> None:
    program = bytes([7, 1, 0, 1, 6, 4, 1, 0])
    assert core(Cmd.I2CZ, 0, 0, program) == 260


@pytest.mark.parametrize("between,done", [((), False), ((3,), True)])
def test_zip_error_leaves_its_transfers_undone(
    core: Core, between: tuple[int, ...], done: bool
) -> None:
    """A switch of combined mode in between executes the earlier transfers."""
    program = bytes([4, 0x50, 7, 2, 0x20, 9, *between, 99])
    assert core(Cmd.I2CZ, 0, 0, program) == -111
    again = bytes([4, 0x50, 7, 1, 0x20, 6, 1, 0])
    assert (core.raw(Cmd.I2CZ, 0, 0, again) == b"\x09") == done


def test_zip_executes_42_transfers_at_once(core: Core) -> None:
    program = bytes([4, 0x50, *[7, 2, 0x20, 9] * 42, 99])
    assert core(Cmd.I2CZ, 0, 0, program) == -111
    again = bytes([4, 0x50, 7, 1, 0x20, 6, 1, 0])
    assert core.raw(Cmd.I2CZ, 0, 0, again) == b"\x09"


def ina(core: Core) -> int:
    core.soc.world.battery_v, core.soc.world.battery_a = 7.4, 0.5
    return core(Cmd.I2CO, 1, 0x40, words(0))


def read(core: Core, handle: int, register: int) -> int:
    data = core.raw(Cmd.I2CRI, handle, register, words(2))
    assert isinstance(data, bytes)
    return int.from_bytes(data, "big")


def write(core: Core, handle: int, register: int, value: int) -> None:
    assert core(Cmd.I2CWI, handle, register, value.to_bytes(2, "big")) == 0


def test_ina219_after_reset(core: Core) -> None:
    handle = ina(core)
    assert read(core, handle, 0) == 0x399F
    assert core(Cmd.I2CRW, handle, 0) == 0x9F39  # SMBus: low byte first
    assert [read(core, handle, register) for register in (3, 4, 5)] == [0, 0, 0]


def test_ina219_measures_the_battery(core: Core) -> None:
    handle = ina(core)
    assert read(core, handle, 2) >> 3 == 1850  # 4 mV
    assert read(core, handle, 2) & 3 == 2  # ready, no overflow
    assert read(core, handle, 1) == 5000  # 10 uV over 0.1 ohm
    core.soc.world.battery_a = -0.5
    assert read(core, handle, 1) == 0x10000 - 5000


def test_ina219_calibrated(core: Core) -> None:
    handle = ina(core)
    write(core, handle, 5, 4097)
    assert read(core, handle, 5) == 4096
    assert read(core, handle, 4) == 5000  # 0.1 mA
    assert read(core, handle, 3) == 5000 * 1850 // 5000  # 2 mW
    write(core, handle, 5, 0xFFFE)
    assert read(core, handle, 2) & 1  # overflow


def test_ina219_ranges_and_modes(core: Core) -> None:
    handle = ina(core)
    write(core, handle, 0, 0x019F)  # 16 V, 40 mV
    assert read(core, handle, 1) == 4000
    core.soc.world.battery_v = 20.0
    assert read(core, handle, 2) >> 3 == 4000
    write(core, handle, 0, 0x0198)  # power down: the last values stay
    core.soc.world.battery_v = 5.0
    assert read(core, handle, 2) >> 3 == 4000
    write(core, handle, 0, 0x8000)
    assert (read(core, handle, 0), read(core, handle, 2) >> 3) == (0x399F, 1250)


def test_ina219_pointer_stays(core: Core) -> None:
    handle = ina(core)
    assert core(Cmd.I2CWD, handle, 0, b"\0") == 0
    assert core.raw(Cmd.I2CRD, handle, 3) == b"\x39\x9f\xff"
    assert core(Cmd.I2CWD, handle, 0, b"\5\1") == 0  # half a register: no effect
    assert core.raw(Cmd.I2CRD, handle, 2) == b"\0\0"
    assert core(Cmd.I2CWQ, handle, 0) == 0

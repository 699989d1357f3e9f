"""Both back ends of I2C keep one contract; the drivers work over either."""

import asyncio
import contextlib
import ctypes
import errno
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import smbus2
from testkit.pins.i2c_contract import CHECKS, MEMORY, NOBODY, PLAIN_CHECKS

from fpvbench import soc as chips
from fpvbench.chips import ina219 as model
from fpvbench.chips import vl53l0x as tof_model
from fpvbench.chips.i2c import Bus, Nack
from fpvbench.pigpiod.daemon import AttachedDevices, Daemon
from fpvbench.pigpiod.server import Server, clock_us
from fpvcar.config import Pins, Profile, profiles
from fpvcar.devices import backends
from fpvcar.devices.chips.ina219 import Ina219
from fpvcar.devices.chips.vl53l0x import Vl53l0x
from fpvcar.devices.i2c import I2cError, Open, Read
from fpvcar.devices.linux.i2c import SmbusI2c
from fpvcar.runtime import paths
from tests.unit.fpvbench.pigpiod.buses.test_i2c import Memory


class FakeSMBus:
    """Fake of smbus2.SMBus on a bus of the bench, with a kernel's errors."""

    bus = Bus()
    fault: OSError | None = None
    fd = 0
    short = False

    def __init__(self, number: int) -> None:
        if number != 1:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    def i2c_rdwr(self, message: smbus2.i2c_msg) -> None:
        """Answer one message that reads."""
        try:
            data = self.bus.read(message.addr, message.len)
        except Nack:
            raise OSError(errno.EREMOTEIO, "Remote I/O error") from None
        ctypes.memmove(message.buf, data, len(data))

    def _transfer(self, address: int, data: bytes, size: int = 0) -> bytes:
        try:
            if self.fault:
                raise self.fault
            self.bus.write(address, data)
            return self.bus.read(address, size) if size else b""
        except Nack:
            raise OSError(errno.EREMOTEIO, "Remote I/O error") from None

    def read_byte_data(self, address: int, register: int) -> int:
        return self._transfer(address, bytes((register,)), 1)[0]

    def read_word_data(self, address: int, register: int) -> int:
        """Read a word; SMBus sends the low byte first."""
        return int.from_bytes(self._transfer(address, bytes((register,)), 2), "little")

    def read_i2c_block_data(self, address: int, register: int, size: int) -> list[int]:
        assert 1 <= size <= 32
        return list(self._transfer(address, bytes((register,)), 1 if self.short else size))

    def write_byte_data(self, address: int, register: int, value: int) -> None:
        self._transfer(address, bytes((register, value)))

    def write_word_data(self, address: int, register: int, value: int) -> None:
        self._transfer(address, bytes((register,)) + value.to_bytes(2, "little"))

    def write_i2c_block_data(self, address: int, register: int, data: list[int]) -> None:
        assert 1 <= len(data) <= 32
        self._transfer(address, bytes((register, *data)))

    def close(self) -> None:
        pass


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> type[FakeSMBus]:
    """Patch in the kernel's side, with a memory on its bus."""

    class Mine(FakeSMBus):
        bus = Bus(Memory())

    monkeypatch.setattr("smbus2.SMBus", Mine)
    return Mine


@contextmanager
def pigpiod(folder: Path, bus: Bus) -> Iterator[int]:
    """Run the emulator in a thread, with any bus; yield its port."""
    chips.create(folder / "soc")
    server = Server(
        Daemon(chips.attach(folder / "soc"), AttachedDevices(buses={1: bus}), clock_us())
    )
    ready, ports = threading.Event(), list[int]()
    loop, ended = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        listener = await server.listen("127.0.0.1", 0)
        ports.append(listener.sockets[0].getsockname()[1])
        ready.set()
        await ended.wait()
        listener.close()
        server.close()
        await asyncio.sleep(0)

    thread = threading.Thread(target=loop.run_until_complete, args=[serve()])
    thread.start()
    assert ready.wait(20.0)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20.0)
        loop.close()


def profile(backend: str, port: int) -> Profile:
    bench = paths.HARDWARE / "bench.toml"
    made = profiles.load(bench, [f'i2c.backend = "{backend}"'])
    return msgspec.structs.replace(made, pins=Pins(port=port))  # any port


@pytest.fixture(params=["linux", "pigpio"])
def opens(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kernel: type[FakeSMBus],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Open]:
    with contextlib.ExitStack() as stack:
        port = 8888
        if request.param == "pigpio":
            port = stack.enter_context(pigpiod(tmp_path, Bus(Memory())))
            monkeypatch.setattr(backends, "ANSWER_S", 5.0)
        yield stack.enter_context(backends.open_i2c(profile(request.param, port)))


@pytest.mark.parametrize("check", CHECKS + PLAIN_CHECKS, ids=lambda one: one.__name__)
def test_backend_keeps_the_contract(opens: Open, check: Callable[[Open], None]) -> None:
    check(opens)


def test_byte_refused_in_mid_write_raises_and_bus_goes_on(opens: Open) -> None:
    device = opens(1, MEMORY)
    with pytest.raises(I2cError, match="0x50"):
        device.write(0xED, bytes(12))
    assert device.read(0x10, 1) == b"\x10"
    device.close()


@contextmanager
def memory_of_pigpiod(folder: Path) -> Iterator[Open]:
    with pigpiod(folder, Bus(Memory())) as port:
        with backends.open_i2c(profile("pigpio", port), 5.0) as opens:
            yield opens


def test_posted_write_fault_is_raised_by_its_own_device(tmp_path: Path) -> None:
    """Another device on the same connection reports no fault."""
    with memory_of_pigpiod(tmp_path) as opens:
        device, other = opens(1, MEMORY), opens(1, MEMORY)
        device.write(0x10, b"\x66")
        for again in (lambda: device.read(0x10, 1), lambda: device.write(0x10, b"\x66")):
            device.post(0xED, bytes(12))
            assert other.read(0x10, 1) == b"\x66"
            with pytest.raises(I2cError, match="0x50"):
                again()
            assert device.read(0x10, 1) == b"\x66"


def test_pigpiod_waits_before_a_transfer(tmp_path: Path) -> None:
    """The wait comes before all of its steps, but after the posted ones."""
    with memory_of_pigpiod(tmp_path) as opens:
        device, other = opens(1, MEMORY), opens(1, MEMORY)
        assert 0.05 < device.patience_s < backends.ANSWER_S
        device.write(0x10, b"\x01")
        device.post(0x10, b"\x02")
        began_s = time.monotonic()
        (before,) = device.prepared(Read(0x10, 1))(0.05)
        assert time.monotonic() - began_s >= 0.05
        assert before == b"\x02"
        nobody = opens(1, NOBODY)
        with pytest.raises(I2cError, match="0x33"):
            nobody.prepared(Read(0x10, 1))(0.01)
        assert other.read(0x10, 1) == b"\x02"


def test_kernel_bus_has_no_patience(kernel: type[FakeSMBus]) -> None:
    assert SmbusI2c(1, MEMORY).patience_s == 0.0


def test_profile_chooses_the_backend() -> None:
    with backends.open_i2c(profile("linux", 8888)) as opens:
        assert opens is SmbusI2c


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EREMOTEIO, "no chip acknowledges the read"),
        (errno.ENXIO, "no chip acknowledges the read"),
        (errno.ENODEV, "no chip acknowledges the read"),
        (errno.ETIMEDOUT, "the bus hangs: is SDA or SCL held low?"),
        (errno.EBUSY, "a driver of the kernel has this address"),
        (errno.EPERM, "Operation not permitted"),
    ],
)
def test_kernel_error_becomes_words(kernel: type[FakeSMBus], number: int, words: str) -> None:
    device = SmbusI2c(1, MEMORY)
    kernel.fault = OSError(number, "Operation not permitted")
    with pytest.raises(I2cError) as fault:
        device.read(0, 1)
    assert str(fault.value) == f"I2C bus 1 address 0x50: {words}"


def test_short_answer_is_an_error(kernel: type[FakeSMBus]) -> None:
    kernel.short = True
    with pytest.raises(I2cError, match="1 bytes, expected 12"):
        SmbusI2c(1, MEMORY).read(0, 12)


def test_missing_kernel_bus_says_how_to_enable_it() -> None:
    with pytest.raises(I2cError, match=r"^/dev/i2c-250: no such bus: enable I2C"):
        SmbusI2c(250, MEMORY)


def test_missing_pigpiod_bus_says_how_to_enable_it(tmp_path: Path) -> None:
    with pigpiod(tmp_path, Bus()) as port:
        with backends.open_i2c(profile("pigpio", port)) as opens:
            with pytest.raises(I2cError, match="dtparam=i2c_arm=on"):
                opens(7, MEMORY)


def test_forbidden_bus_names_the_i2c_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("smbus2.SMBus", refuse)
    with pytest.raises(I2cError, match="usermod -aG i2c USER"):
        SmbusI2c(1, MEMORY)


def test_drivers_work_over_the_kernel_bus(kernel: type[FakeSMBus]) -> None:
    now_s = 10.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monitor = model.Ina219(lambda: 7.5, lambda: -0.4)
    range_chip = tof_model.Vl53l0x(lambda: 0.5, lambda: now_s, boot_s=0.0)
    kernel.bus.devices += [monitor, range_chip]
    gauge = Ina219(SmbusI2c(1, 0x40), 0.1)
    reading = gauge.read()
    assert reading == pytest.approx((7.5, -0.4), abs=0.01)
    sensor = Vl53l0x(SmbusI2c(1, 0x29), lambda: now_s, sleep)
    sensor.start()
    sleep(0.1)
    sample = sensor.read()
    assert sample and sample.range_m == pytest.approx(0.5, abs=0.05)


class Sharing:
    """Device with one register, at a shared address. If off, it acknowledges no transfer."""

    address = 0x29

    def __init__(self, value: int, on: bool = True) -> None:
        self.value, self.on = value, on

    def write(self, data: bytes) -> None:
        self._acknowledge()
        self.value = data[-1]

    def read(self, count: int) -> bytes:
        self._acknowledge()
        return bytes((self.value,)) * count

    def _acknowledge(self) -> None:
        if not self.on:
            raise Nack("switched off")


def test_two_at_one_address_talk_at_once() -> None:
    """A bit that either device pulls low is low, like on a real bus."""
    one, other = Sharing(0b1100), Sharing(0b1010)
    bus = Bus(one, other)
    assert bus.read(0x29, 2) == b"\b\b"
    bus.write(0x29, b"\x00\x05")
    assert (one.value, other.value) == (5, 5)
    one.on = False
    other.value = 7
    assert bus.read(0x29, 1) == b"\x07", "one that is off pulls nothing"
    other.on = False
    with pytest.raises(Nack, match="switched off"):
        bus.read(0x29, 1)
    with pytest.raises(Nack, match="no device at 0x2a"):
        bus.write(0x2A, b"\x00")

"""The time-of-flight sensor: driver and bench chip, a fault at every transfer."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvcar.bench import vl53l0x as model
from fpvcar.bench.i2c import Nack
from fpvcar.devices import vl53l0x
from fpvcar.devices.i2c import I2cError
from fpvcar.devices.vl53l0x import Status, Vl53l0x


@dataclass
class Rig:
    """A chip before one wall, a clock, and a bus that fails when it is told."""

    range_m: float = 0.5
    power: bool = True
    now_s: float = 10.0
    transfers: int = 0
    fails_at: int = -1
    spoils: Callable[[int, bytes], bytes] = lambda _, data: data
    chip: model.Vl53l0x = field(init=False)

    def __post_init__(self) -> None:
        self.chip = model.Vl53l0x(
            lambda: self.range_m, lambda: self.now_s, lambda: self.power
        )
        self.chip.address  # noqa: B018 - it is on before the first transfer
        self.sleep(model.BOOT_S)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def sensor(self) -> Vl53l0x:
        return Vl53l0x(self, lambda: self.now_s, self.sleep)

    def read(self, register: int, size: int) -> bytes:
        self._transfer(bytes((register,)))
        return self.spoils(register, self.chip.read(size))

    def write(self, register: int, data: bytes) -> None:
        self._transfer(bytes((register,)) + data)

    def _transfer(self, data: bytes) -> None:
        self.transfers += 1
        if self.transfers == self.fails_at:
            raise I2cError("nobody acknowledged")
        try:
            self.chip.write(data)
        except Nack as fault:
            raise I2cError(str(fault)) from None


def samples(rig: Rig, sensor: Vl53l0x, seconds: float) -> Iterator[vl53l0x.Sample]:
    """All that come in that time, looked for every millisecond."""
    end_s = rig.now_s + seconds
    while rig.now_s < end_s:
        rig.sleep(0.001)
        if (sample := sensor.read()) is not None:
            yield sample


def ranging(rig: Rig) -> Vl53l0x:
    sensor = rig.sensor()
    sensor.start()
    return sensor


def test_thirty_samples_a_second_of_what_stands_there() -> None:
    rig = Rig(range_m=0.8)
    sensor = ranging(rig)
    got = list(samples(rig, sensor, 1.0))
    assert 30 <= len(got) <= 34
    metres = [sample.range_m for sample in got if sample.range_m is not None]
    assert len(metres) == len(got)
    assert sum(metres) / len(metres) == pytest.approx(0.8, abs=0.02)


def test_nothing_new_is_none_and_nothing_is_told_twice() -> None:
    rig = Rig()
    sensor = ranging(rig)
    assert sensor.read() is None
    rig.sleep(0.05)
    assert sensor.read() is not None
    assert sensor.read() is None


@pytest.mark.parametrize("range_m", [math.inf, 1.21, 3.0])
def test_no_target_is_never_a_distance(range_m: float) -> None:
    rig = Rig(range_m=range_m)
    got = list(samples(rig, ranging(rig), 1.0))
    assert got and all(sample.range_m is None for sample in got)
    assert {sample.status for sample in got} == {Status.SIGNAL, Status.PHASE}


def test_too_near_is_said() -> None:
    rig = Rig(range_m=0.01)
    assert {one.status for one in samples(rig, ranging(rig), 0.2)} == {Status.NEAR}


@pytest.mark.parametrize("raw_mm", [0, 2001, 8190, 8191, 0xFFFF])
def test_a_valid_status_with_an_impossible_range_is_no_distance(raw_mm: int) -> None:
    def spoil(register: int, data: bytes) -> bytes:
        if register != vl53l0x.Register.RESULT_RANGE_STATUS:
            return data
        return data[:10] + raw_mm.to_bytes(2, "big")

    rig = Rig()
    sensor = ranging(rig)
    rig.spoils = spoil
    assert {one for one in samples(rig, sensor, 0.2)} == {(None, Status.PHASE)}


@given(some.integers(0, 255))
def test_every_status_byte_is_understood(byte: int) -> None:
    def spoil(register: int, data: bytes) -> bytes:
        result = register == vl53l0x.Register.RESULT_RANGE_STATUS
        return bytes((byte,)) + data[1:] if result else data

    rig = Rig()
    sensor = ranging(rig)
    rig.spoils = spoil
    for sample in samples(rig, sensor, 0.1):
        valid = (byte >> 3 & 15) == vl53l0x.VALID
        assert (sample.range_m is not None) == valid == (sample.status is Status.OK)


def test_another_chip_is_refused() -> None:
    rig = Rig(spoils=lambda _, data: b"\xb4" + data[1:])
    with pytest.raises(I2cError, match="no VL53L0X: it says b4aa10, not eeaa10"):
        rig.sensor()


def test_nobody_there() -> None:
    rig = Rig(power=False)
    with pytest.raises(I2cError, match="without power"):
        rig.sensor()


@pytest.mark.parametrize(
    ("register", "what"), [(0x83, "its own memory"), (0x13, "reference calibration")]
)
def test_a_chip_that_is_never_ready_is_given_up(register: int, what: str) -> None:
    rig = Rig(spoils=lambda asked, data: b"\0" if asked == register else data)
    with pytest.raises(I2cError, match=f"{what} not ready after 0.5 s"):
        rig.sensor()
    assert rig.now_s < 11.5


def test_a_fault_at_any_transfer_is_said_and_the_next_try_works() -> None:
    whole = Rig()
    ranging(whole)
    for number in range(1, whole.transfers + 1):
        rig = Rig(fails_at=number)
        with pytest.raises(I2cError, match="nobody acknowledged"):
            ranging(rig)
        rig.power = False
        assert rig.chip.address == model.DEFAULT_ADDRESS  # XSHUT is pulled
        rig.power = True
        assert rig.chip.address == model.DEFAULT_ADDRESS
        rig.sleep(model.BOOT_S)
        assert next(samples(rig, ranging(rig), 0.1)).status is Status.OK, number


def test_a_dip_of_the_supply_ends_the_samples_until_it_is_set_up_anew() -> None:
    rig = Rig()
    sensor = ranging(rig)
    rig.power = False
    with pytest.raises(I2cError):
        sensor.read()
    rig.power = True
    with pytest.raises(I2cError):  # booting
        sensor.read()
    rig.sleep(model.BOOT_S)
    assert list(samples(rig, sensor, 0.5)) == []
    assert list(samples(rig, ranging(rig), 0.5)) != []


def test_a_new_address_lasts_until_xshut() -> None:
    rig = Rig()
    rig.sensor().readdress(0x30)
    assert rig.chip.address == 0x30
    rig.power = False
    assert rig.chip.address == 0x30
    rig.power = True
    assert rig.chip.address == model.DEFAULT_ADDRESS


@pytest.mark.parametrize("address", [0x07, 0x78, -1, 0x100])
def test_an_address_that_no_device_may_have_is_refused(address: int) -> None:
    with pytest.raises(ValueError, match="expected 0x08 to 0x77"):
        Rig().sensor().readdress(address)


@given(some.integers(1, 0xFF << 16))
def test_a_timeout_register_holds_a_timeout_to_within_a_256th(mclks: int) -> None:
    back = vl53l0x.decode_timeout(vl53l0x.encode_timeout(mclks))
    assert 0 <= mclks - back <= mclks / 128


@pytest.mark.parametrize("mclks", [0, -1, (0xFF << 16) + 1])
def test_a_timeout_that_no_register_holds_is_refused(mclks: int) -> None:
    with pytest.raises(ValueError, match="macro clocks"):
        vl53l0x.encode_timeout(mclks)


def test_the_budget_after_tuning_is_the_documented_33_ms() -> None:
    """As ST and others give it for the default settings: some 33 ms."""
    steps = vl53l0x.Steps(0xE8, 0x26, 0x97, 0x1FD, 14, 10)
    assert 30_000 <= steps.budget_us() <= 34_000


def test_registers_that_cannot_be_are_refused() -> None:
    huge = vl53l0x.Register.PRE_RANGE_TIMEOUT
    rig = Rig(spoils=lambda asked, data: b"\x11\xff" if asked == huge else data)
    with pytest.raises(I2cError, match="VL53L0X: timeout of"):
        rig.sensor()

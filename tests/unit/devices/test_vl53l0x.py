"""Time-of-flight sensor: driver and bench chip, a fault at every transfer."""

import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as some
from testkit.pins.vl53l0x import Rig

from fpvbench.chips import vl53l0x as model
from fpvcar import config
from fpvcar.devices.chips import vl53l0x
from fpvcar.devices.chips.vl53l0x import Status, Vl53l0x
from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.sensors.reading import LastReading
from fpvcar.sensors.tof import Tof

TRACE = Path(__file__).parents[2] / "vectors" / "vl53l0x_set_up.txt"


def samples(rig: Rig, sensor: Vl53l0x, seconds: float) -> Iterator[vl53l0x.Sample]:
    """Yield all samples of that time, reading every millisecond."""
    end_s = rig.now_s + seconds
    while rig.now_s < end_s:
        rig.sleep(0.001)
        if (sample := sensor.read()) is not None:
            yield sample


def ranging(rig: Rig) -> Vl53l0x:
    sensor = rig.sensor()
    sensor.start()
    return sensor


def test_thirty_samples_a_second_give_the_range() -> None:
    rig = Rig(range_m=0.8)
    sensor = ranging(rig)
    got = list(samples(rig, sensor, 1.0))
    assert 30 <= len(got) <= 34
    metres = [sample.range_m for sample in got if sample.range_m is not None]
    assert len(metres) == len(got)
    assert sum(metres) / len(metres) == pytest.approx(0.8, abs=0.02)


def test_set_up_transfers_match_the_st_api_trace() -> None:
    """Most registers are secret, and no model covers them: the trace was compared with ST's API
    by hand. Successive equal reads count as one."""
    rig = Rig()
    ranging(rig)
    assert [line for line, _ in groupby(rig.trace)] == [
        line for line in TRACE.read_text(encoding="ascii").splitlines() if not line.startswith("#")
    ]


@pytest.mark.parametrize(
    ("info", "good", "chosen"),
    [
        (0x00, "ffffffffffff", "000000000000"),
        (0x05, "ffffffffffff", "1f0000000000"),
        (0x05, "54ffffffffff", "540300000000"),
        (0x85, "ffffffffffff", "00f001000000"),  # apertures begin at 12
        (0x85, "00000f00ffff", "00000f000100"),
        (0xB0, "ffffffffffff", "00f0ffffffff"),  # there are no more apertures
    ],
)
def test_enough_good_spads_of_the_right_kind_are_chosen(info: int, good: str, chosen: str) -> None:
    spads, count = vl53l0x.Register.GLOBAL_SPAD_ENABLES_REF, bytes((info,))

    def spoil(register: int, data: bytes) -> bytes:
        if register == spads:
            return bytes.fromhex(good)
        return count if register == vl53l0x.Register.NVM_SPAD_INFO else data

    rig = Rig(spoils=spoil)
    rig.sensor()
    assert f"{spads:02x} {chosen}" in rig.trace


def test_range_is_that_of_the_measurement_start() -> None:
    rig = Rig(range_m=0.8)
    sensor = ranging(rig)
    rig.range_m = 0.3
    before, after = list(samples(rig, sensor, 0.08))
    assert before.range_m == pytest.approx(0.8, abs=0.05)
    assert after.range_m == pytest.approx(0.3, abs=0.05)


def test_sample_is_read_once_and_then_none() -> None:
    rig = Rig()
    sensor = ranging(rig)
    before = rig.transfers
    assert sensor.read() is None and rig.transfers == before + 1
    rig.sleep(0.05)
    assert sensor.read() is not None and rig.transfers == before + 3
    assert sensor.read() is None


@pytest.mark.parametrize("range_m", [math.inf, 1.21, 3.0])
def test_missing_target_gives_no_distance(range_m: float) -> None:
    rig = Rig(range_m=range_m)
    got = list(samples(rig, ranging(rig), 1.0))
    assert got and all(sample.range_m is None for sample in got)
    assert {sample.status for sample in got} == {Status.SIGNAL, Status.PHASE}


def test_too_near_target_has_status_near() -> None:
    rig = Rig(range_m=0.01)
    assert {one.status for one in samples(rig, ranging(rig), 0.2)} == {Status.NEAR}


@pytest.mark.parametrize(
    ("raw_mm", "status"),
    [
        (0, Status.NEAR),
        (29, Status.NEAR),
        (2001, Status.PHASE),
        (8190, Status.PHASE),
        (8191, Status.PHASE),
        (0xFFFF, Status.PHASE),
    ],
)
def test_impossible_range_with_valid_status_is_no_distance(raw_mm: int, status: Status) -> None:
    def spoil(register: int, data: bytes) -> bytes:
        if len(data) != vl53l0x.RESULT.size:
            return data
        return data[:11] + raw_mm.to_bytes(2, "big")

    rig = Rig()
    sensor = ranging(rig)
    rig.spoils = spoil
    assert set(samples(rig, sensor, 0.2)) == {vl53l0x.Sample(None, status)}


@given(some.integers(0, 255))
def test_status_byte_alone_decides_whether_range_is_given(byte: int) -> None:
    def spoil(register: int, data: bytes) -> bytes:
        result = len(data) == vl53l0x.RESULT.size
        return data[:1] + bytes((byte,)) + data[2:] if result else data

    rig = Rig()
    sensor = ranging(rig)
    rig.spoils = spoil
    for sample in samples(rig, sensor, 0.1):
        valid = (byte >> 3 & 15) == vl53l0x.VALID
        assert (sample.range_m is not None) == valid == (sample.status is Status.OK)


def test_other_chip_is_refused() -> None:
    rig = Rig(spoils=lambda _, data: b"\xb4" + data[1:])
    with pytest.raises(I2cError, match="neither a VL53L0X nor a VL53L1X: identity b4aa10"):
        rig.sensor()


def test_unpowered_chip_raises() -> None:
    rig = Rig(power=False)
    with pytest.raises(I2cError, match="without power"):
        rig.sensor()


@pytest.mark.parametrize(
    ("register", "what"), [(0x83, "its own memory"), (0x13, "reference calibration")]
)
def test_chip_that_is_never_ready_is_given_up(register: int, what: str) -> None:
    rig = Rig(spoils=lambda asked, data: b"\0" if asked == register else data)
    with pytest.raises(I2cError, match=f"{what} not ready after 0.1 s"):
        rig.sensor()
    assert rig.now_s < 10.5


def test_set_up_fault_at_any_transfer_raises_and_retry_works() -> None:
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


class Wired(I2cDevice):
    """Tof on its bus, moved to an address of its own, with its XSHUT."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails_at: int = -1) -> None:
        self.rig = Rig(power=False, fails_at=fails_at)
        self.reading, self.address, self.opened = LastReading("front", 0.0), 0, 0
        monkeypatch.setattr("fpvcar.sensors.tof.time.sleep", self.rig.sleep)
        where, pins = config.Tof(power=4, address=0x30), cast(PigpioPins, self)
        self.tof = Tof(where, self.reading, pins, self.open, lambda: self.rig.now_s)

    def write(self, register_or_pin: int, data: bytes | bool) -> None:
        """Write to the bus, or to the XSHUT pin."""
        if isinstance(data, bool):
            assert register_or_pin == 4
            self.rig.power = data
            self.rig.chip.address  # noqa: B018 - the chip notices at once
            return
        self.answers()
        self.rig.write(register_or_pin, data)

    def read(self, register: int, size: int) -> bytes:
        self.answers()
        return self.rig.read(register, size)

    def answers(self) -> None:
        assert self.opened == 1, "the daemon keeps what was not closed"
        if self.rig.chip.address != self.address:
            raise I2cError("nobody there")

    def open(self, bus: int, address: int) -> I2cDevice:
        self.address, self.opened = address, self.opened + 1
        return self

    def close(self) -> None:
        self.opened -= 1

    def turns(self, readings: int, most_s: float) -> None:
        """Run turns until so many readings are taken, or one turn failed."""
        end_s, wanted = self.rig.now_s + most_s, self.reading.readings + readings
        before = self.reading.state
        while self.reading.readings < wanted and self.reading.state in (before, "ok"):
            self.rig.now_s = max(self.rig.now_s, self.tof.due_s)
            assert self.rig.now_s < end_s, self.reading.state
            self.tof.turn()


def test_sensor_thread_recovers_from_fault_at_any_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transfers move it to its address, set it up and read twice."""
    whole = Wired(monkeypatch)
    whole.turns(2, 1.0)
    assert whole.reading.readings == 2 and whole.address == 0x30
    for number in range(1, whole.rig.transfers + 1):
        wired = Wired(monkeypatch, number)
        wired.turns(2, 1.0)
        assert str(wired.reading.state) == "nobody acknowledged", number
        assert wired.opened == 0 and not wired.rig.power, number
        had = wired.reading.readings
        wired.turns(2, 1.5)
        assert wired.reading.readings == had + 2 and wired.reading.state == "ok", number
        assert wired.reading.range_m == pytest.approx(0.5, abs=0.05), number


def test_supply_dip_ends_samples_until_set_up_again() -> None:
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


def test_new_address_lasts_until_xshut() -> None:
    rig = Rig()
    vl53l0x.readdress(rig, 0x30)
    assert rig.transfers == 2, "others wait meanwhile"
    assert rig.chip.address == 0x30
    rig.power = False
    assert rig.chip.address == 0x30
    rig.power = True
    assert rig.chip.address == model.DEFAULT_ADDRESS


def test_other_chip_is_not_readdressed() -> None:
    rig = Rig(spoils=lambda _, data: b"\xb4" + data[1:])
    with pytest.raises(I2cError, match="neither a VL53L0X"):
        vl53l0x.readdress(rig, 0x30)
    assert rig.chip.address == model.DEFAULT_ADDRESS


def test_sensor_left_ranging_is_stopped_before_set_up() -> None:
    """A sensor without XSHUT was not reset: its calibrations would be lost."""
    rig = Rig()
    ranging(rig)
    rig.sleep(0.1)
    assert list(samples(rig, ranging(rig), 0.2)) == []
    rig = Rig()
    ranging(rig)
    rig.sleep(0.1)
    again = Vl53l0x(rig, lambda: rig.now_s, rig.sleep, reset=False)
    again.start()
    assert next(samples(rig, again, 0.2)).status is Status.OK
    rig = Rig()
    fresh = Vl53l0x(rig, lambda: rig.now_s, rig.sleep, reset=False)
    assert fresh._stop == model.STOP_VARIABLE


@pytest.mark.parametrize("address", [0x07, 0x78, -1, 0x100])
def test_reserved_address_is_refused(address: int) -> None:
    with pytest.raises(ValueError, match="expected 0x08 to 0x77"):
        vl53l0x.readdress(Rig(), address)


def test_impossible_register_values_are_refused() -> None:
    huge = vl53l0x.Register.PRE_RANGE_TIMEOUT
    rig = Rig(spoils=lambda asked, data: b"\x11\xff" if asked == huge else data)
    with pytest.raises(I2cError, match="VL53L0X: timeout of"):
        rig.sensor()

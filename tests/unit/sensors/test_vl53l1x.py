"""VL53L1X family as the sensors' thread finds it: recognised, moved, read; a fault at every
transfer."""

import logging
import math
from dataclasses import dataclass
from typing import cast

import pytest
from testkit.pins.vl53l0x import Rig

from fpvbench.attached import options_of
from fpvbench.chips import vl53l1x as model
from fpvbench.chips.i2c import Nack
from fpvcar import config
from fpvcar.config import ConfigError, profiles
from fpvcar.devices.chips import vl53l1x
from fpvcar.devices.chips.vl53l0x import Status
from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.runtime import paths
from fpvcar.sensors.reading import LastReading
from fpvcar.sensors.tof import Tof

NAMES = sorted(vl53l1x.NAMES.values())


@dataclass
class Wide(Rig):
    """Chip of the family on the bus that fails on request."""

    name: str = "VL53L1X"

    def __post_init__(self) -> None:
        self.wide = model.Vl53l1x(
            lambda: self.range_m, lambda: self.now_s, lambda: self.power, name=self.name
        )
        self.chip = self.wide  # type: ignore[assignment]
        self.wide.address  # noqa: B018 - switches it on before the first transfer
        self.sleep(model.BOOT_S)

    def receive(self, size: int) -> bytes:
        self.transfers += 1
        if self.transfers == self.fails_at:
            raise I2cError("nobody acknowledged")
        try:
            return self.spoils(-1, self.wide.read(size))
        except Nack as fault:
            raise I2cError(str(fault)) from None


class Car:
    """Sensor's thread over a chip: with `moved`, at an address of its own by its XSHUT."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, wide: Wide, moved: bool = False, chip: str = ""
    ) -> None:
        self.wide, self.reading, self.address = wide, LastReading("front", 0.0), 0
        self.opened = 0
        monkeypatch.setattr("fpvcar.sensors.tof.time.sleep", wide.sleep)
        where = config.Tof(chip=cast(config.Tof, chip or wide.name))  # type: ignore[arg-type]
        if moved:
            wide.power = False
            where = config.Tof(chip=where.chip, power=4, address=0x30)
        pins = cast(PigpioPins, self)
        self.tof = Tof(where, self.reading, pins, self.open, lambda: wide.now_s)

    def write(self, pin: int, level: bool) -> None:
        self.wide.power = level
        self.wide.wide.address  # noqa: B018 - the chip notices at once

    def open(self, bus: int, address: int) -> I2cDevice:
        self.opened += 1
        if self.wide.power:
            assert self.wide.wide.address == address
        return self.wide

    def turns(self, readings: int, most_s: float = 1.5) -> None:
        """Run turns until so many readings are taken, or one turn failed."""
        end_s, wanted = self.wide.now_s + most_s, self.reading.readings + readings
        before = self.reading.state
        while self.reading.readings < wanted and self.reading.state in (before, "ok"):
            self.wide.now_s = max(self.wide.now_s, self.tof.due_s)
            assert self.wide.now_s < end_s, self.reading.state
            self.tof.turn()


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_chip_of_the_family_gives_the_range(
    name: str, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    car = Car(monkeypatch, Wide(name=name, range_m=1.8), moved)
    before_s = car.wide.now_s
    car.turns(25)
    assert car.reading.state == "ok" and car.reading.range_m == pytest.approx(1.8, abs=0.1)
    assert car.wide.now_s - before_s < 1.1
    assert car.wide.wide.address == (0x30 if moved else 0x29)


def test_log_names_the_chip_found_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    Car(monkeypatch, Wide(), moved=True, chip="VL53L0X").turns(1)
    assert [record.getMessage() for record in caplog.records] == [
        "sensors.tof.front is a VL53L1X, and the profile says VL53L0X: it is used as VL53L1X"
    ]


def test_unknown_chip_is_refused_with_both_identities(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Wide()
    car = Car(monkeypatch, wide)
    wide.wide._model = b"\xf0\x02"
    for level in (False, True):
        car.write(4, level)
    wide.sleep(0.01)
    car.turns(1)
    said = str(car.reading.state)
    assert said.startswith("neither a VL53L0X nor a VL53L1X: identity ") and said.endswith(", f002")


def test_thread_recovers_from_fault_at_any_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Car(monkeypatch, Wide(), moved=True)
    whole.turns(2)
    assert whole.wide.transfers > 30
    for number in range(1, whole.wide.transfers + 1):
        car = Car(monkeypatch, Wide(fails_at=number), moved=True)
        car.turns(2)
        assert str(car.reading.state) == "nobody acknowledged", number
        assert not car.wide.power, number
        had = car.reading.readings
        car.turns(2, 3.0)
        assert car.reading.readings == had + 2 and car.reading.state == "ok", number


@pytest.mark.parametrize(("range_m", "said"), [(math.inf, None), (2.6, None), (0.01, 0.03)])
def test_target_out_of_reach_gives_no_range(
    range_m: float, said: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    car = Car(monkeypatch, Wide(range_m=range_m))
    car.turns(5)
    assert car.reading.state == "ok" and car.reading.range_m == said


def test_sensor_left_ranging_by_a_killed_owner_is_set_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = Wide()
    Car(monkeypatch, wide).turns(3)
    wide.range_m = 0.9
    wide.trace.clear()
    again = Car(monkeypatch, wide)
    again.turns(3)
    assert [line for line in wide.trace if line.startswith("00 00")][:2] == ["00 0000", "00 0001"]
    assert again.reading.range_m == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    ("raw", "status"),
    [(9, Status.OK), (19, Status.OK), (8, Status.NEAR), (7, Status.PHASE), (2, Status.HARDWARE)]
    + [(0, Status.NONE), (31, Status.NONE), (0xE9, Status.OK)],
)
def test_status_byte_alone_decides_whether_range_is_given(raw: int, status: Status) -> None:
    wide = Wide()
    sensor = vl53l1x.Vl53l1x(wide, lambda: wide.now_s, wide.sleep)
    sensor.start()
    wide.sleep(0.05)
    wide.spoils = lambda _, data: bytes((raw,)) + data[1:] if len(data) > 2 else data
    sample = sensor.read()
    assert sample is not None and sample.status is status
    assert (sample.range_m is None) is (status is not Status.OK)
    assert sensor.read() is None


@pytest.mark.parametrize(
    ("range_mm", "status"),
    [(39, Status.NEAR), (40, Status.OK), (4000, Status.OK), (4001, Status.PHASE)],
)
def test_range_out_of_bounds_is_none(range_mm: int, status: Status) -> None:
    wide = Wide()
    sensor = vl53l1x.Vl53l1x(wide, lambda: wide.now_s, wide.sleep)
    sensor.start()
    wide.sleep(0.05)
    block = vl53l1x.RESULT.pack(vl53l1x.VALID, range_mm, 1000)
    wide.spoils = lambda _, data: block if len(data) > 2 else data
    sample = sensor.read()
    assert sample is not None and sample.status is status
    assert sample.range_m == (range_mm / 1000 if status is Status.OK else None)


def test_chip_that_is_never_ready_is_given_up_after_its_time() -> None:
    wide = Wide(spoils=lambda _, data: bytes(len(data)))
    began_s = wide.now_s
    with pytest.raises(I2cError, match="boot not ready after 0.2 s"):
        vl53l1x.Vl53l1x(wide, lambda: wide.now_s, wide.sleep)
    assert wide.now_s - began_s == pytest.approx(0.2, abs=0.01)


def test_channels_of_a_multiplexer_are_buses_with_one_sensor_each() -> None:
    """The kernel's pca954x makes a bus of each channel, so nothing needs XSHUT."""
    two = ["sensors.tof = {}", "sensors.tof.front.bus = 11", "sensors.tof.left.bus = 12"]
    profile = profiles.load(paths.HARDWARE / "bench.toml", two)
    assert [one.i2c_place for _, _, one in profile.sensors.every()][:2] == [(11, 0x29), (12, 0x29)]
    options = list(options_of(profile))
    assert "11:0:vl53l0x" in options and any(one.startswith("12:") for one in options)
    with pytest.raises(ConfigError, match="XSHUT"):
        profiles.load(paths.HARDWARE / "bench.toml", [*two, "sensors.tof.left.bus = 11"])

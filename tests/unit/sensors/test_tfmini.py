"""TFmini-S: frames, and the sensors' thread over I2C and over a pseudo-terminal."""

import math
import os
import pty
import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvbench.attached import options_of
from fpvbench.chips import tfmini as model
from fpvbench.chips.i2c import Nack
from fpvcar import config
from fpvcar.config import profiles
from fpvcar.devices.chips import tfmini
from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.runtime import paths
from fpvcar.sensors.reading import LastReading
from fpvcar.sensors.tfmini import AGAIN_S, SILENT, SILENT_S, Tfmini
from fpvcar.wiring import plan
from fpvcar.wiring.parts import plan_of


@pytest.mark.parametrize(
    ("range_cm", "strength", "measured"),
    [
        (150, 1500, 1.5),
        (0, 1500, tfmini.NEAREST_M),
        (1200, 100, 12.0),
        (1201, 1500, None),
        (150, 99, None),
        (0xFFFF, 20, None),
        (tfmini.SATURATED, 0xFFFF, tfmini.UNKNOWN[tfmini.SATURATED]),
        (tfmini.BLINDED, 3000, tfmini.UNKNOWN[tfmini.BLINDED]),
    ],
)
def test_frame_gives_range_no_target_or_a_reason(
    range_cm: int, strength: int, measured: tfmini.Measured
) -> None:
    assert tfmini.decode(model.frame(range_cm, strength)) == measured


@given(some.binary(max_size=9), some.integers(0, 8), some.integers(0, 255))
def test_damaged_frame_is_refused(noise: bytes, at: int, value: int) -> None:
    frame = bytearray(model.frame(150, 1500))
    if frame[at] != value:
        frame[at] = value
        with pytest.raises(ValueError, match=frame.hex()):
            tfmini.decode(bytes(frame))


@given(some.randoms(), some.lists(some.integers(10, 1200), min_size=3, max_size=20))
def test_stream_in_any_pieces_loses_no_whole_frame(
    chance: random.Random, ranges: list[int]
) -> None:
    stream = b"\x59\x00\x59" + b"".join(model.frame(one, 1500) for one in ranges)
    frames, found = tfmini.Frames(), list[tfmini.Measured]()
    while stream:
        size = chance.randint(1, 25)
        found += frames.add(stream[:size])
        stream = stream[size:]
    assert found == [one / 100 for one in ranges]


@given(some.lists(some.binary(max_size=40), max_size=8))
def test_noise_keeps_no_memory_and_the_next_frames_are_found(noise: list[bytes]) -> None:
    frames = tfmini.Frames()
    for piece in noise:
        frames.add(piece)
        assert len(frames._pending) <= tfmini.FRAME.size
    assert frames.add(model.frame(150, 1500) * 3)[-1] == 1.5


class Bus(I2cDevice):
    """TFmini-S of the bench on a bus that fails on request."""

    def __init__(self, fails_at: int = 0) -> None:
        self.range_m, self.transfers, self.fails_at, self.opened = 2.0, 0, fails_at, 0
        self.flips = 0
        """Fault: bits of the checksum that arrive wrong."""
        self.chip = model.TfminiS(lambda: self.range_m)

    def open(self, bus: int, address: int) -> I2cDevice:
        assert (bus, address) == (1, 0x10)
        self.opened += 1
        return self

    def close(self) -> None:
        self.opened -= 1

    def _fail(self) -> None:
        self.transfers += 1
        if self.transfers == self.fails_at:
            raise I2cError("nobody acknowledged")

    def read(self, register: int, size: int) -> bytes:
        raise AssertionError("it has no registers")

    def write(self, register: int, data: bytes) -> None:
        self._fail()
        try:
            self.chip.write(bytes((register,)) + data)
        except Nack as fault:
            raise I2cError(str(fault)) from None

    def receive(self, size: int) -> bytes:
        self._fail()
        data = self.chip.read(size)
        return data[:-1] + bytes((data[-1] ^ self.flips,))


class Thread:
    """Turns of one sensor's thread, with their time."""

    def __init__(self, place: config.Tfmini, bus: Bus) -> None:
        self.now_s, self.reading = 10.0, LastReading("front", 0.0)
        self.sensor = Tfmini(place, self.reading, bus.open, lambda: self.now_s)

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.now_s = max(self.now_s, self.sensor.due_s)
            self.sensor.turn()


@pytest.mark.parametrize("fails_at", range(1, 7))
def test_thread_recovers_from_fault_at_any_transfer(fails_at: int) -> None:
    bus = Bus(fails_at)
    thread = Thread(config.Tfmini(), bus)
    thread.turns((fails_at + 1) // 2)
    assert str(thread.reading.state) == "nobody acknowledged" and bus.opened == 0
    began_s = thread.now_s
    thread.turns(2)
    assert thread.reading.state == "ok" and thread.now_s >= began_s + AGAIN_S
    assert thread.reading.range_m == pytest.approx(2.0, abs=0.1) and bus.opened == 1


def test_damaged_frame_on_the_bus_is_no_range() -> None:
    bus = Bus()
    thread = Thread(config.Tfmini(), bus)
    thread.turns(3)
    seen_s, bus.flips = thread.reading.at_s, 1
    thread.turns(1)
    assert thread.reading.state == tfmini.DAMAGED and thread.reading.at_s == seen_s
    bus.flips = 0
    thread.turns(2)
    assert str(thread.reading.state) == "ok"


@pytest.mark.parametrize(("range_m", "said"), [(math.inf, None), (8.0, None), (0.06, 0.1)])
def test_target_out_of_reach_gives_no_range(range_m: float, said: float | None) -> None:
    bus = Bus()
    bus.range_m = range_m
    thread = Thread(config.Tfmini(), bus)
    thread.turns(3)
    assert thread.reading.state == "ok"
    assert thread.reading.range_m == (said if said is None else pytest.approx(said, abs=0.05))


def test_light_that_says_nothing_is_no_free_road() -> None:
    bus = Bus()
    thread = Thread(config.Tfmini(), bus)
    thread.turns(3)
    seen_s = thread.reading.at_s
    bus.range_m = 0.01
    thread.turns(3)
    assert thread.reading.state == tfmini.UNKNOWN[tfmini.SATURATED]
    assert thread.reading.at_s == seen_s, "the age grows, so that the guard stops"


def test_serial_sensor_is_read_lost_and_found_again() -> None:
    here, there = pty.openpty()
    place = config.Tfmini(device=os.ttyname(there))
    thread = Thread(place, Bus())
    thread.turns(1)
    os.write(here, b"\x59" + model.frame(150, 1500) + model.frame(151, 1500))
    thread.turns(1)
    assert thread.reading.readings == 2 and thread.reading.range_m == 1.51
    thread.now_s += SILENT_S + 0.01
    thread.turns(1)
    assert thread.reading.state == SILENT
    os.write(here, model.frame(140, 1500))
    thread.turns(1)  # opened again
    os.write(here, model.frame(140, 1500))
    thread.turns(1)
    assert str(thread.reading.state) == "ok" and thread.reading.range_m == 1.4
    os.close(here)
    os.close(there)
    thread.now_s += SILENT_S + 0.01
    for _ in range(3):
        thread.turns(1)
        assert str(thread.reading.state) != "ok"
    assert place.device in str(thread.reading.state)


def test_speed_of_the_port_is_that_of_the_data_sheet() -> None:
    import termios

    here, there = pty.openpty()
    thread = Thread(config.Tfmini(device=os.ttyname(there)), Bus())
    thread.turns(1)
    assert termios.tcgetattr(there)[4:6] == [termios.B115200, termios.B115200]
    thread.sensor.close()
    os.close(here)
    os.close(there)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        (["front.device = '/dev/serial0'", "left.device = '/dev/ttyUSB0'"], ""),
        (["front.device = '/dev/serial0'", "left.address = 0x11"], ""),
        (["front.device = '/dev/serial0'", "left.device = '/dev/serial0'"], "already used"),
        (["front.address = 0x10", "left.bearing_deg = 90"], "already used"),
    ],
)
def test_two_sensors_need_two_ports_or_addresses(keys: list[str], fault: str) -> None:
    asked = ["sensors.tof = {}", *(f"sensors.tfmini.{key}" for key in keys)]
    if fault:
        with pytest.raises(config.ConfigError, match=fault):
            profiles.load(paths.HARDWARE / "bench.toml", asked)
        return
    profile = profiles.load(paths.HARDWARE / "bench.toml", asked)
    drawn = {part.name: part for part in plan_of(profile, "two").parts}
    pins = {terminal.name: terminal.source for terminal in drawn["TFmini-S front"].terminals}
    assert pins["TX"] == plan.gpio(15)
    options = list(options_of(profile))
    assert any("tfmini:0x11" in one for one in options) is ("left.address = 0x11" in keys)

"""Ultrasonic sensor: the driver alone, and against the emulated daemon."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from testkit.pins.pigpiod import emulator

from fpvcar.devices.chips import hcsr04
from fpvcar.devices.chips.hcsr04 import HcSr04, Median, Sample, Status
from fpvcar.devices.outlier_filter import NoiseFilter
from fpvcar.devices.pigpio.edges import PigpioEdges
from fpvcar.devices.pins import Edge, PinsFault
from fpvcar.sensors import ultrasound
from fpvcar.sensors.reading import JUMP_M, JUMP_SHARE, LastReading
from fpvcar.wire import telemetry

ECHO, OTHER, TRIGGER = 21, 22, 20
FILTER = partial(NoiseFilter, JUMP_M, JUMP_SHARE)


@dataclass
class Air:
    """Pins that answer a trigger with the edges of a script: (us after it, gpio, level)."""

    answers: Callable[[], Sequence[tuple[int, int, int]]]
    now_us: int = 5_000_000
    triggers: int = 0
    stuck_s: float = math.inf
    """Time after which a trigger is accepted while the echo is high."""
    coming: list[Edge] = field(default_factory=list)
    levels: dict[int, int] = field(default_factory=dict)

    def clock_s(self) -> float:
        return self.now_us / 1e6

    def trigger(self, gpio: int, length_us: int, after_s: float) -> None:
        assert gpio == TRIGGER and length_us >= 10
        high = self.levels.get(ECHO) and self.clock_s() < self.stuck_s
        assert not high, "triggered while the echo is high"
        self.triggers += 1
        for after_us, gpio, level in self.answers():
            at_us = self.now_us + round(1e6 * after_s) + after_us
            self.coming.append(Edge(at_us, gpio, level))

    def read(self, timeout_s: float, changes: int = 1) -> list[Edge]:
        end_us = self.now_us + math.ceil(timeout_s * 1e6)
        due = [edge for edge in self.coming if edge.tick_us <= end_us]
        self.coming = [edge for edge in self.coming if edge.tick_us > end_us]
        last_us = max((edge.tick_us for edge in due), default=end_us)
        self.now_us = max(self.now_us, last_us)
        for edge in due:
            self.levels[edge.gpio] = edge.level
        wrapped = [edge._replace(tick_us=edge.tick_us % hcsr04.TICKS) for edge in due]
        return wrapped

    def level(self, gpio: int) -> int:
        return self.levels.get(gpio, 0)

    def fileno(self) -> int:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def sensor(self) -> HcSr04:
        pins: Any = self
        return HcSr04(pins, self, TRIGGER, ECHO, FILTER(), self.clock_s)


def echo(width_us: int) -> list[tuple[int, int, int]]:
    return [(450, ECHO, 1), (450 + width_us, ECHO, 0)]


def test_echo_of_5800_us_is_a_metre_at_twenty_degrees() -> None:
    """Data sheet: 58 us per centimetre."""
    sample = Air(lambda: echo(5800)).sensor().measure()
    assert sample.status is Status.OK
    assert sample.range_m == pytest.approx(1.0, abs=0.01)


def test_sound_is_slower_in_the_cold() -> None:
    warm, cold = (
        Air(lambda: echo(5800)).sensor().measure(celsius).range_m for celsius in (30.0, -10.0)
    )
    assert warm is not None and cold is not None
    assert warm / cold == pytest.approx(349.5 / 325.2, abs=1e-3)


@pytest.mark.parametrize(
    ("width_us", "status"),
    [(99, Status.NOISE), (100, Status.OK), (25_000, Status.OK), (25_001, Status.FAR)],
)
def test_echo_widths_at_limits_give_their_status(width_us: int, status: Status) -> None:
    assert Air(lambda: echo(width_us)).sensor().measure().status is status


def test_range_is_right_when_daemon_clock_wraps() -> None:
    air = Air(lambda: echo(5800), now_us=(1 << 32) - 3000)
    assert air.sensor().measure().range_m == pytest.approx(1.0, abs=0.01)


def test_edges_of_other_sensors_are_ignored() -> None:
    both = [(400, OTHER, 1), (600, OTHER, 0)]
    sample = Air(lambda: [*both, *echo(5800)]).sensor().measure()
    assert sample.range_m == pytest.approx(1.0, abs=0.01)


def test_spark_before_the_echo_is_ignored() -> None:
    spark = [(20, ECHO, 1), (26, ECHO, 0)]
    sample = Air(lambda: [*spark, *echo(5800)]).sensor().measure()
    assert sample.range_m == pytest.approx(1.0, abs=0.01)
    assert Air(lambda: spark).sensor().measure() == (None, Status.NOISE)


def test_absent_sensor_is_reported_within_34_ms() -> None:
    air = Air(list)
    begin_us = air.now_us
    assert air.sensor().measure() == (None, Status.ABSENT)
    assert air.now_us - begin_us <= 34_000


def test_waiting_trigger_extends_the_wait_for_the_echo() -> None:
    """The pins wait, and the wait for the echo is extended by the same time."""
    air = Air(lambda: echo(5800))
    begin_us = air.now_us
    spark = [Edge(begin_us + 9_000, ECHO, 1), Edge(begin_us + 9_006, ECHO, 0)]
    air.coming += spark
    sample = air.sensor().measure(after_s=0.03)
    assert sample.range_m == pytest.approx(1.0, abs=0.01)
    assert air.now_us - begin_us == 30_000 + 450 + 5800
    nobody = Air(list)
    assert nobody.sensor().measure(after_s=0.03) == (None, Status.ABSENT)
    assert 60_000 <= nobody.now_us - begin_us <= 64_000


def test_long_echo_is_far_and_sensor_waits_for_its_end() -> None:
    air = Air(lambda: echo(38_000))
    sensor = air.sensor()
    assert sensor.measure().status is Status.FAR
    waits = sensor.measure()
    assert waits == (None, Status.WAITING), "still high: not triggered"
    assert air.triggers == 1
    air.now_us += 40_000
    assert sensor.measure().status is Status.FAR
    assert air.triggers == 2


def stuck_one(
    then: Callable[[], Sequence[tuple[int, int, int]]],
) -> tuple[Air, HcSr04, list[Status]]:
    """Measure a sensor with an echo that does not fall, every 33 ms for 1.5 s; `then` answers
    its triggers after that. Returns the pins, the sensor and its statuses."""
    air = Air(lambda: [(450, ECHO, 1)])
    air.stuck_s = air.clock_s() + hcsr04.STUCK_S
    sensor, statuses = air.sensor(), []
    for _ in range(46):
        begin_us = air.now_us
        statuses.append(sensor.measure().status)
        air.answers = then
        air.now_us = max(air.now_us, begin_us + 33_000)
    return air, sensor, statuses


def test_unended_echo_after_an_echo_may_be_stuck() -> None:
    """ "No target" at once would hide a wall; two long echoes in a row are accepted."""
    widths = iter([5800, 5800, 38_000, 5800, 38_000, 38_000])
    sensor = Air(lambda: echo(next(widths))).sensor()
    statuses = []
    for _ in range(6):
        statuses.append(sensor.measure().status)
        sensor._edges.read(0.01)  # until the longest has ended
    heard = [Status.OK, Status.OK, Status.WAITING]
    assert statuses == [*heard, Status.OK, Status.WAITING, Status.FAR]


def test_median_restarts_after_a_wait() -> None:
    """Old values are a quarter of a second old, and a car may have driven."""
    median = Median()
    for range_m in (1.4, 1.3, 1.2):
        median.add(Sample(range_m, Status.OK))
    median.add(Sample(None, Status.WAITING))
    assert median.add(Sample(0.7, Status.OK)).range_m == 0.7
    assert median.add(Sample(2.0, Status.OK)).range_m == 0.7, "of two the nearer"
    assert median.add(Sample(0.6, Status.OK)).range_m == 0.7


def test_unfalling_echo_is_stuck_and_recovers() -> None:
    air, sensor, statuses = stuck_one(list)
    assert statuses[0] is Status.FAR
    assert statuses[1:8] == [Status.WAITING] * 7, "nothing was measured"
    assert set(statuses[8:]) == {Status.STUCK}
    assert air.triggers == 3, "at once, and a second later"
    air.coming.append(Edge(air.now_us, ECHO, 0))
    air.answers = lambda: echo(5800)
    assert sensor.measure().range_m == pytest.approx(1.0, abs=0.01)


def test_sensor_holding_echo_until_trigger_recovers() -> None:
    """Some clones do so if they receive no echo."""
    _, _, statuses = stuck_one(lambda: [(5, ECHO, 0), *echo(5800)])
    assert statuses[:8] == [Status.FAR] + [Status.WAITING] * 7
    assert set(statuses[9:]) == {Status.OK}


def test_stuck_sensor_is_believed_only_with_an_ended_echo() -> None:
    """Otherwise the sensor would report a free way every second."""
    _, _, statuses = stuck_one(lambda: [(5, ECHO, 0), (450, ECHO, 1)])
    assert set(statuses[1:]) == {Status.WAITING, Status.STUCK}


def test_waiting_sensor_keeps_status_and_reading_ages() -> None:
    samples = LastReading("rear", 180.0)
    ultrasound.update(samples, Sample(0.5, Status.OK), 10.0)
    ultrasound.update(samples, Sample(None, Status.WAITING), 10.2)
    assert samples.status(10.25) == telemetry.Range("rear", 180.0, 0.5, 0.25, "ok")
    ultrasound.update(samples, Sample(None, Status.STUCK), 10.3)
    stuck = telemetry.Range("rear", 180.0, 0.5, 0.5, Status.STUCK.value)
    ultrasound.update(samples, Sample(None, Status.WAITING), 10.4)
    assert samples.status(10.5) == stuck
    ultrasound.update(samples, Sample(None, Status.FAR), 10.75)
    assert samples.status(11.0) == telemetry.Range("rear", 180.0, None, 0.25, "ok")


@given(
    some.lists(some.floats(0.5, 0.6), min_size=5, max_size=20),
    some.integers(2, 19),
    some.none() | some.floats(0.02, 4.0),
)
def test_single_wrong_echo_is_filtered_out(
    steady_m: list[float], at: int, wild_m: float | None
) -> None:
    median, samples = Median(), list[Sample]()
    for number, range_m in enumerate(steady_m):
        wild = number == min(at, len(steady_m) - 2)
        range_m_or_none = wild_m if wild else range_m
        status = Status.FAR if range_m_or_none is None else Status.OK
        samples.append(median.add(Sample(range_m_or_none, status)))
    for sample in samples[2:]:
        assert sample.range_m is not None and 0.5 <= sample.range_m <= 0.6


def test_fault_is_told_at_once_and_restarts_the_median() -> None:
    median = Median()
    for _ in range(3):
        median.add(Sample(0.5, Status.OK))
    assert median.add(Sample(None, Status.STUCK)).status is Status.STUCK
    assert median.add(Sample(2.0, Status.OK)).range_m == 2.0


def test_edges_without_a_daemon_raise_pins_fault(tmp_path: Path) -> None:
    with emulator(tmp_path) as daemon:
        port = daemon.port
    with pytest.raises(PinsFault, match=f"port {port}"):
        PigpioEdges("127.0.0.1", port, [ECHO])

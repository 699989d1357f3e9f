"""Time from a failure to motors off; detection of pulse trains. Clocks are passed in."""

from collections.abc import Sequence
from typing import Any

import pytest

from fpvcar.config import Esc
from fpvcar.devices.pins import Edge
from fpvcar.hil.pin_recorder import (
    SILENT_S,
    EdgeDuties,
    EdgeWidth,
    EscDuties,
    Pulses,
    Sample,
    Scope,
    pulses,
)

OFF, FORWARD, BRAKE = (0.0, 0.0, 0.0, 0.0), (0.4, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)
MS = 1_000_000


def seen(*looks: tuple[int, tuple[float, ...]]) -> Scope:
    """Return a scope that sampled these values at these times, in ms."""
    clock = iter([at for at, _ in looks])
    duties = iter([one for _, one in looks])
    scope = Scope(lambda: next(duties), lambda: next(clock) * MS)
    for _ in looks:
        scope.note()
    return scope


def test_bridge_with_one_input_drives_with_both_brakes() -> None:
    assert Sample(0, FORWARD).driving and Sample(0, (0.0, 0.0, 0.0, 1.0)).driving
    assert not Sample(0, BRAKE).driving and not Sample(0, OFF).driving


def test_stop_is_the_end_of_the_last_drive_after_the_failure() -> None:
    scope = seen((0, OFF), (10, FORWARD), (150, BRAKE), (350, OFF))
    assert scope.drove_at(100 * MS) and not scope.drove_at(5 * MS)
    assert scope.stopped_after_s(100 * MS) == pytest.approx(0.05)
    assert scope.trace(100 * MS)[1:3] == ((-0.09, 0.4), (0.05, 0.0))


def test_stop_before_the_failure_took_no_time() -> None:
    assert seen((0, FORWARD), (50, OFF)).stopped_after_s(100 * MS) == 0.0


def test_motor_turning_again_is_motion_a_glitch_is_not() -> None:
    glitch = seen((0, FORWARD), (50, OFF), (100, FORWARD), (120, FORWARD), (121, OFF))
    assert not glitch.moved_since(1) and glitch.samples[2].driving
    turned = seen((0, FORWARD), (50, OFF), (100, FORWARD), (121, FORWARD))
    assert turned.moved_since(1) and not turned.moved_since(3)
    assert not seen((0, OFF), (50, FORWARD), (90, OFF)).moved_since(0), "one look"


def test_car_stands_once_the_motors_are_off_for_a_moment() -> None:
    stopped = ((0, FORWARD), (10, BRAKE), (35, OFF))
    assert not seen(*stopped).stands
    assert seen(*stopped, (45, OFF)).stands
    assert not seen(*stopped, (45, FORWARD), (60, OFF), (80, OFF)).stands
    assert not seen((0, OFF), (90, FORWARD)).stands
    assert not seen(*stopped, (45, OFF)).released
    assert seen(*stopped, (66, OFF)).released


def test_exception_of_the_poll_thread_is_raised_on_reading() -> None:
    answers = iter([OFF])
    with Scope(lambda: next(answers)) as scope:
        scope._thread.join(5.0)
        with pytest.raises(StopIteration):
            assert scope.driving


class PlayedEdges:
    """Edges that arrive when they are played."""

    def __init__(self) -> None:
        self.coming: list[Edge] = []
        self.levels: dict[int, int] = {}

    def read(self, timeout_s: float, changes: int = 1) -> Sequence[Edge]:
        found, self.coming = self.coming, []
        self.levels |= {one.gpio: one.level for one in found}
        return found

    def level(self, gpio: int) -> int:
        return self.levels.get(gpio, 0)

    def fileno(self) -> int:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_pin_is_steady_two_periods_after_its_last_edge() -> None:
    edges, now_s = PlayedEdges(), 10.0
    duties = EdgeDuties(edges, (5, 6), 0.001, lambda: now_s)
    assert duties() == (0.0, 0.0)
    edges.coming = [Edge(0, 5, 1), Edge(300, 5, 0), Edge(1000, 5, 1)]
    assert duties() == (0.5, 0.0)
    now_s += 0.0019
    assert duties() == (0.5, 0.0)
    now_s += 0.0002
    assert duties() == (1.0, 0.0)


def test_pulses_are_counted_in_whole_periods_over_the_wrap_of_the_tick() -> None:
    changes = ((0, 1), (250, 0), (1000, 1), (1250, 0), (2000, 1))
    train = [((2**32 - 500 + at) % 2**32, level) for at, level in changes]
    assert pulses(train) == Pulses(0.25, 1000.0, (250, 250))
    assert pulses([(0, 0), *[(at + 7, level) for at, level in ((0, 1), (9, 0))]]) is None
    assert pulses([]) is None


# Pulses of an ESC


def throttle(width_us: float, **keys: Any) -> Sample:
    return Sample(0, EscDuties(lambda: width_us, Esc(signal=18, **keys))())


def test_neutral_pulses_of_an_esc_drive_nothing() -> None:
    for width_us in (0.0, 1485.0, 1500.0, 1515.0):
        assert not throttle(width_us).driving
    assert throttle(1516.0).driving and throttle(1484.0).driving
    assert throttle(1750.0).duties == (0.5, 0.0, 1.0, 1.0)
    assert throttle(1250.0).duties == (0.0, 0.5, 1.0, 1.0)
    turned = throttle(1250.0, forward_us=1000.0, reverse_us=2000.0)
    assert turned.duties[:2] == (0.5, 0.0)
    assert any(throttle(1500.0).duties) and not any(throttle(0.0).duties)


def test_silence_after_throttle_is_no_neutral() -> None:
    drives, neutral = (0.5, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0)
    assert seen((0, neutral), (10, drives), (20, neutral)).neutral_before_silence()
    assert seen((0, neutral), (10, drives), (20, neutral), (90, OFF)).neutral_before_silence()
    assert not seen((0, neutral), (10, drives), (90, OFF)).neutral_before_silence()
    assert seen((0, OFF)).neutral_before_silence()


def test_width_is_that_of_the_newest_pulse_until_silence() -> None:
    played, now_s = PlayedEdges(), [0.0]
    width = EdgeWidth(played, 5, lambda: now_s[0])
    assert width() == 0.0
    played.coming = [Edge(90, 5, 0), Edge(100, 5, 1), Edge(900, 6, 0), Edge(1600, 5, 0)]
    assert width() == 1500.0
    played.coming = [Edge((1 << 32) - 500, 5, 1)]
    assert width() == 1500.0
    played.coming = [Edge(700, 5, 0)]
    now_s[0] = 0.04
    assert width() == 1200.0
    now_s[0] += 0.9 * SILENT_S
    assert width() == 1200.0
    now_s[0] += 0.2 * SILENT_S
    assert width() == 0.0

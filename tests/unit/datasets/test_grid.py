"""Ticks take the newest frame; episodes end at holes, marks and changes of driver."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpvcar.datasets import grid
from fpvcar.datasets.grid import HOLE_NS, Span
from fpvcar.runtime.units import SECOND_NS

FRAME_NS = SECOND_NS // 30
captures = st.lists(st.integers(1, HOLE_NS), min_size=1, max_size=60).map(
    lambda gaps: list(accumulate(gaps))
)
rates = st.integers(1, 120)


@given(captures, rates)
def test_tick_has_the_newest_frame_not_later_than_it(times: list[int], fps: int) -> None:
    ticks = grid.ticks(times, 0, len(times), fps)
    assert len(ticks.times_ns) == len(ticks.frames) >= 1
    for tick_ns, frame in zip(ticks.times_ns, ticks.frames, strict=True):
        assert times[frame] <= tick_ns
        assert frame + 1 == len(times) or times[frame + 1] > tick_ns


@given(captures, rates)
def test_ticks_have_a_constant_rate_over_all_frames(times: list[int], fps: int) -> None:
    ticks = grid.ticks(times, 0, len(times), fps)
    period_ns = SECOND_NS / fps
    for number, tick_ns in enumerate(ticks.times_ns):
        exact_ns = ticks.times_ns[0] + number * period_ns
        slack_ns = number * period_ns * 2 * grid.DRIFT_SHARE + 1
        assert abs(tick_ns - exact_ns) <= slack_ns
    assert abs(ticks.times_ns[-1] - times[-1]) <= 1.01 * period_ns + 1


@given(captures, rates)
def test_doubled_and_dropped_frames_account_for_each_tick(times: list[int], fps: int) -> None:
    ticks = grid.ticks(times, 0, len(times), fps)
    taken = set(ticks.frames)
    assert ticks.doubled == len(ticks.frames) - len(taken)
    assert ticks.dropped == len(set(range(len(times))) - taken)


@given(st.lists(st.integers(-FRAME_NS // 4, FRAME_NS // 4), min_size=2, max_size=200))
def test_jitter_of_a_quarter_period_neither_doubles_nor_drops(jitter: list[int]) -> None:
    jitter[0] = jitter[-1] = 0
    times = [SECOND_NS + number * FRAME_NS + late for number, late in enumerate(jitter)]
    ticks = grid.ticks(times, 0, len(times), 30)
    assert ticks.frames == list(range(len(times)))


@pytest.mark.parametrize(("hz", "doubled", "dropped"), [(29.97, 0, 0), (25, 50, 0), (33, 0, 27)])
def test_ticks_follow_a_camera_that_is_nearly_right(hz: float, doubled: int, dropped: int) -> None:
    times = [round(number * SECOND_NS / hz) for number in range(round(10 * hz))]
    ticks = grid.ticks(times, 0, len(times), 30)
    assert ticks.doubled == pytest.approx(doubled, abs=2)
    assert ticks.dropped == pytest.approx(dropped, abs=4)
    if not doubled + dropped:
        assert ticks.frames == list(range(len(times)))


@given(captures, st.lists(st.integers(0, 30 * SECOND_NS), min_size=2, max_size=8), st.booleans())
def test_stretches_have_each_frame_of_a_span_once(
    times: list[int], edges: list[int], from_key: bool
) -> None:
    keys = [number % 7 == 0 for number in range(len(times))]
    spans = [Span(start, end, "") for start, end in pairwise(sorted(set(edges)))]
    cuts = grid.stretches(spans, times, keys, from_key)
    covered = {number for cut in cuts for number in range(cut.first, cut.end)}
    inside = [any(a.start_ns <= time <= a.end_ns for a in spans) for time in times]
    assert from_key or covered == {number for number, isin in enumerate(inside) if isin}
    for cut in cuts:
        assert cut.span.start_ns <= times[cut.first] and times[cut.end - 1] <= cut.span.end_ns
        assert keys[cut.first] or not from_key
        assert all(b - a <= HOLE_NS for a, b in pairwise(times[cut.first : cut.end]))


def test_stretch_ends_at_a_hole() -> None:
    times = [number * FRAME_NS for number in range(60)]
    times[40:] = [time + HOLE_NS for time in times[40:]]
    span = Span(0, 10 * SECOND_NS, "Ann")
    keys = [number % 30 == 0 for number in range(60)]
    cuts = grid.stretches([span], times, keys, from_key=False)
    assert [(cut.first, cut.end) for cut in cuts] == [(0, 40), (40, 60)]
    keyed = grid.stretches([span], times, keys, from_key=True)
    assert [(cut.first, cut.end) for cut in keyed] == [(0, 40)], "no key frame after the hole"


def test_mark_begins_an_episode_that_ends_at_the_next_one() -> None:
    spans = [Span(0, 100, "Ann"), Span(100, 200, "Bob")]
    marks = [(150, "lap 3"), (20, "lap 1"), (60, "lap 2"), (250, "nobody")]
    assert grid.marked(spans, marks) == [
        Span(20, 60, "Ann", "lap 1"),
        Span(60, 100, "Ann", "lap 2"),
        Span(150, 200, "Bob", "lap 3"),
    ]


def test_rate_is_that_of_most_frames() -> None:
    times = [number * SECOND_NS // 25 for number in range(100)]
    assert grid.rate_of(times) == 25
    assert grid.rate_of([*times, times[-1] + 60 * SECOND_NS]) == 25
    assert grid.rate_of(times[:1]) == 0

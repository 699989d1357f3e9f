"""Filters against references that check every sample, on random traces.

Rules of pigpio's documentation: the glitch filter does not report a level unless it was stable for
at least `steady` microseconds; the noise filter ignores changes until a level was stable for
`steady` microseconds, then reports changes for `active` microseconds, after which the process
repeats.
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.pins.pigpiod import START_US, Core, make_core, words

from fpvbench.pigpiod.edges.filters import Filter, Glitch, Noise
from fpvbench.pigpiod.protocol import Cmd

T0 = START_US
TICK_US = 5


@st.composite
def traces(draw: st.DrawFn) -> list[int]:
    """Draw levels at each sample: runs of random length, some glitches."""
    levels: list[int] = []
    level = draw(st.integers(0, 1))
    for length in draw(st.lists(st.integers(1, 60) | st.integers(1, 4), max_size=30)):
        levels += [level] * length
        level = 1 - level
    return levels or [level]


def glitch_reference(levels: list[int], steady_us: int) -> list[int]:
    """Return for each sample the last level that was constant for `steady_us` up to then."""
    shown, out = levels[0], []
    begun = 0
    for number, level in enumerate(levels):
        if number and level != levels[number - 1]:
            begun = number
        if (number - begun) * TICK_US >= steady_us and number:
            shown = level
        out.append(shown)
    return out


def noise_reference(levels: list[int], steady_us: int, active_us: int, set_us: int) -> list[int]:
    """Return for each sample the pin in a window, otherwise the level before the last window."""
    out, held, before = [], 0, 0
    quiet_since_us, open_until_us = set_us, -1
    is_open = False
    for number, level in enumerate(levels):
        at_us = T0 + number * TICK_US
        if is_open and at_us >= open_until_us:
            is_open, quiet_since_us = False, at_us
        elif not is_open and level != before:
            if at_us - quiet_since_us >= steady_us:
                is_open, open_until_us, held = True, at_us + active_us, before
            quiet_since_us = at_us
        before = level
        out.append(level if is_open else held)
    return out


def filtered(levels: list[int], by: Filter, cuts: set[int]) -> list[int]:
    """Return the output of a filter at each sample, with batches that end after `cuts`."""
    out: list[int] = []
    ends = sorted({cut for cut in cuts if cut < len(levels)} | {len(levels)})
    start = 0
    for end in ends:
        part = levels[start:end]
        if not part:
            continue
        samples = [(T0 + start * TICK_US, part[0])]
        for number in range(1, len(part)):
            if part[number] != part[number - 1]:
                samples.append((T0 + (start + number) * TICK_US, part[number]))
        shown = dict(by.run(samples, T0 + (end - 1) * TICK_US))
        assert min(shown) == T0 + start * TICK_US
        assert all(at_us % TICK_US == 0 for at_us in shown)
        level = -1
        for number in range(start, end):
            level = shown.get(T0 + number * TICK_US, level)
            out.append(level)
        start = end
    return out


CUTS = st.sets(st.integers(1, 1000), max_size=20)


@settings(max_examples=300)
@given(traces(), st.integers(1, 400), CUTS)
def test_glitch_filter_matches_the_reference(
    levels: list[int], steady_us: int, cuts: set[int]
) -> None:
    wanted = glitch_reference(levels, steady_us)
    assert filtered(levels, Glitch(steady_us), cuts) == wanted


@settings(max_examples=300)
@given(traces(), st.integers(1, 400), st.integers(0, 600), st.integers(0, 300), CUTS)
def test_noise_filter_matches_the_reference(
    levels: list[int], steady_us: int, active_us: int, early_us: int, cuts: set[int]
) -> None:
    noise = Noise()
    noise.set(steady_us, active_us, T0 - early_us)
    wanted = noise_reference(levels, steady_us, active_us, T0 - early_us)
    assert filtered(levels, noise, cuts) == wanted


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_daemon_reports_the_reference_changes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Through the daemon: reports are the changes of the reference."""
    core = make_core(tmp_path_factory.getbasetemp())
    levels, steady_us = data.draw(traces()), data.draw(st.integers(1, 400))
    reader = core.reader(1 << 22)
    core(Cmd.FG, 22, steady_us)
    core.run(2 * TICK_US)
    levels = [0, 0, 0, *levels]  # a floating pin is low
    edges = [(T0 + number * TICK_US, level) for number, level in enumerate(levels)]
    core.daemon.lines.play(22, edges[3:])
    core.run(len(levels) * TICK_US + 2000)
    wanted = glitch_reference(levels + levels[-1:] * 200, steady_us)
    changes = [
        (T0 + number * TICK_US, level)
        for number, level in enumerate(wanted)
        if number and level != wanted[number - 1]
    ]
    assert reader.edges(22) == changes


@pytest.mark.parametrize("level", [0, 1])
def test_setting_a_filter_reports_no_edge(core: Core, level: int) -> None:
    core(Cmd.PUD, 22, 1 + level)
    reader = core.reader(1 << 22)
    core.run(3000)
    core(Cmd.FG, 22, 1000)
    core.run(5000)
    core(Cmd.FG, 22, 2000)
    core.run(5000)
    core(Cmd.FG, 22, 0)
    core.run(5000)
    assert reader.take() == []


def test_filter_set_again_takes_the_present_level(core: Core) -> None:
    reader = core.reader(1 << 22)
    core(Cmd.FG, 22, 100_000)
    core.run(2000)
    core.soc.pin[22].external = 1
    core.run(5000)
    assert reader.take() == []
    core(Cmd.FG, 22, 100_000)
    core.run(2000)
    assert [level for _, level in reader.edges(22)] == [1]


def test_glitch_filter_switched_off_shows_the_level_again(core: Core) -> None:
    core(Cmd.FG, 22, 100_000)
    core.run(200_000)
    reader = core.reader(1 << 22)
    core.daemon.lines.play(22, [(core.now_us + 1000, 1)])
    core.run(5000)
    assert reader.take() == []
    core(Cmd.FG, 22, 0)
    core.run(5000)
    assert [level for _, level in reader.edges(22)] == [1]


def test_glitch_filter_feeds_the_noise_filter(core: Core) -> None:
    reader = core.reader(1 << 22)
    core(Cmd.FG, 22, 100)
    core(Cmd.FN, 22, 1000, words(5000))
    core.daemon.lines.play(22, [(T0 + 3000, 1), (T0 + 3050, 0), (T0 + 6000, 1), (T0 + 7000, 0)])
    core.run(20_000)
    edges = [(tick - T0, level) for tick, level in reader.edges(22)]
    assert edges == [(6100, 1), (7100, 0)]


FILTERS: list[Callable[[], Filter]] = [lambda: Glitch(10), lambda: Noise(10, 10)]


@pytest.mark.parametrize("make", FILTERS)
def test_single_sample_passes_the_filter(make: Callable[[], Filter]) -> None:
    assert make().run([(T0, 0)], T0) == [(T0, 0)]

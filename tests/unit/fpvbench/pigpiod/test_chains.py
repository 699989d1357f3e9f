"""Chains of waves: loops, waits, following waves, against their unrolled loops."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.pins.pigpiod import START_US, Core, grid, make_core, square, stored_wave, words

from fpvbench.pigpiod.protocol import Cmd

T0 = START_US
LEAD_US = 20
ON, OFF = 1 << 4, 1 << 5


@pytest.fixture
def core(tmp_path: Path) -> Core:
    made = make_core(tmp_path)
    for gpio in (4, 5):
        made(Cmd.WRITE, gpio, 0)
    return made


Played = list[tuple[int, int]]


def played(core: Core, chain: bytes, for_us: int) -> Played:
    """Return (microseconds after the lead, level) that a chain puts on GPIO 4."""
    reader = core.reader(ON)
    begin_us = core.now_us + LEAD_US
    assert core(Cmd.WVCHA, 0, 0, chain) == 0
    core.run(for_us)
    core(Cmd.NC, reader.handle)
    return [(tick - begin_us, level) for tick, level in reader.edges(4)]


def test_chain_reports_the_wave_it_plays(core: Core) -> None:
    number = square(core, 500, 500)
    core(Cmd.WVCHA, 0, 0, bytes([number, 255, 2, 0, 4]))
    core.run(LEAD_US + 100)
    assert core(Cmd.WVTAT) == number
    core.run(1500)
    assert (core(Cmd.WVTAT), core(Cmd.WVBSY)) == (9998, 1)


def test_endless_chain_ends_at_loop_end_for_synced_wave(core: Core) -> None:
    reader = core.reader(OFF)
    number, other = square(core, 50, 50), square(core, 50, 50, OFF)
    core(Cmd.WVCHA, 0, 0, bytes([255, 0, number, number, 255, 3]))
    core.run(LEAD_US + 10_050)
    assert core(Cmd.WVBSY) == 1
    core(Cmd.WVTXM, other, 2)
    core.run(2000)
    assert core(Cmd.WVBSY) == 0
    start = T0 + LEAD_US + 10_200  # at the end of the loop, not of the wave
    assert reader.edges(5) == [(start, 1), (start + 50, 0)]


def test_loop_of_zero_times_is_skipped(core: Core) -> None:
    number = square(core, 50, 50)
    skipped = bytes([255, 0, number, 255, 2, 100, 0, 255, 1, 0, 0])
    assert played(core, skipped + bytes([number]), 3000) == [(0, 1), (50, 0)]


def test_bad_chain_stops_the_playing_wave(core: Core) -> None:
    core(Cmd.WVTXR, square(core, 50, 50))
    assert core(Cmd.WVCHA, 0, 0, bytes([9])) == -66
    assert core(Cmd.WVBSY) == 0


@st.composite
def chains(draw: st.DrawFn, depth: int = 3) -> list[object]:
    """Draw waves (their number), waits ("wait", us), loops (times, steps)."""
    steps: list[object] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("wave", "wait", "loop")[: 2 + (depth > 0)]))
        if kind == "wave":
            steps.append(draw(st.integers(0, 1)))
        elif kind == "wait":
            steps.append(("wait", draw(st.integers(1, 70))))
        else:
            steps.append((draw(st.integers(1, 3)), draw(chains(depth - 1))))
    return steps


def encoded(steps: list[object]) -> bytes:
    out = b""
    for step in steps:
        if isinstance(step, int):
            out += bytes([step])
        else:
            assert isinstance(step, tuple)
            number, what = step
            if number == "wait":
                out += bytes([255, 2, what & 0xFF, what >> 8])
            else:
                out += bytes([255, 0]) + encoded(what)
                out += bytes([255, 1, number & 0xFF, number >> 8])
    return out


def unrolled(steps: list[object]) -> Iterator[object]:
    for step in steps:
        if isinstance(step, tuple) and step[0] != "wait":
            for _ in range(step[0]):
                yield from unrolled(step[1])
        else:
            yield step


SHAPES = ((15, 40), (60, 5))


@settings(max_examples=60, deadline=None)
@given(chains())
def test_chains_are_their_unrolled_loops(
    tmp_path_factory: pytest.TempPathFactory, steps: list[object]
) -> None:
    core = make_core(tmp_path_factory.getbasetemp())
    core(Cmd.WRITE, 4, 0)
    for high_us, low_us in SHAPES:
        square(core, high_us, low_us)
    wanted, at_us = list[tuple[int, int]](), 0
    for step in unrolled(steps):
        if isinstance(step, int):
            wanted += [(at_us, 1), (at_us + SHAPES[step][0], 0)]
            at_us += sum(SHAPES[step])
        else:
            assert isinstance(step, tuple)
            at_us += step[1]
    wanted = [(grid(at_us), level) for at_us, level in wanted]
    seen = played(core, encoded(steps), at_us + 2000)
    assert seen == _visible(wanted)
    assert core(Cmd.WVBSY) == 0


def _visible(edges: Played) -> Played:
    """Remove pulses that begin and end on one sample."""
    out: Played = []
    for at_us, level in edges:
        if out and out[-1][0] == at_us:
            out.pop()
        else:
            out.append((at_us, level))
    return out


def bursts(core: Core) -> bytes:
    """Return the chain of pigpio's own test: a wave 128, 256 and 512 times, with gaps."""
    pulses = [(ON, 0, 50), (0, ON, 70), (ON, 0, 130), (0, ON, 150), (ON, 0, 90)]
    number = stored_wave(core, *pulses, (0, ON, 110))
    return bytes(
        [255, 0, number, 255, 1, 128, 0, 255, 2, 0, 8]
        + [255, 0, number, 255, 1, 0, 1, 255, 2, 0, 4]
        + [255, 0, number, 255, 1, 0, 2]
    )


@pytest.mark.parametrize("steady_us,edges", [(0, 5376), (80, 3584), (120, 1792), (140, 0)])
def test_edges_behind_a_glitch_filter(core: Core, steady_us: int, edges: int) -> None:
    """Figures of pigpio's own test: 2688 rises, 1792, 896, none."""
    reader = core.reader(ON)
    core(Cmd.FG, 4, steady_us)
    assert core(Cmd.WVCHA, 0, 0, bursts(core)) == 0
    core.run(1_000_000)
    assert core(Cmd.WVBSY) == 0
    assert len(reader.edges(4)) == edges


@pytest.mark.parametrize(
    "steady_us,active_us,rises", [(1000, 150_000, 1500), (2000, 150_000, 750), (3000, 5000, 0)]
)
def test_edges_behind_a_noise_filter(
    core: Core, steady_us: int, active_us: int, rises: int
) -> None:
    """Figures of pigpio's own test, which allows 2 %."""
    reader = core.reader(ON)
    core(Cmd.WVCHA, 0, 0, bursts(core))
    core(Cmd.FN, 4, steady_us, words(active_us))
    core.run(1_000_000)
    seen = sum(level for _, level in reader.edges(4))
    assert seen == pytest.approx(rises, rel=0.02, abs=1)

"""Waves, from the description of the protocol and the figures of pigpio's own tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpvcar.bench.pigpiod.daemon import Sonar
from fpvcar.bench.pigpiod.protocol import Cmd
from fpvcar.bench.pigpiod.pulses import Pulses, generic, serial
from tests.rigs.pigpiod import START_US, Core, make_core, words

T0 = START_US
LEAD_US = 20
ON, OFF = 1 << 4, 1 << 5
TEXT = b"""
Now is the winter of our discontent
Made glorious summer by this sun of York;
And all the clouds that lour'd upon our house
In the deep bosom of the ocean buried.
Now are our brows bound with victorious wreaths;
Our bruised arms hung up for monuments;
Our stern alarums changed to merry meetings,
Our dreadful marches to delightful measures.
Grim-visaged war hath smooth'd his wrinkled front;
And now, instead of mounting barded steeds
To fright the souls of fearful adversaries,
He capers nimbly in a lady's chamber
To the lascivious pleasing of a lute.
"""
"""What the tests of pigpio send, and know the figures of."""


@pytest.fixture
def core(tmp_path: Path) -> Core:
    made = make_core(tmp_path)
    for gpio in (4, 5):
        made(Cmd.WRITE, gpio, 0)
    return made


def stored(core: Core, *pulses: tuple[int, int, int]) -> int:
    """The number of a wave of (on, off, microseconds)."""
    core(Cmd.WVNEW)
    assert core(Cmd.WVAG, 0, 0, words(*sum(pulses, ()))) >= 0
    return core(Cmd.WVCRE)


def square(core: Core, high_us: int, low_us: int, pin: int = ON) -> int:
    """A wave that is high, then low."""
    return stored(core, (pin, 0, high_us), (0, pin, low_us))


def grid(time_us: int) -> int:
    return -(-time_us // 5) * 5


def test_one_shot(core: Core) -> None:
    reader = core.reader(ON)
    number = stored(core, (ON, 0, 100), (0, ON, 300), (ON, 0, 50), (0, ON, 1000))
    assert (number, core(Cmd.WVBSY), core(Cmd.WVTAT)) == (0, 0, 9999)
    assert core(Cmd.WVTX, number) == 9  # 4 switches, 4 waits, the lead
    assert (core(Cmd.WVBSY), core(Cmd.WVTAT)) == (1, 0)
    core.run(LEAD_US + 1449)
    assert (core(Cmd.WVBSY), core(Cmd.READ, 4)) == (1, 0)
    core.run(1)
    assert (core(Cmd.WVBSY), core(Cmd.WVTAT)) == (0, 9999)
    core.run(2000)
    start = T0 + LEAD_US
    wanted = [(start, 1), (start + 100, 0), (start + 400, 1), (start + 450, 0)]
    assert reader.edges(4) == wanted
    assert core.daemon.transmitter.next_us() is None


def test_levels_follow_though_nobody_watches(core: Core) -> None:
    core(Cmd.WVTX, square(core, 3000, 5000))
    core.run(LEAD_US + 1)
    assert (core(Cmd.READ, 4), core.soc.pin[4].out) == (1, 1)
    core.run(3500)
    assert core.soc.pin[4].out == 0  # by itself: the world looks at the chip's file
    core.run(10_000)
    assert core.daemon.due_us(core.now_us) is None


def test_repeat_until_halted(core: Core) -> None:
    reader = core.reader(ON)
    assert core(Cmd.WVTXR, square(core, 50, 150)) == 5
    core.run(10_000)
    assert core(Cmd.WVHLT) == 0
    edges = reader.edges(4)
    core.run(5000)
    edges += reader.edges(4)
    assert len(edges) == 100
    rises = [tick for tick, level in edges if level]
    assert all(tick == T0 + LEAD_US + 200 * number for number, tick in enumerate(rises))
    assert core(Cmd.WVBSY) == 0


def test_halt_leaves_the_level(core: Core) -> None:
    core(Cmd.WVTX, square(core, 1000, 10))
    core.run(500)
    core(Cmd.WVHLT)
    core.run(5000)
    assert core(Cmd.READ, 4) == 1


def test_a_wave_sets_registers_only(core: Core) -> None:
    """An input keeps its mode, PWM goes on; an output goes where the wave says."""
    core(Cmd.PWM, 5, 128)
    core(Cmd.MODES, 6, 0)
    assert core(Cmd.WVTX, stored(core, (ON | OFF | 1 << 6, 0, 10), (OFF, 0, 10))) > 0
    core.run(100)
    assert (core(Cmd.GDC, 5), core.soc.pin[5].duty()) == (
        128,
        pytest.approx(0.5, abs=0.01),
    )
    assert (core(Cmd.MODEG, 6), core.soc.pin[6].out) == (0, 1)
    core(Cmd.MODES, 6, 1)
    assert core(Cmd.READ, 6) == 1


def test_on_and_off_at_once_is_off(core: Core) -> None:
    core(Cmd.WVTX, stored(core, (ON, ON | OFF, 10)))
    core.run(100)
    assert core(Cmd.READ, 4) == 0


def test_figures_of_pigpios_own_test(core: Core) -> None:
    reader = core.reader(1 << 25)
    core(Cmd.MODES, 25, 1)
    ext = words(8, 2, 5_000_000) + TEXT
    assert core(Cmd.WVAS, 25, 4800, ext) == 3405
    assert [core(Cmd.WVSM), core(Cmd.WVSP), core(Cmd.WVSC)] == [6_158_148, 3405, 6810]
    number = core(Cmd.WVCRE)
    assert core(Cmd.WVTX, number) == 6811
    core.run(3_000_000)
    assert [level for _, level in reader.edges(25)] == [1]
    while core(Cmd.WVBSY):
        core.run(200_000)
    falls = [tick for tick, level in reader.edges(25) if not level]
    assert len(falls) == 1702
    assert falls[0] == grid(T0 + LEAD_US + 5_000_000)
    assert (core(Cmd.WVSM, 0), core(Cmd.WVNEW), core(Cmd.WVSM, 0)) == (6_158_148, 0, 0)
    assert [core(Cmd.WVSM, 1), core(Cmd.WVSP, 1)] == [6_158_148, 3405]


def test_generic_pulses_are_added_in_time_order(core: Core) -> None:
    reader = core.reader(ON | OFF)
    assert core(Cmd.WVAG, 0, 0, words(ON, 0, 100, 0, ON, 100)) == 2
    assert core(Cmd.WVAG, 0, 0, words(0, 0, 50, OFF, 0, 50, 0, OFF, 10)) == 3
    assert core(Cmd.WVSM) == 200
    core(Cmd.WVTX, core(Cmd.WVCRE))
    core.run(3000)
    start = T0 + LEAD_US
    seen = [(r.tick - start, r.levels >> 4 & 3) for r in reader.take()]
    assert seen == [(0, 0b01), (50, 0b11), (100, 0b00)]


LISTS = st.lists(
    st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(0, 3)), max_size=12
)


def timeline(pulses: list[tuple[int, int, int]]) -> dict[int, tuple[int, int]]:
    """At each time: all that is switched on, and off."""
    at_us, out = 0, dict[int, tuple[int, int]]()
    for on, off, wait_us in pulses:
        old = out.get(at_us, (0, 0))
        out[at_us] = (old[0] | on, old[1] | off)
        at_us += wait_us
    return out


@given(LISTS, LISTS)
def test_adding_changes_no_time(
    one: list[tuple[int, int, int]], other: list[tuple[int, int, int]]
) -> None:
    total = generic(one).plus(generic(other))
    assert total.length_us == max(
        sum(entry[2] for entry in part) for part in (one, other)
    )
    first, second = timeline(one), timeline(other)
    got = dict[int, tuple[int, int]]()
    for at_us, on, off in total.pulses:
        old = got.get(at_us, (0, 0))
        got[at_us] = (old[0] | on, old[1] | off)
    wanted = {
        at_us: (
            first.get(at_us, (0, 0))[0] | second.get(at_us, (0, 0))[0],
            first.get(at_us, (0, 0))[1] | second.get(at_us, (0, 0))[1],
        )
        for at_us in first.keys() | second.keys()
    }
    assert got == wanted
    assert sum(total.waits()) == (total.length_us if total.pulses else 0)


def decoded(pulses: Pulses, baud: int, data_bits: int, count: int) -> list[int]:
    """What a receiver hears that looks at the middle of each bit."""
    bit_us, out = 1e6 / baud, list[int]()
    edges = [(pulse.at_us, int(bool(pulse.on))) for pulse in pulses.pulses]

    def level(at_us: float) -> int:
        return next(level for time_us, level in reversed(edges) if time_us <= at_us)

    at_us = 0.0
    for _ in range(count):
        start = next(t for t, level in edges if t >= at_us and not level)
        bits = [level(start + bit_us * (1.5 + n)) for n in range(data_bits)]
        assert not level(start + bit_us / 2) and level(
            start + bit_us * (1.5 + data_bits)
        )
        out.append(sum(bit << n for n, bit in enumerate(bits)))
        at_us = start + bit_us * (1.4 + data_bits)
    return out


@settings(max_examples=100, deadline=None)
@given(
    st.integers(50, 100_000), st.integers(1, 30), st.integers(2, 8),
    st.integers(0, 100_000), st.data(),
)  # fmt: skip
def test_serial_is_heard(
    baud: int, data_bits: int, half_stops: int, offset_us: int, data: st.DataObject
) -> None:
    size = 1 if data_bits <= 8 else 2 if data_bits <= 16 else 4
    sent = data.draw(st.lists(st.integers(0, 2**data_bits - 1), min_size=1, max_size=8))
    raw = b"".join(value.to_bytes(size, "little") for value in sent)
    pulses = serial(4, baud, data_bits, half_stops, offset_us, raw)
    assert decoded(pulses, baud, data_bits, len(sent)) == sent
    bit_us = 1e6 / baud
    idle_us = max(offset_us, bit_us)
    length_us = idle_us + len(sent) * bit_us * (1 + data_bits + half_stops / 2)
    assert pulses.length_us == pytest.approx(length_us, abs=1 + len(sent))
    assert pulses.pulses[0] == (0, 1 << 4, 0)


def test_numbers(core: Core) -> None:
    numbers = [square(core, high_us, 10) for high_us in (1, 2, 3)]
    assert numbers == [0, 1, 2]
    assert core(Cmd.WVCRE) == -69  # it takes what is pending
    assert (core(Cmd.WVDEL, 1), core(Cmd.WVDEL, 1), core(Cmd.WVTX, 1)) == (0, -66, -66)
    assert stored(core, (ON, 0, 1)) == 3  # not as large as the deleted one
    assert square(core, 7, 7) == 1
    for number in (1, 2):
        core(Cmd.WVDEL, number)
    assert stored(core, (ON, 0, 0)) == 4
    for number in (3, 4):
        core(Cmd.WVDEL, number)
    assert stored(core, (ON, 0, 0)) == 1
    core(Cmd.WVCLR)
    assert (core(Cmd.WVTX, 0), square(core, 1, 1)) == (-66, 0)


def test_memory_for_waves(core: Core) -> None:
    """25,016 control blocks, 1,180 of them for chains; 12,000 pulses at most."""
    many = words(*([ON, 0, 1, 0, ON, 1] * 2700))
    assert core(Cmd.WVAG, 0, 0, many) == 5400
    assert (core(Cmd.WVCRE), core(Cmd.WVTX, 0)) == (0, 10_801)
    assert core(Cmd.WVAG, 0, 0, many) == 5400
    assert (core(Cmd.WVCRE), core(Cmd.WVTX, 1)) == (1, 10_801)
    core(Cmd.WVAG, 0, 0, words(*([ON, 0, 1] * 1117)))
    assert core(Cmd.WVCRE) == -67
    core(Cmd.WVNEW)
    core(Cmd.WVAG, 0, 0, words(*([ON, 0, 1] * 1116)))
    assert core(Cmd.WVCRE) == 2
    core(Cmd.WVCLR)
    for _ in range(2):
        core(Cmd.WVAG, 0, 0, many)
    core(Cmd.WVAG, 0, 0, words(*([0, 0, 1] * 5401), ON, 0, 1))
    for number in range(3):
        shifted = words(0, 0, 10_803 + 5000 * number, *([ON, 0, 1] * 3000))
        result = core(Cmd.WVAG, 0, 0, shifted)
    assert result == -36
    assert core(Cmd.WVSP, 0) < 12_000


def test_words_run_out_too(core: Core) -> None:
    """16,748 words, 790 of them for chains; on and off take one each."""
    both = words(*([ON, OFF, 0] * 5400))
    assert core(Cmd.WVAG, 0, 0, both) == 5400
    assert (core(Cmd.WVCRE), core(Cmd.WVTX, 0)) == (0, 5401)
    assert core(Cmd.WVAG, 0, 0, both) == 5400
    assert core(Cmd.WVCRE) == -68


def test_no_more_numbers(core: Core) -> None:
    numbers = [stored(core, (0, 0, 0)) for _ in range(251)]
    assert numbers == [*range(250), -70]


def test_padding(core: Core) -> None:
    core(Cmd.WVAG, 0, 0, words(ON, 0, 10, 0, ON, 10))
    assert core(Cmd.WVCAP, 0) == -67
    assert core(Cmd.WVCAP, 50) == 0
    assert core(Cmd.WVTX, 0) == 23_836 // 2
    core(Cmd.WVAG, 0, 0, words(ON, 0, 10))
    assert core(Cmd.WVCAP, 51) == -67
    assert core(Cmd.WVCAP, 50) == 1
    core(Cmd.WVAG, 0, 0, words(ON, 0, 10))
    assert core(Cmd.WVCRE) == -67
    core(Cmd.WVDEL, 0)
    core(Cmd.WVAG, 0, 0, words(OFF, 0, 10))
    assert core(Cmd.WVCAP, 50) == 0  # a padded one fits the place of another
    core(Cmd.WVCLR)
    core(Cmd.WVAG, 0, 0, words(ON, 0, 10))
    assert core(Cmd.WVCAP, 10, 0, words(0)) == -68
    assert core(Cmd.WVCAP, 10, 20, words(30)) == 0


def test_in_step_begins_at_the_end_of_the_other(core: Core) -> None:
    reader = core.reader(ON | OFF)
    first, second = square(core, 100, 100), square(core, 30, 70, OFF)
    core(Cmd.WVTXM, first, 1)
    core.run(LEAD_US + 250)
    assert core(Cmd.WVTXM, second, 3) == 5
    assert core(Cmd.WVTAT) == first
    core.run(200)
    assert core(Cmd.WVTAT) == second
    core(Cmd.WVTXM, first, 2)
    core.run(1500)
    assert (core(Cmd.WVBSY), core(Cmd.WVTAT)) == (0, 9999)
    start = T0 + LEAD_US
    seen = [(r.tick - start, r.levels >> 4 & 3) for r in reader.take()]
    assert seen == [
        (0, 1), (100, 0), (200, 1), (300, 0), (400, 2), (430, 0), (500, 1), (600, 0),
    ]  # fmt: skip


def test_in_step_with_nothing_begins_at_once(core: Core) -> None:
    number = square(core, 100, 100)
    assert core(Cmd.WVTXM, number, 4) == -33
    core(Cmd.WVTXM, number, 2)
    assert core(Cmd.WVBSY) == 1
    core.run(1000)
    assert core(Cmd.WVBSY) == 0
    core(Cmd.WVTXM, number, 2)
    assert core(Cmd.WVBSY) == 1


def test_a_wave_that_is_deleted_or_cleared_plays_on(core: Core) -> None:
    reader = core.reader(ON)
    core(Cmd.WVTXR, square(core, 500, 500))
    assert (core(Cmd.WVCLR), core(Cmd.WVTAT)) == (0, 0)
    core.run(5000)
    assert len(reader.edges(4)) >= 8
    core(Cmd.WVHLT)
    number = square(core, 500, 500)
    core(Cmd.WVTXR, number)
    assert (core(Cmd.WVDEL, number), core(Cmd.WVTAT)) == (0, 9998)


Played = list[tuple[int, int]]


def played(core: Core, chain: bytes, for_us: int) -> Played:
    """(microseconds behind the lead, level) that a chain puts on GPIO 4."""
    reader = core.reader(ON)
    begin_us = core.now_us + LEAD_US
    assert core(Cmd.WVCHA, 0, 0, chain) == 0
    core.run(for_us)
    core(Cmd.NC, reader.handle)
    return [(tick - begin_us, level) for tick, level in reader.edges(4)]


def test_chain(core: Core) -> None:
    one, other = square(core, 5, 15), square(core, 50, 50)
    chain = bytes([one, 255, 0, other, 255, 2, 44, 1, 255, 1, 3, 0, one])
    wanted = [(0, 1), (5, 0)]
    for number in range(3):
        at_us = 20 + number * 400
        wanted += [(at_us, 1), (at_us + 50, 0)]
    wanted += [(1220, 1), (1225, 0)]
    assert played(core, chain, 5000) == wanted
    assert core(Cmd.WVBSY) == 0


def test_where_a_chain_is(core: Core) -> None:
    number = square(core, 500, 500)
    core(Cmd.WVCHA, 0, 0, bytes([number, 255, 2, 0, 4]))
    core.run(LEAD_US + 100)
    assert core(Cmd.WVTAT) == number
    core.run(1500)
    assert (core(Cmd.WVTAT), core(Cmd.WVBSY)) == (9998, 1)


def test_a_chain_for_ever_ends_for_what_is_sent_in_step(core: Core) -> None:
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


def test_a_loop_of_no_times_is_skipped(core: Core) -> None:
    number = square(core, 50, 50)
    skipped = bytes([255, 0, number, 255, 2, 100, 0, 255, 1, 0, 0])
    assert played(core, skipped + bytes([number]), 3000) == [(0, 1), (50, 0)]


def test_a_bad_chain_stops_what_is_played(core: Core) -> None:
    core(Cmd.WVTXR, square(core, 50, 50))
    assert core(Cmd.WVCHA, 0, 0, bytes([9])) == -66
    assert core(Cmd.WVBSY) == 0


@st.composite
def chains(draw: st.DrawFn, depth: int = 3) -> list[object]:
    """Waves (their number), waits ("wait", us), loops (times, steps)."""
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
    """Without pulses that begin and end on one sample."""
    out: Played = []
    for at_us, level in edges:
        if out and out[-1][0] == at_us:
            out.pop()
        else:
            out.append((at_us, level))
    return out


def test_figures_of_pigpios_own_chain_test(core: Core) -> None:
    pulses = [(ON, 0, 50), (0, ON, 70), (ON, 0, 130), (0, ON, 150), (ON, 0, 90)]
    number = stored(core, *pulses, (0, ON, 110))
    chain = bytes(
        [255, 0, number, 255, 1, 128, 0, 255, 2, 0, 8]
        + [255, 0, number, 255, 1, 0, 1, 255, 2, 0, 4]
        + [255, 0, number, 255, 1, 0, 2]
    )
    reader = core.reader(ON)
    for steady_us, edges in ((0, 5376), (80, 3584), (120, 1792), (140, 0)):
        core(Cmd.FG, 4, steady_us)
        assert core(Cmd.WVCHA, 0, 0, chain) == 0
        core.run(1_000_000)
        assert core(Cmd.WVBSY) == 0
        assert len(reader.edges(4)) == edges


def test_waves_take_the_clock_of_hardware_pwm(core: Core) -> None:
    number = square(core, 50, 50)
    core(Cmd.HP, 18, 1000, words(500_000))
    core(Cmd.WVTXR, number)
    assert (core(Cmd.GDC, 18), core.soc.pin[18].duty()) == (-92, 0.0)
    core(Cmd.HP, 18, 1000, words(500_000))
    assert (core(Cmd.WVBSY), core(Cmd.GDC, 18)) == (0, 500_000)
    core(Cmd.WVCHA, 0, 0, bytes([number]))
    assert core(Cmd.GDC, 18) == -92


def test_pulses_faster_than_the_sampler(core: Core) -> None:
    """Those on one sample are one change; the levels in between are not seen."""
    reader = core.reader(ON)
    core(Cmd.WVTXR, stored(core, *[(ON, 0, 1), (0, ON, 1)] * 3, (ON, 0, 7), (0, ON, 7)))
    core.run(1000)
    edges = reader.edges(4)
    assert edges and all(tick % 5 == 0 for tick, _ in edges)
    assert all(one[1] != other[1] for one, other in zip(edges, edges[1:], strict=False))


ENDLESS = bytes([255, 0] * 9 + [0, 255, 1, 0, 0] + [255, 1, 255, 255] * 8)
"""Loops that do nothing, 65,535 to the power of eight times."""


@pytest.mark.parametrize(
    "pulses",
    [[(ON, 0, 0)], [(ON, 0, 1), (0, ON, 0)], [(ON, 0, 0), (0, ON, 0)] * 2500],
    ids=["one of no length", "two of 1 us", "5000 of no length"],
)
@pytest.mark.parametrize("watched", [0, ON])
@pytest.mark.parametrize("cmd,chain", [(Cmd.WVTXR, b""), (Cmd.WVCHA, ENDLESS)], ids=str)
def test_a_wave_without_an_end_holds_nobody_up(
    core: Core, pulses: list[tuple[int, int, int]], watched: int, cmd: Cmd, chain: bytes
) -> None:
    core.reader(watched)
    script = core(Cmd.PROC, 0, 0, b"tag 0 mils 20 inr p0 jmp 0")
    core.run(1000)
    core(Cmd.PROCR, script)
    assert core(cmd, stored(core, *pulses), 0, chain) >= 0
    core.run(50_000)
    assert core(Cmd.WVBSY) == 1
    status = core.raw(Cmd.PROCP, script)
    assert isinstance(status, bytes) and status[4] == 2


def test_scripts_send_waves(core: Core) -> None:
    reader = core.reader(ON)
    number = square(core, 50, 50)
    script = core(Cmd.PROC, 0, 0, b"wvtx p0 sta p1 tag 0 wvbsy jnz 0 wvtat sta p2")
    core.run(1000)
    core(Cmd.PROCR, script, 0, words(number))
    core.run(5000)
    status = core.raw(Cmd.PROCP, script)
    assert isinstance(status, bytes)
    assert [int.from_bytes(status[at : at + 4], "little") for at in (0, 8, 12)] == [
        1, 5, 9999,
    ]  # fmt: skip
    assert len(reader.edges(4)) == 2


def test_a_trigger_by_wave_makes_an_echo(tmp_path: Path) -> None:
    core = make_core(tmp_path, sonars=[Sonar(4, 21, 0)])
    core.soc.world.range_m[0] = 1.0
    core(Cmd.WRITE, 4, 0)
    reader = core.reader(1 << 21)
    core(Cmd.WVTX, square(core, 12, 60_000))
    core.run(60_000)
    assert len(reader.edges(21)) == 2

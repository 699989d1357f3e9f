"""Waves, from the description of the protocol and the figures of pigpio's own tests."""

from pathlib import Path

import pytest
from testkit.pins.pigpiod import START_US, Core, grid, make_core, square, stored_wave, words

from fpvbench.pigpiod.daemon import Ultrasonic
from fpvbench.pigpiod.protocol import Cmd

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
"""Wave of pigpio's own tests, with known figures."""


@pytest.fixture
def core(tmp_path: Path) -> Core:
    made = make_core(tmp_path)
    for gpio in (4, 5):
        made(Cmd.WRITE, gpio, 0)
    return made


def test_wave_plays_once_with_exact_edges(core: Core) -> None:
    reader = core.reader(ON)
    number = stored_wave(core, (ON, 0, 100), (0, ON, 300), (ON, 0, 50), (0, ON, 1000))
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


def test_levels_follow_an_unwatched_wave(core: Core) -> None:
    core(Cmd.WVTX, square(core, 3000, 5000))
    core.run(LEAD_US + 1)
    assert (core(Cmd.READ, 4), core.soc.pin[4].out) == (1, 1)
    core.run(3500)
    assert core.soc.pin[4].out == 0  # without a call: the world reads the chip's file
    core.run(10_000)
    assert core.daemon.due_us(core.now_us) is None


def test_wave_repeats_until_halted(core: Core) -> None:
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


def test_wave_keeps_pin_modes_and_pwm(core: Core) -> None:
    """An input keeps its mode, PWM continues; an output follows the wave."""
    core(Cmd.PWM, 5, 128)
    core(Cmd.MODES, 6, 0)
    assert core(Cmd.WVTX, stored_wave(core, (ON | OFF | 1 << 6, 0, 10), (OFF, 0, 10))) > 0
    core.run(100)
    assert (core(Cmd.GDC, 5), core.soc.pin[5].duty()) == (128, pytest.approx(0.5, abs=0.01))
    assert (core(Cmd.MODEG, 6), core.soc.pin[6].out) == (0, 1)
    core(Cmd.MODES, 6, 1)
    assert core(Cmd.READ, 6) == 1


def test_on_and_off_at_once_is_off(core: Core) -> None:
    core(Cmd.WVTX, stored_wave(core, (ON, ON | OFF, 10)))
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


def test_numbers(core: Core) -> None:
    numbers = [square(core, high_us, 10) for high_us in (1, 2, 3)]
    assert numbers == [0, 1, 2]
    assert core(Cmd.WVCRE) == -69  # WVCRE takes the pending pulses
    assert (core(Cmd.WVDEL, 1), core(Cmd.WVDEL, 1), core(Cmd.WVTX, 1)) == (0, -66, -66)
    assert stored_wave(core, (ON, 0, 1)) == 3  # not as large as the deleted one
    assert square(core, 7, 7) == 1
    for number in (1, 2):
        core(Cmd.WVDEL, number)
    assert stored_wave(core, (ON, 0, 0)) == 4
    for number in (3, 4):
        core(Cmd.WVDEL, number)
    assert stored_wave(core, (ON, 0, 0)) == 1
    core(Cmd.WVCLR)
    assert (core(Cmd.WVTX, 0), square(core, 1, 1)) == (-66, 0)


def test_memory_for_waves(core: Core) -> None:
    """Limits: 25,016 control blocks, 1,180 of them for chains; 12,000 pulses at most."""
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
    """Limits: 16,748 words, 790 of them for chains; on and off take one each."""
    both = words(*([ON, OFF, 0] * 5400))
    assert core(Cmd.WVAG, 0, 0, both) == 5400
    assert (core(Cmd.WVCRE), core(Cmd.WVTX, 0)) == (0, 5401)
    assert core(Cmd.WVAG, 0, 0, both) == 5400
    assert core(Cmd.WVCRE) == -68


def test_wave_numbers_run_out_at_250(core: Core) -> None:
    numbers = [stored_wave(core, (0, 0, 0)) for _ in range(251)]
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
    assert core(Cmd.WVCAP, 50) == 0  # a padded wave fits the place of another
    core(Cmd.WVCLR)
    core(Cmd.WVAG, 0, 0, words(ON, 0, 10))
    assert core(Cmd.WVCAP, 10, 0, words(0)) == -68
    assert core(Cmd.WVCAP, 10, 20, words(30)) == 0


def test_synced_wave_begins_at_the_end_of_the_other(core: Core) -> None:
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
    assert seen == [(0, 1), (100, 0), (200, 1), (300, 0), (400, 2), (430, 0), (500, 1), (600, 0)]


def test_synced_wave_without_another_begins_at_once(core: Core) -> None:
    number = square(core, 100, 100)
    assert core(Cmd.WVTXM, number, 4) == -33
    core(Cmd.WVTXM, number, 2)
    assert core(Cmd.WVBSY) == 1
    core.run(1000)
    assert core(Cmd.WVBSY) == 0
    core(Cmd.WVTXM, number, 2)
    assert core(Cmd.WVBSY) == 1


def test_deleted_or_cleared_wave_plays_on(core: Core) -> None:
    reader = core.reader(ON)
    core(Cmd.WVTXR, square(core, 500, 500))
    assert (core(Cmd.WVCLR), core(Cmd.WVTAT)) == (0, 0)
    core.run(5000)
    assert len(reader.edges(4)) >= 8
    core(Cmd.WVHLT)
    number = square(core, 500, 500)
    core(Cmd.WVTXR, number)
    assert (core(Cmd.WVDEL, number), core(Cmd.WVTAT)) == (0, 9998)


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
    """Pulses on one sample are one change; the levels in between are not seen."""
    reader = core.reader(ON)
    core(Cmd.WVTXR, stored_wave(core, *[(ON, 0, 1), (0, ON, 1)] * 3, (ON, 0, 7), (0, ON, 7)))
    core.run(1000)
    edges = reader.edges(4)
    assert edges and all(tick % 5 == 0 for tick, _ in edges)
    assert all(one[1] != other[1] for one, other in zip(edges, edges[1:], strict=False))


ENDLESS = bytes([255, 0] * 9 + [0, 255, 1, 0, 0] + [255, 1, 255, 255] * 8)
"""Empty loops, 65,535 to the power of eight times."""


@pytest.mark.parametrize(
    "pulses",
    [[(ON, 0, 0)], [(ON, 0, 1), (0, ON, 0)], [(ON, 0, 0), (0, ON, 0)] * 2500],
    ids=["one of no length", "two of 1 us", "5000 of no length"],
)
@pytest.mark.parametrize("watched", [0, ON])
@pytest.mark.parametrize("cmd,chain", [(Cmd.WVTXR, b""), (Cmd.WVCHA, ENDLESS)], ids=str)
def test_endless_wave_holds_up_no_script(
    core: Core, pulses: list[tuple[int, int, int]], watched: int, cmd: Cmd, chain: bytes
) -> None:
    core.reader(watched)
    script = core(Cmd.PROC, 0, 0, b"tag 0 mils 20 inr p0 jmp 0")
    core.run(1000)
    core(Cmd.PROCR, script)
    assert core(cmd, stored_wave(core, *pulses), 0, chain) >= 0
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
    assert [int.from_bytes(status[at : at + 4], "little") for at in (0, 8, 12)] == [1, 5, 9999]
    assert len(reader.edges(4)) == 2


def test_trigger_by_wave_makes_an_echo(tmp_path: Path) -> None:
    core = make_core(tmp_path, ultrasonics=[Ultrasonic(4, 21, 0)])
    core.soc.world.range_m[0] = 1.0
    core(Cmd.WRITE, 4, 0)
    reader = core.reader(1 << 21)
    core(Cmd.WVTX, square(core, 12, 60_000))
    core.run(60_000)
    assert len(reader.edges(21)) == 2

"""Stored scripts: every instruction, every parse error, limits, life and death."""

import struct

import pytest
from testkit.pins.pigpiod import Core, words

from fpvbench.pigpiod.protocol import Cmd, Wait
from fpvbench.pigpiod.text.command_words import WORDS

INITING, HALTED, RUNNING, WAITING = range(4)


def store(core: Core, text: str) -> int:
    script = core(Cmd.PROC, 0, 0, text.encode())
    core.run(1000)
    return script


def status(core: Core, script: int) -> tuple[int, ...]:
    answer = core.raw(Cmd.PROCP, script)
    assert isinstance(answer, bytes)
    return struct.unpack("<11i", answer)


def ran(core: Core, text: str, *parameters: int) -> tuple[int, ...]:
    """Return p0..p9 after a script has run for 100 ms."""
    script = store(core, text)
    assert script >= 0, script
    assert core(Cmd.PROCR, script, 0, words(*parameters)) == 0
    core.run(100_000)
    state, *values = status(core, script)
    assert state == HALTED
    core(Cmd.PROCD, script)
    return tuple(values)


# script, parameters, p0 at the end
PROGRAMS = [
    ("lda 5 sta p0", (), 5),
    ("ld p0 -3", (), -3),
    ("ld v7 9 ld p0 v7", (), 9),
    ("lda 5 add 3 sta p0", (), 8),
    ("lda 5 sub 8 sta p0", (), -3),
    ("lda 5 mlt -3 sta p0", (), -15),
    ("lda -7 div 2 sta p0", (), -3),
    ("lda -7 mod 2 sta p0", (), -1),
    ("lda 7 mod -4 sta p0", (), 3),
    ("lda 12 and 10 sta p0", (), 8),
    ("lda 12 or 3 sta p0", (), 15),
    ("lda 12 xor 10 sta p0", (), 6),
    ("lda 3 rla 4 sta p0", (), 48),
    ("lda -16 rra 2 sta p0", (), -4),
    ("lda 1 rla 32 sta p0", (), 0),
    ("lda -1 rra 99 sta p0", (), -1),
    ("rl p0 3", (5,), 40),
    ("rr p0 1", (-5,), -3),
    ("lda 0x7fffffff add 1 sta p0", (), -(2**31)),
    ("lda 0x10000 mlt 0x10000 sta p0", (), 0),
    ("lda 010 sta p0", (), 8),
    ("lda 0x10 sta p0", (), 16),
    ("lda +7 sta p0", (), 7),
    ("inr p0", (4,), 5),
    ("dcr p0", (4,), 3),
    ("inra inra dcra sta p0", (), 1),
    ("lda 3 inr 5 sta p0", (), 3),
    ("inr 5 ld p0 v5", (), 1),
    ("ld v0 4 x p0 v0", (9,), 4),
    ("lda 4 xa p0", (9,), 4),
    ("lda 4 xa p0 sta p0", (9,), 9),
    ("push p0 lda 1 popa sta p0", (9,), 9),
    ("lda 7 pusha lda 1 pop p0", (), 7),
    ("lda 1 sub 1 jz 1 ld p0 9 tag 1", (), 0),
    ("lda 1 add 1 jnz 1 ld p0 9 tag 1", (), 0),
    ("lda 0 sub 0 jp 1 ld p0 9 tag 1", (), 0),
    ("lda 0 sub 1 jm 1 ld p0 9 tag 1", (), 0),
    ("lda 0 sub 1 jp 1 ld p0 9 tag 1", (), 9),
    ("lda 5 cmp 5 jz 1 ld p0 9 tag 1", (), 0),
    ("lda 5 cmp 7 sta p0", (), 5),
    ("lda 5 jz 1 ld p0 9 tag 1", (), 0),
    ("jmp 1 ld p0 9 tag 1", (), 0),
    ("call 1 inr p0 halt tag 1 inr p0 ret", (), 2),
    ("inr p0 halt inr p0", (), 1),
    ("tag 0 inr p0 dcr p1 jp 0", (0, 4), 5),
    ("lda 77 stab 9 lda 0 ldab 9 sta p0", (), 77),
    ("lda 300 stab 9 ldab 9 sta p0", (), 44),
    ("lda 5 ldab 65536 sta p0", (), 5),
    ("lda 5 stab -1 sta p0", (), 5),
    ("sys nosuch sta p0", (), 32512),
    ("sys a/b sta p0", (), -140),
    ("mils 5 sta p0", (), 0),
    ("mils 60001 sta p0", (), -65),
    ("mics 1000001 sta p0", (), -64),
    ("lda 3 mics 10 sta p0", (), 0),
    ("w 17 1 r 17 sta p0", (), 1),
    ("w 1 1 sta p0", (), -41),
    ("p 17 300 sta p0", (), -8),
    ("W 17 1 Read 17 Sta p0", (), 1),
    ("m 17 w mg 17 sta p0", (), 1),
    ("m 17 0 mg 17 sta p0", (), 4),
    ("m 17 5 mg 17 sta p0", (), 2),
    ("pud 17 u r 17 sta p0", (), 1),
    ("trig 17 10 1 sta p0", (), 0),
    ("trig 17 p1 1 sta p0", (0, 101), -46),
    ("trig 17 10 p1 sta p0", (0, 2), -5),
    ("hp 18 1000 v3 gdc 18 sta p0", (), 0),
    ("i2co 1 0x40 0 sta v2 i2cwb v2 0xfd 0x10 sta p0", (), -82),
    ("pigpv sta p0", (), 79),
    ("wvcre sta p0", (), -69),
    ("prs p1 p2 sta p0", (0, 17, 9), -21),
    ("lda 1 sub 1 div 0 ld p0 9", (), 0),
    ("popa ld p0 9", (), 0),
    ("ret ld p0 9", (), 0),
    ("tag 0 inr p0 pusha jmp 0", (), 257),
    ("tag 0 call 0", (), 0),
    ("", (), 0),
    ("tag 5", (), 0),
    ("evm 0 1 sta p0", (), -25),
    ("ld p0 v 3", (), 0),
    ("ld p9 3 ld p0 p9", (), 3),
]


@pytest.mark.parametrize("text,parameters,result", PROGRAMS)
def test_program(core: Core, text: str, parameters: tuple[int, ...], result: int) -> None:
    assert ran(core, text, *parameters)[0] == result


MALFORMED = """
frob; lda; lda x; lda p10; lda v150; lda P1; lda V1; w 17; w -1 0; w 17 -1; sta 150; sta p10;
inr -1; x v1; jmp p1; tag v1; m 17 9; m 17; pud 17 x; sys; trig 17 10; trig 17 10 -1; fs 1 2 v3;
lda 08; lda 1 5; frob tag 1 tag 1; jmp 9 frob
"""
FORBIDDEN = """
proc 1; procr 0; procd 0; procs 0; procp 0; procu 0; parse x; help; h; sero x 9600 0; serr 0 1;
serw 0 1; i2crd 0 1; i2cri 0 1 1; i2crk 0 1; i2cpk 0 1 1; i2cwd 0 1; i2cwi 0 1 1; i2cwk 0 1 1;
i2cz 0 1; spir 0 1; spiw 0 1; spix 0 1; fo x 1; fr 0 1; fw 0 1; fl x 1; wvag 1 1 1; wvas 1 1 1 1
1; wvcha 1; cf1; cf2; shell x y; bi2cz 1 1; bscx 1; bspio 1 1 1 1 1 1; bspix 1 1; slr 4 1; wvgo;
wvgor; noib
"""
"""Commands of a connection that no script may hold."""
ERRORS = [
    *((" ".join(text.split()), -55) for text in f"{MALFORMED};{FORBIDDEN}".split(";")),
    ("   ", -55),
    ("a" * 40, -55),
    ("lda \xe4", -55),
    ("tag 1 tag 1", -53),
    ("jmp 1", -63),
    ("call 7 tag 8", -63),
    ("tag 1 tag 1 frob", -53),
    (" ".join(f"tag {n}" for n in range(51)), -54),
    ("lda 1\0frob", 0),
    (" ".join(f"tag {n}" for n in range(50)), 0),
    ("lda " + "9" * 6000, 0),
]


@pytest.mark.parametrize("text,result", ERRORS)
def test_parse_error(core: Core, text: str, result: int) -> None:
    assert core(Cmd.PROC, 0, 0, text.encode("latin-1")) == result
    if result < 0:
        assert core(Cmd.PROC, 0, 0, b"halt") == 0  # no slot was taken


@pytest.mark.parametrize("word", sorted(WORDS))
def test_script_words_all_parse_and_run(core: Core, word: str) -> None:
    shape = WORDS[word][1]
    operand = {"m": "r", "p": "o", "r": "v3", "w": "name", "l": "1"}
    operands = " ".join(operand.get(kind, "4") for kind in shape)
    script = store(core, f"{word} {operands} tag 2 {'' if word == 'TAG' else 'tag 1'}")
    assert script == 0
    core(Cmd.PROCR, script)
    core.run(50_000)
    assert core(Cmd.PROCD, script) == 0


def test_slots_run_out(core: Core) -> None:
    assert [core(Cmd.PROC, 0, 0, b"halt") for _ in range(33)] == [*range(32), -57]
    core.run(1000)
    assert core(Cmd.PROCD, 5) == 0
    assert core(Cmd.PROC, 0, 0, b"halt") == 5


def test_script_is_not_ready_at_once(core: Core) -> None:
    script = core(Cmd.PROC, 0, 0, b"halt")
    assert core(Cmd.PROCR, script) == -62
    assert status(core, script)[0] == INITING
    core.run(1000)
    assert status(core, script)[0] == HALTED
    assert core(Cmd.PROCR, script) == 0


def test_variables_survive_a_halt_but_accumulator_does_not(core: Core) -> None:
    script = store(core, "sta p2 inr v0 ld p1 v0 lda 9")
    for count in (1, 2, 3):
        core(Cmd.PROCR, script)
        core.run(1000)
        assert status(core, script)[2:4] == (count, 0)


def test_running_again_only_sets_parameters(core: Core) -> None:
    script = store(core, "inr p5 tag 0 mils 10 jmp 0")
    for value in (1, 2):
        core(Cmd.PROCR, script, 0, words(value))
        core.run(5000)
    assert status(core, script)[:2] == (RUNNING, 2)
    assert status(core, script)[6] == 1


def test_update_touches_the_first_parameters_only(core: Core) -> None:
    script = store(core, "tag 0 mils 10 jmp 0")
    core(Cmd.PROCR, script, 0, words(1, 2, 3))
    assert core(Cmd.PROCU, script, 0, words(9)) == 0
    assert status(core, script)[1:4] == (9, 2, 3)


def test_stop_takes_effect_after_the_delay(core: Core) -> None:
    script = store(core, "tag 0 mils 20 inr p0 jmp 0")
    core(Cmd.PROCR, script)
    core.run(5000)
    core(Cmd.PROCS, script)
    assert status(core, script)[0] == RUNNING
    core.run(16_000)
    assert status(core, script)[:2] == (HALTED, 0)


def test_delete_waits_for_the_script(core: Core) -> None:
    script = store(core, "tag 0 mils 20 jmp 0")
    core(Cmd.PROCR, script)
    core.run(5000)
    outcome = core.start(Cmd.PROCD, script)
    assert isinstance(outcome, Wait)
    assert core(Cmd.PROCP, script) == -48
    while isinstance(outcome, Wait):
        core.run(outcome.until_us - core.now_us)
        outcome = outcome.finish(core.now_us)
    assert outcome == 0
    assert core(Cmd.PROC, 0, 0, b"halt") == script


@pytest.mark.parametrize("text", ["nop", "cmdr 1", "tag 0 jmp 0", "tag 0 inr p0 jmp 0"])
def test_script_without_pauses_holds_up_no_command(core: Core, text: str) -> None:
    script = store(core, text)
    core(Cmd.PROCR, script)
    core.run(20_000)
    assert core(Cmd.WRITE, 17, 1) == 0
    assert status(core, script)[0] == RUNNING
    core(Cmd.PROCS, script)
    core.run(2000)
    assert status(core, script)[0] == HALTED


def test_wait_for_gpio(core: Core) -> None:
    script = store(core, "wait 0xc00000 sta p0 wait 0x400000 sta p1")
    core(Cmd.PROCR, script)
    core.run(1000)
    assert status(core, script)[0] == WAITING
    core.daemon.lines.play(21, [(core.now_us + 100, 1)])
    core.run(3000)
    assert status(core, script)[0] == WAITING
    core.daemon.lines.play(23, [(core.now_us + 100, 1)])
    core.run(3000)
    assert status(core, script)[:2] == (WAITING, 1 << 23)
    core.daemon.lines.play(22, [(core.now_us + 100, 1)])
    core.run(3000)
    assert status(core, script)[:3] == (HALTED, 1 << 23, 1 << 22)


def test_wait_for_events(core: Core) -> None:
    script = store(core, "evtwt 6 sta p0")
    core(Cmd.PROCR, script)
    core.run(1000)
    core(Cmd.EVT, 3)
    core.run(3000)
    assert status(core, script)[0] == WAITING
    core(Cmd.EVT, 2)
    core.run(3000)
    assert status(core, script)[:2] == (HALTED, 4)


def test_stop_ends_a_wait(core: Core) -> None:
    script = store(core, "wait 4 ld p0 9")
    core(Cmd.PROCR, script)
    core.run(1000)
    core(Cmd.PROCS, script)
    core.run(1000)
    assert status(core, script)[:2] == (HALTED, 0)


def test_edges_of_a_script_have_exact_ticks(core: Core) -> None:
    script = store(core, "w 17 0 tag 0 w 17 1 mics 200 w 17 0 mils 1 dcr p0 jp 0")
    reader = core.reader(1 << 17)
    core(Cmd.PROCR, script, 0, words(3))
    start_us = core.now_us
    core.run(20_000)
    rises = [start_us + 1200 * n for n in range(4)]
    wanted = [edge for rise in rises for edge in ((rise, 1), (rise + 200, 0))]
    assert reader.edges(17) == wanted


def test_stalled_daemon_does_not_make_up_for_lost_time(core: Core) -> None:
    script = store(core, "tag 0 mils 20 inr p0 jmp 0")
    core(Cmd.PROCR, script)
    core.run(1000)
    core.now_us += 3_000_000  # SIGSTOP, SIGCONT
    core.run(1000)
    assert status(core, script)[1] == 1

"""Command pipe: words, operands and answers, and the pipes themselves."""

import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.pins.pigpio_clients import LIMIT_S
from testkit.pins.pigpiod import Core, Emulator, emulator, words

from fpvbench.pigpiod.protocol import Cmd, CommandError, Request, Wait
from fpvbench.pigpiod.text import command_text
from fpvbench.pigpiod.text.command_words import PIPE_WORDS

WIRED = [(22, 27), (9, 10)]


def say(core: Core, line: str) -> str:
    """Return the pipe's answer to a line."""
    said = ""
    try:
        for request in command_text.commands(line):
            outcome = core.raw(request.cmd, request.p1, request.p2, request.ext)
            said += command_text.answer(request, outcome)
    except CommandError as fault:
        said += f"{fault.error.value}\n"
    return said


@pytest.mark.parametrize(
    "line,request_",
    [
        ("w 4 1", Request(Cmd.WRITE, 4, 1)),
        ("WRITE 4 0x1", Request(Cmd.WRITE, 4, 1)),
        ("  bs1   0x30 ", Request(Cmd.BS1, 0x30)),
        ("bc1 -1", Request(Cmd.BC1, 2**32 - 1)),
        ("m 17 w", Request(Cmd.MODES, 17, 1)),
        ("modes 17 0", Request(Cmd.MODES, 17, 4)),
        ("pud 5 u", Request(Cmd.PUD, 5, 2)),
        ("trig 4 010 1", Request(Cmd.TRIG, 4, 8, words(1))),
        ("r v7", Request(Cmd.READ, 7)),
        ("procr 3 1 -2", Request(Cmd.PROCR, 3, 0, words(1, -2))),
        ("procu 3", Request(Cmd.PROCU, 3)),
        ("proc tag 0  mils 5", Request(Cmd.PROC, 0, 0, b"tag 0  mils 5")),
        ("wvag 16 0 50 0 16 60", Request(Cmd.WVAG, 0, 0, words(16, 0, 50, 0, 16, 60))),
        ("wvas 4 9600 8 2 0 0x41 66", Request(Cmd.WVAS, 4, 9600, words(8, 2, 0) + b"AB")),
        ("wvcha 255 0 1 255 1 2 0", Request(Cmd.WVCHA, 0, 0, b"\xff\0\1\xff\1\2\0")),
        ("spix 0 1 128 0", Request(Cmd.SPIX, 0, 0, b"\1\x80\0")),
        ("i2cwk 0 7 1 2", Request(Cmd.I2CWK, 0, 7, b"\1\2")),
        ("i2cri 0 7 4", Request(Cmd.I2CRI, 0, 7, words(4))),
        ("bspio 8 9 10 11 50 3", Request(Cmd.BSPIO, 8, 0, words(9, 10, 11, 50, 3))),
        ("bscx 0", Request(Cmd.BSCX)),
        ("bscx 5 1", Request(Cmd.BSCX, 5, 0, b"\1")),
        ("fo /tmp/a 1", Request(Cmd.FO, 1, 0, b"/tmp/a")),
        ("fs 0 -1 2", Request(Cmd.FS, 0, 2**32 - 1, words(2))),
        ("sero /dev/ttyS0 9600 0", Request(Cmd.SERO, 9600, 0, b"/dev/ttyS0")),
        ("shell date +%s now", Request(Cmd.SHELL, 4, 0, b"date\0+%s now")),
        ("cf1", Request(Cmd.CF1)),
        ("slr 22 100", Request(Cmd.SLR, 22, 100)),
        ("add 5", Request(801, 5)),
    ],
)
def test_line_becomes_a_request(line: str, request_: Request) -> None:
    assert list(command_text.commands(line)) == [request_]


def test_help_lists_each_command_once_with_its_operands(core: Core) -> None:
    lines = say(core, "help").splitlines()
    names = [line.split()[0] for line in lines]
    assert names == sorted(set(names)) and {"HELP", "PROCP number", "T"} <= set(lines)


def test_line_may_hold_many_commands() -> None:
    codes = [request.cmd for request in command_text.commands("w 4 1 mils 5 w 4 0 t")]
    assert codes == [Cmd.WRITE, Cmd.MILS, Cmd.WRITE, Cmd.TICK]


INVALID = """
frob; w; w 4; w 4 -1; w -4 1; m 4 x; pud 4; wvag 1 2; wvag; spix 0; spix 0 256; i2cwk 0 256 1;
i2cwk 0 7; wvas 4 9600 8 2 0; wvcha; procr; procr v1; fo /tmp/a; sero /dev/ttyS0; shell; bscx
"""


@pytest.mark.parametrize("line", ["   ", *(" ".join(line.split()) for line in INVALID.split(";"))])
def test_invalid_command_answers_error_29(core: Core, line: str) -> None:
    assert say(core, line) == "-29\n"


def test_answers(core: Core) -> None:
    """Format expected by the script that checks pigpio's pipe."""
    assert say(core, "bc1 0 bs2 0") == "0\n0\n"
    assert say(core, "br1") == f"{core(Cmd.BR1):08X}\n"
    assert say(core, "br2") == "003FC01C\n"
    assert say(core, "pigpv hwver") == f"79\n{0xA020D3}\n"
    core.now_us = 3_000_000_000
    assert say(core, "t") == "3000000000\n"
    assert say(core, "modes 4 0 modeg 4 m 4 r mg 4") == "0\n4\n0\n0\n"
    assert say(core, "pfs 4 800 pfg 4 pfs 4 0 prs 4 255 prg 4 prrg 4") == (
        "800\n800\n10\n20000\n255\n20000\n"
    )
    assert say(core, "pud 4 u r 4 pud 4 d r 4") == "0\n1\n0\n0\n"
    assert say(core, "w 1 1 w 99 1 p 4 256") == "-41\n-3\n-8\n"
    assert say(core, "add 5 parse w 4") == "-88\n-88\n"
    assert say(core, "w 4 1 frob w 4 0") == "0\n-29\n"
    assert core(Cmd.READ, 4) == 1


def test_scripts(core: Core) -> None:
    assert say(core, "proc ld p1 p0 ld p0 29 tag 9 mils 1000 jmp 9") == "0\n"
    core.run(1000)
    assert say(core, "procr 0 9876") == "0\n"
    core.run(1000)
    assert say(core, "procp 0") == "2 29 9876 0 0 0 0 0 0 0 0\n"
    assert say(core, "procp 1") == "-48\n"
    assert say(core, "procs 0 procd 0") == "0\n0\n"


def test_waves_and_serial(core: Core) -> None:
    assert say(core, "slro 22 1200 8 m 27 w wvclr") == "0\n0\n0\n"
    text = " ".join(f"{byte:#x}" for byte in b"my name is joan")
    assert say(core, f"wvas 27 1200 8 2 0 {text}") == "95\n"
    assert say(core, "wvcre wvtx 0") == "0\n191\n"
    core.run(200_000)
    assert say(core, "slr 22 100") == (
        "15 109 121 32 110 97 109 101 32 105 115 32 106 111 97 110\n"
    )
    assert say(core, "slr 22 100 slrc 22 slr 22 100") == "0\n0\n-38\n"
    assert say(core, "spio 0 50000 0 spix 0 1 2 255 spiw 0 1 2") == "0\n3 1 2 255\n2\n"


def test_help_has_a_line_for_every_command() -> None:
    heads = [line.split()[0] for line in command_text.usage().splitlines()]
    assert heads == sorted(word for word in PIPE_WORDS if PIPE_WORDS[word][0] < 800)
    assert "W number number" in command_text.usage()


WORDS = st.sampled_from(sorted(PIPE_WORDS))
LATIN = st.text(st.characters(max_codepoint=255), max_size=6)


@settings(max_examples=300)
@given(st.lists(WORDS | LATIN | st.integers(-5, 300).map(str), max_size=12))
def test_random_lines_parse_and_answer_within_range(parts: list[str]) -> None:
    seen = []
    try:
        for request in command_text.commands(" ".join(parts)):
            seen.append(request)
    except CommandError:
        pass
    for request in seen:
        assert 0 <= request.p1 < 2**32 and 0 <= request.p2 < 2**32
        if request.cmd != Cmd.BSCX:
            assert command_text.answer(request, -25).endswith("\n")
            assert command_text.answer(request, b"")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Emulator]:
    with emulator(tmp_path, "--pipe-dir", str(tmp_path / "dev")) as started:
        yield started


def ask(directory: Path, text: bytes, lines: int) -> list[str]:
    """Write to `pigpio` and read so many lines of `pigout`, like a shell."""
    end_s, got = time.monotonic() + LIMIT_S, b""
    answers = os.open(directory / "pigout", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with (directory / "pigpio").open("wb", buffering=0) as pipe:
            pipe.write(text)
        while got.count(b"\n") < lines:
            assert select.select([answers], [], [], max(0, end_s - time.monotonic()))[0]
            got += os.read(answers, 65536)
    finally:
        os.close(answers)
    return got.decode().splitlines()


def test_pipes_take_commands_and_are_removed_at_the_end(running: Emulator, tmp_path: Path) -> None:
    dev = tmp_path / "dev"
    assert oct((dev / "pigpio").stat().st_mode)[-3:] == "662"
    assert oct((dev / "pigout").stat().st_mode)[-3:] == "664"
    assert ask(dev, b"w 17 1\nr 17\nfrob\n", 3) == ["0", "1", "-29"]
    assert running.soc.pin[17].out == 1
    begin_s = time.monotonic()
    assert ask(dev, b"mils 50 r 17\nw 17 0 r 17\n", 4) == ["0", "1", "0", "0"]
    assert time.monotonic() - begin_s >= 0.05
    many = b"".join(b"w 5 %d r 5\n" % (number % 2) for number in range(400))
    answers = ask(dev, many, 800)
    assert answers == [part for n in range(400) for part in ("0", str(n % 2))]
    assert ask(dev, b"no\n", 1) == ["0"] and (dev / "pigpio0").exists()
    assert running.close() == 0
    assert sorted(path.name for path in dev.iterdir()) == []


def test_half_lines_wait_and_giant_lines_are_refused(running: Emulator, tmp_path: Path) -> None:
    dev = tmp_path / "dev"
    assert ask(dev, b"\n\npig", 0) == []
    assert ask(dev, b"pv\n", 1) == ["79"]
    assert ask(dev, b"x" * 30_000 + b"\npigpv\n", 2) == ["-29", "79"]


def test_unread_answers_are_lost(running: Emulator, tmp_path: Path) -> None:
    dev = tmp_path / "dev"
    for _ in range(40):
        with (dev / "pigpio").open("wb", buffering=0) as pipe:
            pipe.write(b"help\n" * 20)
    until_s = time.monotonic() + LIMIT_S
    with (dev / "pigpio").open("wb", buffering=0) as pipe:
        pipe.write(b"w 17 1\n")
    while not running.soc.pin[17].out:
        assert time.monotonic() < until_s
        time.sleep(0.005)
    drain = os.open(dev / "pigout", os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(drain, 1 << 20)
    os.close(drain)


def test_waiting_command_holds_up_only_the_pipe(core: Core) -> None:
    (request,) = command_text.commands("mils 100")
    assert isinstance(core.start(request.cmd, request.p1), Wait)

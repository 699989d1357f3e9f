"""Checks of every command, in pigpio's order, and its result: tables of the facts."""

import pytest
from testkit.pins.pigpiod import Core, checks, words

from fpvbench import soc as chip
from fpvbench.pigpiod.protocol import Cmd

CHECKS = checks(
    ("MODES", (1, 9, -41), (60, 9, -3), (17, 8, -4), (17, 7, 0), (28, 0, -41), (53, 0, -41)),
    ("MODEG", (54, 0, -3), (53, 0, 0), (1, 0, 0)),
    ("PUD", (0, 9, -41), (54, 9, -3), (27, 3, -6), (27, 2, 0)),
    ("READ", (54, 0, -3), (2**32 - 1, 0, -3), (1, 0, 1), (9, 0, 0)),
    ("WRITE", (1, 1, -41), (60, 1, -3), (17, 2, -5), (17, 1, 0), (40, 1, -41)),
    ("PWM", (40, 0, -41), (28, 0, -41), (31, 0, -41), (54, 0, -2), (17, 256, -8), (17, 255, 0)),
    ("PRS", (1, 0, -41), (99, 0, -2), (17, 24, -21), (17, 40001, -21), (17, 25, 250)),
    ("PRS", (17, 40000, 250)),
    ("PFS", (1, 0, -41), (99, 0, -2), (17, 0, 10)),
    ("SERVO", (1, 0, -41), (99, 0, -2), (17, 499, -7), (17, 2501, -7), (17, 500, 0), (17, 0, 0)),
    ("WDOG", (32, 0, -2), (17, 60001, -15), (1, 5, 0)),
    ("BC1", (1 << 17, 0, 0), (3, 0, -42)),
    ("BS1", (1 << 28, 0, -42)),
    ("BS2", (1, 0, -42)),
    ("BC2", (0, 0, 0)),
    ("BR2", (0, 0, 0x3FC01C)),
    ("HWVER", (0, 0, 0xA020D3)),
    ("PIGPV", (0, 0, 79)),
    ("HELP", (0, 0, 0)),
    ("NO", (0, 0, -23)),
    ("NB", (32, 0, -25), (0, 0, -25)),
    ("NP", (31, 0, -25)),
    ("NC", (0, 0, -25)),
    ("EVM", (0, 1, -25)),
    ("EVT", (32, 0, -143), (31, 0, 0)),
    ("PRG", (32, 0, -2), (31, 0, 255), (1, 0, 255)),
    ("PFG", (32, 0, -2), (0, 0, 800)),
    ("PRRG", (32, 0, -2), (0, 0, 250)),
    ("GDC", (32, 0, -2), (17, 0, -92)),
    ("GPW", (32, 0, -2), (17, 0, -93)),
    ("TRIG", (1, 0, -41, words(2)), (60, 0, -2, words(2)), (17, 0, -5, words(2))),
    ("TRIG", (17, 0, -46, words(1)), (17, 101, -46, words(1)), (17, 100, 0, words(0))),
    ("HP", (1, 0, -41), (99, 0, -3), (17, 0, -95), (18, 2**31, -97, words(1_000_001))),
    ("HP", (18, 125_000_001, -96, words(0)), (18, 0, 0, words(0)), (40, 0, -41)),
    ("HC", (1, 0, -41), (99, 0, -3), (17, 0, -94), (4, 4688, -98), (5, 5000, -99), (4, 5000, 0)),
    ("HC", (0x5A000005, 5000, 0)),
    ("FG", (32, 0, -2), (17, 300_001, -125), (17, 9, 0)),
    ("FN", (32, 0, -2, words(0)), (17, 300_001, -125, words(0)), (17, 0, -125, words(1_000_001))),
    ("FN", (17, 1, 0, words(1))),
    ("PADS", (3, 1, -126), (0, 0, -127), (0, 17, -127)),
    ("PADG", (3, 0, -126), (0, 0, 8)),
    ("MICS", (1_000_001, 0, -64), (1_000_000, 0, 0)),
    ("MILS", (60_001, 0, -65), (60_000, 0, 0)),
    ("CSI", (5, 0, 0)),
    ("CGI", (0, 0, 0)),
    ("PARSE", (0, 0, -88)),
    ("PROCR", (32, 0, -48, words(*range(11))), (0, 0, -61, words(*range(11))), (0, 0, -48)),
    ("PROCU", (0, 0, -61, words(*range(11))), (0, 0, -48)),
    ("PROCS", (0, 0, -48)),
    ("PROCD", (31, 0, -48)),
    ("PROCP", (32, 0, -48), (0, 0, -48)),
    ("WVCLR", (0, 0, 0)),
    ("WVNEW", (0, 0, 0)),
    ("WVBSY", (0, 0, 0)),
    ("WVAG", (0, 0, 0), (0, 0, 1, words(4, 0, 9)), (0, 0, 1, words(4, 0, 9, 0, 4))),
    ("WVAG", (0, 0, -42, words(3, 0, 9)), (0, 0, -42, words(0, 1 << 28, 9))),
    ("WVAS", (1, 0, -41), (60, 0, -2), (17, 49, -35, words(0, 0, 0))),
    ("WVAS", (17, 9600, -101, words(0, 0, 0)), (17, 1_000_001, -35, words(8, 2, 0))),
    ("WVAS", (17, 9600, -101, words(33, 2, 0)), (17, 9600, -102, words(8, 9, 0))),
    ("WVAS", (17, 9600, -102, words(8, 1, 0)), (17, 9600, -37, words(8, 2, 0) + bytes(1201))),
    ("WVAS", (17, 9600, 2401, words(8, 2, 0) + bytes(1200))),
    ("WVAS", (17, 9600, -49, words(8, 2, 1_800_000_001) + b"a"), (17, 9600, 0, words(8, 2, 0))),
    ("WVAS", (17, 9600, 0, words(9, 2, 0) + b"a"), (17, 9600, 11, words(8, 2, 0) + b"U")),
    ("WVGO", (0, 0, -120)),
    ("WVGOR", (0, 0, -120)),
    ("WVCRE", (0, 0, -69)),
    ("WVCAP", (101, 0, -81), (2**32 - 1, 0, -81), (50, 101, -81), (50, 0, -81, words(101))),
    ("WVCAP", (50, 50, -66, b"ab"), (50, 0, -69)),
    ("WVDEL", (0, 0, -66)),
    ("WVTX", (0, 0, -66)),
    ("WVTXR", (0, 0, -66)),
    ("WVTXM", (0, 9, -66)),
    ("WVTAT", (0, 0, 9999)),
    ("WVSM", (0, 0, 0), (1, 0, 0), (2, 0, 1_800_000_000), (3, 0, -44)),
    ("WVSP", (2, 0, 12_000), (3, 0, -45)),
    ("WVSC", (2, 0, 25_016), (3, 0, -43)),
    ("WVCHA", (0, 0, 0), (0, 0, -66, b"\1"), (0, 0, -116, b"\xff"), (0, 0, -116, b"\xff\4")),
    ("WVCHA", (0, 0, -116, b"\xff\2\1"), (0, 0, -114, b"\xff\1\1\0"), (0, 0, -114, b"\xff\3")),
    ("WVCHA", (0, 0, -114, b"\xff\0\xff\3"), (0, 0, 0, b"\xff\0" * 10)),
    ("WVCHA", (0, 0, -118, b"\xff\0" * 11), (0, 0, -124, b"\xff\0\xff\2\1\0\xff\3\xff\0")),
    ("WVCHA", (0, 0, 0, b"\xff\2\1\0" * 598), (0, 0, -119, b"\xff\2\1\0" * 599)),
    ("WVCHA", (0, 0, 0, b"\xff\0\xff\2\1\0\xff\1\2\0" * 20)),
    ("WVCHA", (0, 0, -115, b"\xff\0\xff\2\1\0\xff\1\2\0" * 21)),
    ("WVHLT", (0, 0, 0)),
    ("SPIO", (2, 1, -76, words(0)), (3, 1, -76, words(256)), (1, 31_999, -78, words(0))),
    ("SPIO", (1, 125_000_001, -78, words(0)), (1, 50_000, -77, words((1 << 22) + 1))),
    ("SPIO", (1, 50_000, 0, words(1 << 22)), (2, 50_000, 0, words(256))),
    ("SPIC", (0, 0, -25)),
    ("SPIX", (0, 0, -25, b"a")),
    ("SPIR", (32, 9, -25)),
    ("SPIW", (0, 0, -25, b"a")),
    ("SLRO", (60, 9600, -2, words(8)), (17, 49, -35, words(8)), (17, 250_001, -35, words(8))),
    ("SLRO", (1, 9600, 0, words(8)), (17, 9600, -101, words(0)), (17, 9600, -101, words(33))),
    ("SLRO", (17, 9600, 0, words(8))),
    ("SLR", (32, 0, -2), (17, 0, -51), (17, 9, -38)),
    ("SLRC", (17, 0, -38), (32, 0, -2)),
    ("SLRI", (17, 2, -38), (32, 0, -2)),
    ("BI2CO", (32, 2, -2, words(1)), (2, 32, -2, words(1)), (2, 3, -112, words(49))),
    ("BI2CO", (2, 3, -112, words(500_001)), (2, 2, -50, words(100_000)), (2, 3, 0, words(100_000))),
    ("BI2CC", (32, 0, -2), (2, 0, -108)),
    ("BI2CZ", (32, 0, -2), (2, 0, -108, b"a")),
    ("BSPIO", (1, 0, -41, words(3, 4, 5, 1, 0)), (2, 0, -41, words(3, 4, 32, 1, 0))),
    ("BSPIO", (2, 0, -2, words(3, 4, 60, 1, 0)), (2, 0, -141, words(3, 4, 5, 49, 0))),
    ("BSPIO", (2, 0, -141, words(3, 4, 5, 250_001, 0)), (2, 0, -50, words(3, 4, 4, 50_000, 0))),
    ("BSPIO", (2, 0, 0, words(3, 4, 5, 50_000, 0))),
    ("BSPIC", (32, 0, -2), (2, 0, -142)),
    ("BSPIX", (33, 0, -2), (2, 0, -142)),
    ("BSCX", (0, 0, 4), (0x305, 0, 4, b"abc")),
    ("SERO", (1, 1, -79, b"/etc/passwd"), (1, 1, -80, b"/dev/ttyS0")),
    ("SERO", (9600, 1, -77, b"/dev/ttyS0"), (9600, 0, -72, b"/dev/ttyS0")),
    ("SERC", (0, 0, -25)),
    ("SERR", (0, 9, -25)),
    ("SERDA", (0, 0, -25)),
    ("CF1", (0, 0, 0)),
    ("FO", (0, 0, -129, b"/etc/passwd"), (1, 0, -137, b"/etc/passwd")),
    ("FL", (60000, 0, -137, b"/*")),
    ("FC", (0, 0, -25)),
    ("FW", (0, 0, -25, b"a")),
    ("SHELL", (4, 0, -140, b"a/.b\0x"), (3, 0, 32512, b"abc\0x")),
)


@pytest.mark.parametrize("name,p1,p2,result,ext", CHECKS)
def test_command_check_gives_pigpios_result(
    core: Core, name: str, p1: int, p2: int, result: int, ext: bytes
) -> None:
    assert core(Cmd[name], p1, p2, ext) == result


@pytest.mark.parametrize("number", [119, 500, 800, 842, 2**32 - 1])
def test_unknown_command_gives_error_88(core: Core, number: int) -> None:
    assert core(number) == -88


def test_known_commands_all_answer(core: Core) -> None:
    silent = {Cmd.PARSE, Cmd.NOIB}  # over the socket: -88; with a connection
    for command in set(Cmd) - silent:
        assert core(command, 4, 4) != -88, command.name


def test_write_sets_mode_and_level_before_it_answers(core: Core) -> None:
    assert core(Cmd.WRITE, 17, 1) == 0
    pin = core.soc.pin[17]
    assert (pin.mode, pin.out, pin.pwm, pin.duty()) == (1, 1, 0, 1.0)
    assert core(Cmd.READ, 17) == 1


def test_bank_commands_write_levels_only(core: Core) -> None:
    core(Cmd.MODES, 5, 1)
    assert core(Cmd.BS1, 1 << 5 | 1 << 6) == 0
    assert core(Cmd.BR1) >> 5 & 3 == 0b11  # GPIO 6 is pulled up
    assert (core.soc.pin[5].duty(), core.soc.pin[6].mode) == (1.0, 0)
    assert core(Cmd.BC1, 1 << 5 | 1) == -42
    assert core.soc.pin[5].duty() == 0.0


def test_bank_commands_do_not_stop_pwm(core: Core) -> None:
    core(Cmd.PWM, 5, 128)
    core(Cmd.BC1, 1 << 5)
    assert core(Cmd.GDC, 5) == 128
    assert core.soc.pin[5].duty() == pytest.approx(0.5, abs=0.01)


def test_pulls_decide_what_a_floating_input_reads(core: Core) -> None:
    for pull, level in ((2, 1), (1, 0)):
        core(Cmd.PUD, 22, pull)
        assert (core.soc.pin[22].pull, core(Cmd.READ, 22)) == (pull, level)
    core.soc.pin[22].external = 1
    assert core(Cmd.READ, 22) == 1
    core.soc.pin[22].external = chip.FLOATING
    assert core(Cmd.READ, 22) == 0


def test_mode_is_read_from_the_chip(core: Core) -> None:
    core(Cmd.PWM, 17, 200)
    core.soc.pin[17].mode, core.soc.pin[17].pull = 0, 1  # pinctrl set 17 ip pd
    assert (core(Cmd.MODEG, 17), core(Cmd.READ, 17)) == (0, 0)
    assert core.soc.pin[17].duty() == 0.0
    core(Cmd.PWM, 17, 200)
    assert core.soc.pin[17].duty() == pytest.approx(196 / 250)


def test_mode_change_stops_pwm_and_same_mode_does_not(core: Core) -> None:
    core(Cmd.PWM, 17, 200)
    core(Cmd.MODES, 17, 1)
    assert core(Cmd.GDC, 17) == 200
    core(Cmd.MODES, 17, 0)
    assert (core(Cmd.GDC, 17), core.soc.pin[17].pwm) == (-92, 0)


def test_internals_and_pads_are_kept(core: Core) -> None:
    core(Cmd.CSI, 0x12345)
    assert core(Cmd.CGI) == 0x12345
    for asked, told in ((1, 2), (2, 2), (15, 16), (16, 16)):
        core(Cmd.PADS, 1, asked)
        assert core(Cmd.PADG, 1) == told


def test_tick_is_the_low_half_of_the_clock(core: Core) -> None:
    core.now_us = 2**32 + 77
    assert core(Cmd.TICK) == 77


def test_permission_mask_allows_only_gpio_2_to_27(core: Core) -> None:
    allowed = [gpio for gpio in range(64) if core(Cmd.WRITE, gpio, 0) == 0]
    assert allowed == list(range(2, 28))

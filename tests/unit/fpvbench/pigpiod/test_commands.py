"""Checks of every command, in pigpio's order, and its result: tables of the facts."""

import pytest
from testkit.pins.pigpiod import Core, words

from fpvbench import soc as chip
from fpvbench.pigpiod.protocol import Cmd

# command, p1, p2, extension, result
CHECKS = [
    # permission, then GPIO, then value
    ("MODES", 1, 9, b"", -41),
    ("MODES", 60, 9, b"", -3),
    ("MODES", 17, 8, b"", -4),
    ("MODES", 17, 7, b"", 0),
    ("MODES", 28, 0, b"", -41),
    ("MODES", 53, 0, b"", -41),
    ("MODEG", 54, 0, b"", -3),
    ("MODEG", 53, 0, b"", 0),
    ("MODEG", 1, 0, b"", 0),
    ("PUD", 0, 9, b"", -41),
    ("PUD", 54, 9, b"", -3),
    ("PUD", 27, 3, b"", -6),
    ("PUD", 27, 2, b"", 0),
    ("READ", 54, 0, b"", -3),
    ("READ", 2**32 - 1, 0, b"", -3),
    ("READ", 1, 0, b"", 1),
    ("READ", 9, 0, b"", 0),
    ("WRITE", 1, 1, b"", -41),
    ("WRITE", 60, 1, b"", -3),
    ("WRITE", 17, 2, b"", -5),
    ("WRITE", 17, 1, b"", 0),
    ("WRITE", 40, 1, b"", -41),
    ("PWM", 40, 0, b"", -41),
    ("PWM", 28, 0, b"", -41),
    ("PWM", 31, 0, b"", -41),
    ("PWM", 54, 0, b"", -2),
    ("PWM", 17, 256, b"", -8),
    ("PWM", 17, 255, b"", 0),
    ("PRS", 1, 0, b"", -41),
    ("PRS", 99, 0, b"", -2),
    ("PRS", 17, 24, b"", -21),
    ("PRS", 17, 40001, b"", -21),
    ("PRS", 17, 25, b"", 250),
    ("PRS", 17, 40000, b"", 250),
    ("PFS", 1, 0, b"", -41),
    ("PFS", 99, 0, b"", -2),
    ("PFS", 17, 0, b"", 10),
    ("SERVO", 1, 0, b"", -41),
    ("SERVO", 99, 0, b"", -2),
    ("SERVO", 17, 499, b"", -7),
    ("SERVO", 17, 2501, b"", -7),
    ("SERVO", 17, 500, b"", 0),
    ("SERVO", 17, 0, b"", 0),
    ("WDOG", 32, 0, b"", -2),
    ("WDOG", 17, 60001, b"", -15),
    ("WDOG", 1, 5, b"", 0),
    ("BC1", 1 << 17, 0, b"", 0),
    ("BC1", 3, 0, b"", -42),
    ("BS1", 1 << 28, 0, b"", -42),
    ("BS2", 1, 0, b"", -42),
    ("BC2", 0, 0, b"", 0),
    ("BR2", 0, 0, b"", 0x3FC01C),
    ("HWVER", 0, 0, b"", 0xA020D3),
    ("PIGPV", 0, 0, b"", 79),
    ("HELP", 0, 0, b"", 0),
    ("NO", 0, 0, b"", -23),
    ("NB", 32, 0, b"", -25),
    ("NB", 0, 0, b"", -25),
    ("NP", 31, 0, b"", -25),
    ("NC", 0, 0, b"", -25),
    ("EVM", 0, 1, b"", -25),
    ("EVT", 32, 0, b"", -143),
    ("EVT", 31, 0, b"", 0),
    ("PRG", 32, 0, b"", -2),
    ("PRG", 31, 0, b"", 255),
    ("PRG", 1, 0, b"", 255),
    ("PFG", 32, 0, b"", -2),
    ("PFG", 0, 0, b"", 800),
    ("PRRG", 32, 0, b"", -2),
    ("PRRG", 0, 0, b"", 250),
    ("GDC", 32, 0, b"", -2),
    ("GDC", 17, 0, b"", -92),
    ("GPW", 32, 0, b"", -2),
    ("GPW", 17, 0, b"", -93),
    ("TRIG", 1, 0, words(2), -41),
    ("TRIG", 60, 0, words(2), -2),
    ("TRIG", 17, 0, words(2), -5),
    ("TRIG", 17, 0, words(1), -46),
    ("TRIG", 17, 101, words(1), -46),
    ("TRIG", 17, 100, words(0), 0),
    ("HP", 1, 0, b"", -41),
    ("HP", 99, 0, b"", -3),
    ("HP", 17, 0, b"", -95),
    ("HP", 18, 2**31, words(1_000_001), -97),
    ("HP", 18, 125_000_001, words(0), -96),
    ("HP", 18, 0, words(0), 0),
    ("HP", 40, 0, b"", -41),
    ("HC", 1, 0, b"", -41),
    ("HC", 99, 0, b"", -3),
    ("HC", 17, 0, b"", -94),
    ("HC", 4, 4688, b"", -98),
    ("HC", 5, 5000, b"", -99),
    ("HC", 4, 5000, b"", 0),
    ("HC", 0x5A000005, 5000, b"", 0),
    ("FG", 32, 0, b"", -2),
    ("FG", 17, 300_001, b"", -125),
    ("FG", 17, 9, b"", 0),
    ("FN", 32, 0, words(0), -2),
    ("FN", 17, 300_001, words(0), -125),
    ("FN", 17, 0, words(1_000_001), -125),
    ("FN", 17, 1, words(1), 0),
    ("PADS", 3, 1, b"", -126),
    ("PADS", 0, 0, b"", -127),
    ("PADS", 0, 17, b"", -127),
    ("PADG", 3, 0, b"", -126),
    ("PADG", 0, 0, b"", 8),
    ("MICS", 1_000_001, 0, b"", -64),
    ("MICS", 1_000_000, 0, b"", 0),
    ("MILS", 60_001, 0, b"", -65),
    ("MILS", 60_000, 0, b"", 0),
    ("CSI", 5, 0, b"", 0),
    ("CGI", 0, 0, b"", 0),
    ("PARSE", 0, 0, b"", -88),
    # scripts
    ("PROCR", 32, 0, words(*range(11)), -48),
    ("PROCR", 0, 0, words(*range(11)), -61),
    ("PROCR", 0, 0, b"", -48),
    ("PROCU", 0, 0, words(*range(11)), -61),
    ("PROCU", 0, 0, b"", -48),
    ("PROCS", 0, 0, b"", -48),
    ("PROCD", 31, 0, b"", -48),
    ("PROCP", 32, 0, b"", -48),
    ("PROCP", 0, 0, b"", -48),
    # waves
    ("WVCLR", 0, 0, b"", 0),
    ("WVNEW", 0, 0, b"", 0),
    ("WVBSY", 0, 0, b"", 0),
    ("WVAG", 0, 0, b"", 0),
    ("WVAG", 0, 0, words(4, 0, 9), 1),
    ("WVAG", 0, 0, words(4, 0, 9, 0, 4), 1),
    ("WVAG", 0, 0, words(3, 0, 9), -42),
    ("WVAG", 0, 0, words(0, 1 << 28, 9), -42),
    ("WVAS", 1, 0, b"", -41),
    ("WVAS", 60, 0, b"", -2),
    ("WVAS", 17, 49, words(0, 0, 0), -35),
    ("WVAS", 17, 9600, words(0, 0, 0), -101),
    ("WVAS", 17, 1_000_001, words(8, 2, 0), -35),
    ("WVAS", 17, 9600, words(33, 2, 0), -101),
    ("WVAS", 17, 9600, words(8, 9, 0), -102),
    ("WVAS", 17, 9600, words(8, 1, 0), -102),
    ("WVAS", 17, 9600, words(8, 2, 0) + bytes(1201), -37),
    ("WVAS", 17, 9600, words(8, 2, 0) + bytes(1200), 2401),
    ("WVAS", 17, 9600, words(8, 2, 1_800_000_001) + b"a", -49),
    ("WVAS", 17, 9600, words(8, 2, 0), 0),
    ("WVAS", 17, 9600, words(9, 2, 0) + b"a", 0),
    ("WVAS", 17, 9600, words(8, 2, 0) + b"U", 11),
    ("WVGO", 0, 0, b"", -120),
    ("WVGOR", 0, 0, b"", -120),
    ("WVCRE", 0, 0, b"", -69),
    ("WVCAP", 101, 0, b"", -81),
    ("WVCAP", 2**32 - 1, 0, b"", -81),
    ("WVCAP", 50, 101, b"", -81),
    ("WVCAP", 50, 0, words(101), -81),
    ("WVCAP", 50, 50, b"ab", -66),
    ("WVCAP", 50, 0, b"", -69),
    ("WVDEL", 0, 0, b"", -66),
    ("WVTX", 0, 0, b"", -66),
    ("WVTXR", 0, 0, b"", -66),
    ("WVTXM", 0, 9, b"", -66),
    ("WVTAT", 0, 0, b"", 9999),
    ("WVSM", 0, 0, b"", 0),
    ("WVSM", 1, 0, b"", 0),
    ("WVSM", 2, 0, b"", 1_800_000_000),
    ("WVSM", 3, 0, b"", -44),
    ("WVSP", 2, 0, b"", 12_000),
    ("WVSP", 3, 0, b"", -45),
    ("WVSC", 2, 0, b"", 25_016),
    ("WVSC", 3, 0, b"", -43),
    ("WVCHA", 0, 0, b"", 0),
    ("WVCHA", 0, 0, b"\1", -66),
    ("WVCHA", 0, 0, b"\xff", -116),
    ("WVCHA", 0, 0, b"\xff\4", -116),
    ("WVCHA", 0, 0, b"\xff\2\1", -116),
    ("WVCHA", 0, 0, b"\xff\1\1\0", -114),
    ("WVCHA", 0, 0, b"\xff\3", -114),
    ("WVCHA", 0, 0, b"\xff\0\xff\3", -114),
    ("WVCHA", 0, 0, b"\xff\0" * 10, 0),
    ("WVCHA", 0, 0, b"\xff\0" * 11, -118),
    ("WVCHA", 0, 0, b"\xff\0\xff\2\1\0\xff\3\xff\0", -124),
    ("WVCHA", 0, 0, b"\xff\2\1\0" * 598, 0),
    ("WVCHA", 0, 0, b"\xff\2\1\0" * 599, -119),
    ("WVCHA", 0, 0, b"\xff\0\xff\2\1\0\xff\1\2\0" * 20, 0),
    ("WVCHA", 0, 0, b"\xff\0\xff\2\1\0\xff\1\2\0" * 21, -115),
    ("WVHLT", 0, 0, b"", 0),
    # SPI
    ("SPIO", 2, 1, words(0), -76),
    ("SPIO", 3, 1, words(256), -76),
    ("SPIO", 1, 31_999, words(0), -78),
    ("SPIO", 1, 125_000_001, words(0), -78),
    ("SPIO", 1, 50_000, words((1 << 22) + 1), -77),
    ("SPIO", 1, 50_000, words(1 << 22), 0),
    ("SPIO", 2, 50_000, words(256), 0),
    ("SPIC", 0, 0, b"", -25),
    ("SPIX", 0, 0, b"a", -25),
    ("SPIR", 32, 9, b"", -25),
    ("SPIW", 0, 0, b"a", -25),
    # bit banging: permission (of a bus), GPIO, baud, in use
    ("SLRO", 60, 9600, words(8), -2),
    ("SLRO", 17, 49, words(8), -35),
    ("SLRO", 17, 250_001, words(8), -35),
    ("SLRO", 1, 9600, words(8), 0),
    ("SLRO", 17, 9600, words(0), -101),
    ("SLRO", 17, 9600, words(33), -101),
    ("SLRO", 17, 9600, words(8), 0),
    ("SLR", 32, 0, b"", -2),
    ("SLR", 17, 0, b"", -51),
    ("SLR", 17, 9, b"", -38),
    ("SLRC", 17, 0, b"", -38),
    ("SLRC", 32, 0, b"", -2),
    ("SLRI", 17, 2, b"", -38),
    ("SLRI", 32, 0, b"", -2),
    ("BI2CO", 32, 2, words(1), -2),
    ("BI2CO", 2, 32, words(1), -2),
    ("BI2CO", 2, 3, words(49), -112),
    ("BI2CO", 2, 3, words(500_001), -112),
    ("BI2CO", 2, 2, words(100_000), -50),
    ("BI2CO", 2, 3, words(100_000), 0),
    ("BI2CC", 32, 0, b"", -2),
    ("BI2CC", 2, 0, b"", -108),
    ("BI2CZ", 32, 0, b"", -2),
    ("BI2CZ", 2, 0, b"a", -108),
    ("BSPIO", 1, 0, words(3, 4, 5, 1, 0), -41),
    ("BSPIO", 2, 0, words(3, 4, 32, 1, 0), -41),
    ("BSPIO", 2, 0, words(3, 4, 60, 1, 0), -2),
    ("BSPIO", 2, 0, words(3, 4, 5, 49, 0), -141),
    ("BSPIO", 2, 0, words(3, 4, 5, 250_001, 0), -141),
    ("BSPIO", 2, 0, words(3, 4, 4, 50_000, 0), -50),
    ("BSPIO", 2, 0, words(3, 4, 5, 50_000, 0), 0),
    ("BSPIC", 32, 0, b"", -2),
    ("BSPIC", 2, 0, b"", -142),
    ("BSPIX", 33, 0, b"", -2),
    ("BSPIX", 2, 0, b"", -142),
    ("BSCX", 0, 0, b"", 4),
    ("BSCX", 0x305, 0, b"abc", 4),
    # unsupported functions
    ("SERO", 1, 1, b"/etc/passwd", -79),
    ("SERO", 1, 1, b"/dev/ttyS0", -80),
    ("SERO", 9600, 1, b"/dev/ttyS0", -77),
    ("SERO", 9600, 0, b"/dev/ttyS0", -72),
    ("SERC", 0, 0, b"", -25),
    ("SERR", 0, 9, b"", -25),
    ("SERDA", 0, 0, b"", -25),
    ("CF1", 0, 0, b"", 0),
    ("FO", 0, 0, b"/etc/passwd", -129),
    ("FO", 1, 0, b"/etc/passwd", -137),
    ("FL", 60000, 0, b"/*", -137),
    ("FC", 0, 0, b"", -25),
    ("FW", 0, 0, b"a", -25),
    ("SHELL", 4, 0, b"a/.b\0x", -140),
    ("SHELL", 3, 0, b"abc\0x", 32512),
]


@pytest.mark.parametrize("name,p1,p2,ext,result", CHECKS)
def test_command_check_gives_pigpios_result(
    core: Core, name: str, p1: int, p2: int, ext: bytes, result: int
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

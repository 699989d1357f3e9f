"""Names of pigpio's text commands, and the parsing of their operands (command.c).

Scripts and the command pipe share them; each has some that the other lacks.
"""

import re
from dataclasses import dataclass, replace
from enum import IntEnum

from fpvbench.pigpiod.protocol import Cmd

VARIABLES = 150
PARAMETERS = 10
WORD_MAX = 31


class Op(IntEnum):
    """Numbers of the instructions that only scripts have."""

    TAG = 800
    ADD, SUB, MLT, DIV, MOD, AND, OR, XOR, RLA, RRA, LDA, LDAB, STAB, CMP = range(801, 815)
    CALL, JMP, JZ, JNZ, JP, JM = range(815, 821)
    INR, DCR, PUSH, POP, STA, XA, LD, RL, RR, X = range(821, 831)
    INRA, DCRA, PUSHA, POPA, RET, HALT, NOP, CMDR, CMDW = range(831, 840)
    SYS, WAIT, EVTWT = range(840, 843)


class OperandSource(IntEnum):
    """Source of an operand's value."""

    NONE = 0
    NUMBER = 1
    VARIABLE = 2
    PARAMETER = 3


@dataclass(frozen=True, slots=True)
class Operand:
    """Value of an operand, or the index of a register."""

    source: OperandSource = OperandSource.NONE
    value: int = 0


# Operand shapes: n any value, u not negative, r register, l literal number, L the same and not
# negative, m mode letter, p pull letter, w word. A number in place of a register is read as a
# variable, as in command.c.
_SHAPES = {
    "": "BR1 BR2 CGI HWVER NO PIGPV TICK=T TICK WVBSY WVCLR WVCRE WVHLT WVNEW WVTAT",
    "n": "BC1 BC2 BS1 BS2 CSI",
    "u": "BI2CC BSPIC EVT FC GDC GPW I2CC I2CRS MICS MILS MODEG=MG MODEG NC NP PADG "
    "PFG PRG PRRG READ=R READ SERC SERDA SERRB SLRC SPIC WVCAP WVDEL WVSC WVSM WVSP "
    "WVTX WVTXR",
    "uu": "FG HC I2CRB I2CRW I2CWQ I2CWS PADS PFS PRS PWM=P PWM SERWB SERVO=S SERVO "
    "SLRI WDOG WRITE=W WRITE WVTXM",
    "un": "EVM NB",
    "um": "MODES=M MODES",
    "up": "PUD",
    "uuu": "BI2CO FN HP I2CO I2CPC I2CWB I2CWW SLRO SPIO TRIG",
    "unL": "FS",
}
_OP_SHAPES = {
    "": "DCRA HALT INRA NOP POPA PUSHA RET",
    "n": "ADD AND CMDR CMDW CMP DIV EVTWT LDA LDAB MLT MOD OR RLA RRA STAB SUB WAIT XOR",
    "r": "DCR INR POP PUSH STA XA",
    "l": "CALL JM JMP JNZ JP JZ TAG",
    "rn": "LD RL RR",
    "rr": "X",
    "w": "SYS",
}
# Commands of the pipe only. * up to ten numbers, 3 triples of numbers, b bytes (at least one), B up
# to 32 of them, ? optional operand, t the rest of the line.
_PIPE_SHAPES = {
    "": "HELP=H HELP WVGO WVGOR",
    "u": "PROCD PROCP PROCS",
    "uu": "FR I2CRD I2CRK SERR SLR SPIR",
    "uuu": "I2CRI",
    "L*": "PROCR PROCU",
    "3": "WVAG",
    "Lb": "BI2CZ BSPIX FW I2CWD I2CZ SERW SPIW SPIX",
    "Lb?": "BSCX",
    "LLB": "I2CPK I2CWI I2CWK",
    "LLb?": "CF1 CF2",
    "LLlllb": "WVAS",
    "b": "WVCHA",
    "wu": "FL FO",
    "wuu": "SERO",
    "wt": "SHELL",
    "uLLLLl": "BSPIO",
    "t": "PARSE PROC",
}


def _table(shapes: dict[str, str], codes: type[IntEnum]) -> dict[str, tuple[int, str]]:
    table: dict[str, tuple[int, str]] = {}
    for shape, names in shapes.items():
        for name in names.split():
            command, _, short = name.partition("=")
            table[short or command] = (codes[command], shape)
    return table


WORDS = {**_table(_SHAPES, Cmd), **_table(_OP_SHAPES, Op)}
"""Word of a script -> (number, shape of its operands)."""
PIPE_WORDS = {**WORDS, **_table(_PIPE_SHAPES, Cmd)}
"""Commands that the pipe accepts; a script's own instructions are unknown commands there."""
NUMBER = re.compile(r"\s*([vp]\s*)?([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+))\s*", re.A)
WORD = re.compile(rf"\s*(\S{{1,{WORD_MAX}}})\s*", re.A)
NAME = re.compile(r"\s*(\S+)\s*", re.A)
LETTER = re.compile(r"\s*(\S)\s*", re.A)
MODES = "RW540123"
PULLS = "ODU"


class Scanner:
    """Scanner of text like sscanf, as far as command.c uses it."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, pattern: re.Pattern[str]) -> "re.Match[str] | None":
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def number(self) -> Operand:
        """Read %i (decimal, 0x hexadecimal, 0 octal) or a register, v or p."""
        match = self.take(NUMBER)
        if match is None:
            return Operand()
        digits = match[2].lstrip("+-")
        if digits[:1] == "0" and digits[1:2] not in ("x", "X", ""):
            octal = re.match("[0-7]+", digits)
            assert octal is not None
            self.at = match.start(2) + len(match[2]) - len(digits) + octal.end()
            value = int(octal[0], 8)
        elif digits.isdecimal() and len(digits) > 30:
            value = 0x7FFFFFFF
        else:
            value = int(digits, 0)
        if match[2].startswith("-"):
            value = -value
        letter = (match[1] or "")[:1]
        if not letter:
            return Operand(OperandSource.NUMBER, value & 0xFFFFFFFF)
        source = OperandSource.VARIABLE if letter == "v" else OperandSource.PARAMETER
        limit = VARIABLES if letter == "v" else PARAMETERS
        return Operand(source, value) if 0 <= value < limit else Operand()

    def letter(self, letters: str) -> Operand:
        match = self.take(LETTER)
        index = letters.find(match[1].upper()) if match else -1
        return Operand(OperandSource.NUMBER, index) if index >= 0 else Operand()


def operand_of(scanner: Scanner, kind: str) -> Operand:
    """Read an operand of the shape n u r l L m or p, or return Operand() if it is missing."""
    if kind == "m":
        return scanner.letter(MODES)
    if kind == "p":
        return scanner.letter(PULLS)
    operand = scanner.number()
    negative = operand.value >= 0x80000000
    wrong = (
        (kind == "u" and negative)
        or (kind == "r" and operand.value >= VARIABLES)
        or (kind in "lL" and operand.source is not OperandSource.NUMBER)
        or (kind == "L" and negative)
    )
    if wrong:
        return Operand()
    if kind == "r" and operand.source is OperandSource.NUMBER:
        return replace(operand, source=OperandSource.VARIABLE)
    return operand

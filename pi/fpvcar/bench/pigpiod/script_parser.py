"""pigpio's script language: text -> instructions (cmdParseScript in command.c)."""

import re
from dataclasses import dataclass, replace
from enum import IntEnum

from fpvcar.bench.pigpiod.protocol import Cmd, Err

TAGS_MAX = 50
VARIABLES = 150
PARAMETERS = 10
WORD_MAX = 31


class Op(IntEnum):
    """Instructions that only scripts have."""

    TAG = 800
    ADD, SUB, MLT, DIV, MOD, AND, OR, XOR, RLA, RRA, LDA, LDAB, STAB, CMP = range(
        801, 815
    )
    CALL, JMP, JZ, JNZ, JP, JM = range(815, 821)
    INR, DCR, PUSH, POP, STA, XA, LD, RL, RR, X = range(821, 831)
    INRA, DCRA, PUSHA, POPA, RET, HALT, NOP, CMDR, CMDW = range(831, 840)
    SYS, WAIT, EVTWT = range(840, 843)


JUMPS = frozenset((Op.CALL, Op.JMP, Op.JZ, Op.JNZ, Op.JP, Op.JM))


class From(IntEnum):
    """Where an operand's value comes from."""

    NONE = 0
    NUMBER = 1
    VARIABLE = 2
    PARAMETER = 3


@dataclass(frozen=True, slots=True)
class Operand:
    """A number, or the index of a register."""

    source: From = From.NONE
    value: int = 0


@dataclass(frozen=True, slots=True)
class Instruction:
    """A command of the socket protocol, or an Op, and up to three operands."""

    code: int
    operands: tuple[Operand, ...] = ()
    text: str = ""


# Operand shapes: n any value, u not negative, r register, l literal number,
# m mode letter, p pull letter, w word. Numbers are taken for variables where a
# register is wanted, as in command.c.
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
    "n": "ADD AND CMDR CMDW CMP DIV EVTWT LDA LDAB MLT MOD OR RLA RRA STAB SUB WAIT "
    "XOR",
    "r": "DCR INR POP PUSH STA XA",
    "l": "CALL JM JMP JNZ JP JZ TAG",
    "rn": "LD RL RR",
    "rr": "X",
    "w": "SYS",
}


def _table() -> dict[str, tuple[int, str]]:
    table: dict[str, tuple[int, str]] = {}
    for shape, names in _SHAPES.items():
        for name in names.split():
            command, _, short = name.partition("=")
            table[short or command] = (Cmd[command], shape)
    for shape, names in _OP_SHAPES.items():
        for name in names.split():
            table[name] = (Op[name], shape)
    return table


WORDS = _table()
_NUMBER = re.compile(r"\s*([vp]\s*)?([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+))\s*", re.A)
_WORD = re.compile(rf"\s*(\S{{1,{WORD_MAX}}})\s*", re.A)
_NAME = re.compile(r"\s*(\S+)\s*", re.A)
_LETTER = re.compile(r"\s*(\S)\s*", re.A)
MODES = "RW540123"
PULLS = "ODU"


class ScriptError(Exception):
    """A script that is refused; `error` is pigpio's number."""

    def __init__(self, error: Err, what: str) -> None:
        super().__init__(f"{error.name}: {what}")
        self.error = error


class _Scanner:
    """sscanf, as far as command.c uses it."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, pattern: re.Pattern[str]) -> "re.Match[str] | None":
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def number(self) -> Operand:
        """%i: decimal, 0x hexadecimal, 0 octal; v and p name registers."""
        match = self.take(_NUMBER)
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
            return Operand(From.NUMBER, value & 0xFFFFFFFF)
        source = From.VARIABLE if letter == "v" else From.PARAMETER
        limit = VARIABLES if letter == "v" else PARAMETERS
        return Operand(source, value) if 0 <= value < limit else Operand()

    def letter(self, letters: str) -> Operand:
        match = self.take(_LETTER)
        index = letters.find(match[1].upper()) if match else -1
        return Operand(From.NUMBER, index) if index >= 0 else Operand()


def _operand(scanner: _Scanner, kind: str) -> Operand:
    if kind == "m":
        return scanner.letter(MODES)
    if kind == "p":
        return scanner.letter(PULLS)
    operand = scanner.number()
    negative = operand.value >= 0x80000000
    wrong = (
        (kind == "u" and negative)
        or (kind == "r" and operand.value >= VARIABLES)
        or (kind in "lL" and operand.source is not From.NUMBER)
        or (kind == "L" and negative)
    )
    if wrong:
        return Operand()
    if kind == "r" and operand.source is From.NUMBER:
        return replace(operand, source=From.VARIABLE)
    return operand


def _instruction(scanner: _Scanner) -> Instruction:
    match = scanner.take(_WORD)
    word = match[1] if match else ""
    if word.upper() not in WORDS:
        raise ScriptError(Err.BAD_SCRIPT_CMD, f"{word!r} is no command of scripts")
    code, shape = WORDS[word.upper()]
    if shape == "w":
        name = scanner.take(_NAME)
        if name is None:
            raise ScriptError(Err.BAD_SCRIPT_CMD, f"{word} wants a name")
        return Instruction(code, (), name[1])
    operands = tuple(_operand(scanner, kind) for kind in shape)
    if any(operand.source is From.NONE for operand in operands):
        raise ScriptError(Err.BAD_SCRIPT_CMD, f"bad operand of {word}")
    return Instruction(code, operands)


def parse(source: bytes) -> tuple[Instruction, ...]:
    """The instructions; jumps hold the index they go to. Raises ScriptError.

    Text ends at a NUL. The first error in the text counts; jumps without a tag come
    last.
    """
    scanner = _Scanner(source.split(b"\0", 1)[0].decode("latin-1"))
    instructions: list[Instruction] = []
    tags: dict[int, int] = {}
    while scanner.at < len(scanner.text):
        instruction = _instruction(scanner)
        if instruction.code != Op.TAG:
            instructions.append(instruction)
            continue
        tag = instruction.operands[0].value
        if len(tags) >= TAGS_MAX:
            raise ScriptError(Err.TOO_MANY_TAGS, f"more than {TAGS_MAX} tags")
        if tag in tags:
            raise ScriptError(Err.DUP_TAG, f"tag {tag} is already there")
        tags[tag] = len(instructions)
    return tuple(_resolve(instruction, tags) for instruction in instructions)


def _resolve(instruction: Instruction, tags: dict[int, int]) -> Instruction:
    if instruction.code not in JUMPS:
        return instruction
    tag = instruction.operands[0].value
    if tag not in tags:
        raise ScriptError(Err.BAD_TAG, f"no tag {tag}")
    target = Operand(From.NUMBER, tags[tag])
    return replace(instruction, operands=(target,))

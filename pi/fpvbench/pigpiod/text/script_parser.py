"""pigpio's script language: text -> instructions (cmdParseScript in command.c)."""

from dataclasses import dataclass, replace

from fpvbench.pigpiod.protocol import CommandError, Err
from fpvbench.pigpiod.text.command_words import (
    NAME,
    WORD,
    WORDS,
    Op,
    Operand,
    OperandSource,
    Scanner,
    operand_of,
)

TAGS_MAX = 50
JUMPS = frozenset((Op.CALL, Op.JMP, Op.JZ, Op.JNZ, Op.JP, Op.JM))


@dataclass(frozen=True, slots=True)
class Instruction:
    """Command of the socket protocol, or an Op, with up to three operands."""

    code: int
    operands: tuple[Operand, ...] = ()
    text: str = ""


def _instruction(scanner: Scanner) -> Instruction:
    match = scanner.take(WORD)
    word = match[1] if match else ""
    if word.upper() not in WORDS:
        raise CommandError(Err.BAD_SCRIPT_CMD, f"{word!r} is not a script command")
    code, shape = WORDS[word.upper()]
    if shape == "w":
        name = scanner.take(NAME)
        if name is None:
            raise CommandError(Err.BAD_SCRIPT_CMD, f"{word} needs a name")
        return Instruction(code, (), name[1])
    operands = tuple(operand_of(scanner, kind) for kind in shape)
    if any(operand.source is OperandSource.NONE for operand in operands):
        raise CommandError(Err.BAD_SCRIPT_CMD, f"bad operand of {word}")
    return Instruction(code, operands)


def parse(source: bytes) -> tuple[Instruction, ...]:
    """Parse a script; each jump holds the index of its target. Raises CommandError.

    Text ends at a NUL. The first error in the text counts; jumps without a tag come last.
    """
    scanner = Scanner(source.split(b"\0", 1)[0].decode("latin-1"))
    instructions: list[Instruction] = []
    tags: dict[int, int] = {}
    while scanner.at < len(scanner.text):
        instruction = _instruction(scanner)
        if instruction.code != Op.TAG:
            instructions.append(instruction)
            continue
        tag = instruction.operands[0].value
        if len(tags) >= TAGS_MAX:
            raise CommandError(Err.TOO_MANY_TAGS, f"more than {TAGS_MAX} tags")
        if tag in tags:
            raise CommandError(Err.DUP_TAG, f"tag {tag} exists already")
        tags[tag] = len(instructions)
    return tuple(_resolve(instruction, tags) for instruction in instructions)


def _resolve(instruction: Instruction, tags: dict[int, int]) -> Instruction:
    if instruction.code not in JUMPS:
        return instruction
    tag = instruction.operands[0].value
    if tag not in tags:
        raise CommandError(Err.BAD_TAG, f"no tag {tag}")
    target = Operand(OperandSource.NUMBER, tags[tag])
    return replace(instruction, operands=(target,))

"""Lines of the command pipe: text -> commands, results -> text (cmdParse in command.c,
pthFifoThread in pigpio.c)."""

import struct
from collections.abc import Iterator

from fpvbench.pigpiod.protocol import Cmd, CommandError, Err, Request, signed
from fpvbench.pigpiod.text.command_words import (
    NAME,
    PARAMETERS,
    PIPE_WORDS,
    WORD,
    OperandSource,
    Scanner,
    operand_of,
)

BYTES_MAX, BLOCK_MAX = 512, 32
HEX = frozenset((Cmd.BR1, Cmd.BR2))
UNSIGNED = frozenset((Cmd.CGI, Cmd.HWVER, Cmd.PIGPV, Cmd.TICK))
LISTS = frozenset(
    (
        Cmd.BI2CZ,
        Cmd.BSPIX,
        Cmd.CF2,
        Cmd.FL,
        Cmd.FR,
        Cmd.I2CPK,
        Cmd.I2CRD,
        Cmd.I2CRI,
        Cmd.I2CRK,
        Cmd.I2CZ,
        Cmd.SERR,
        Cmd.SLR,
        Cmd.SPIR,
        Cmd.SPIX,
    )
)
"""Commands answered with the result, then each byte that was read."""
MEANINGS = {
    "n": "number",
    "u": "number",
    "l": "number",
    "L": "number",
    "r": "number",
    "m": "RW540123",
    "p": "ODU",
    "w": "name",
    "*": "[number...]",
    "3": "on off micros...",
    "b": "byte...",
    "B": "byte...",
    "t": "text",
}


def commands(line: str) -> Iterator[Request]:
    """Parse the commands of a line, one after the other. Raises CommandError; the caller drops
    the rest of the line."""
    scanner = Scanner(line.split("\0", 1)[0])
    while scanner.at < len(scanner.text):
        yield _command(scanner)


def answer(request: Request, outcome: int | bytes) -> str:
    """Format a command's result as the pipe does."""
    if request.cmd == Cmd.HELP:
        return usage()
    if request.cmd == Cmd.BSCX:
        return ""  # pigpio has no case for it
    if isinstance(outcome, int):
        result, payload = outcome, b""
    else:
        result, payload = len(outcome), outcome
    if request.cmd in HEX:
        return f"{result & 0xFFFFFFFF:08X}\n"
    if request.cmd in UNSIGNED:
        return f"{result & 0xFFFFFFFF}\n"
    if request.cmd == Cmd.PROCP and payload:
        return " ".join(map(str, struct.unpack(f"<{1 + PARAMETERS}i", payload))) + "\n"
    numbers = payload if request.cmd in LISTS else b""
    return " ".join(map(str, (signed(result), *numbers))) + "\n"


def usage() -> str:
    """List the commands and their operands, for HELP."""
    lines = []
    for name in sorted(PIPE_WORDS):
        code, shape = PIPE_WORDS[name]
        if code in Cmd.__members__.values():
            operands = " ".join(MEANINGS[kind] for kind in shape.rstrip("?"))
            lines.append(f"{name} {operands}".rstrip())
    return "\n".join(lines) + "\n"


def _bad(detail: str) -> CommandError:
    return CommandError(Err.BAD_FIFO_COMMAND, detail)


def _command(scanner: Scanner) -> Request:
    match = scanner.take(WORD)
    name = match[1].upper() if match else ""
    if name not in PIPE_WORDS:
        raise _bad(name)
    code, shape = PIPE_WORDS[name]
    optional = shape.endswith("?")
    numbers: list[int] = []
    texts: list[bytes] = []
    for kind in shape.rstrip("?"):
        if kind in "nulLrmp":
            operand = operand_of(scanner, kind)
            if operand.source is OperandSource.NONE and not (optional and code != Cmd.BSCX):
                raise _bad(f"{name} {kind}")
            if shape == "LLB" and operand.value > 0xFF and numbers:
                raise _bad(f"{name}: register {operand.value}")
            numbers.append(operand.value)
        else:
            texts.append(_text(scanner, kind, optional))
    return _request(code, shape, numbers, texts)


def _request(code: int, shape: str, numbers: list[int], texts: list[bytes]) -> Request:
    """Build the request that the socket would carry: two numbers, words, bytes."""
    if shape == "wt":
        return Request(code, len(texts[0]), 0, b"\0".join(texts))
    size = 1 if shape == "uLLLLl" else 2
    p1, p2 = (*numbers[:size], 0, 0)[:2]
    words = b"".join(number.to_bytes(4, "little") for number in numbers[size:])
    return Request(code, p1, p2, words + b"".join(texts))


def _text(scanner: Scanner, kind: str, optional: bool) -> bytes:
    """Read a name, the rest of the line, numbers as words, or bytes."""
    if kind == "t":
        start, scanner.at = scanner.at, len(scanner.text)
        return scanner.text[start:].encode("latin-1")
    if kind == "w":
        match = scanner.take(NAME)
        if match is None:
            raise _bad(kind)
        return match[1].encode("latin-1")
    if kind in "*3":
        words = _numbers(scanner, PARAMETERS if kind == "*" else BYTES_MAX)
        if kind == "3" and (not words or len(words) % 3):
            raise _bad(kind)
        return b"".join(word.to_bytes(4, "little") for word in words)
    data = _numbers(scanner, BLOCK_MAX if kind == "B" else BYTES_MAX, largest=0xFF)
    if not data and not optional:
        raise _bad(kind)
    return bytes(data)


def _numbers(scanner: Scanner, most: int, largest: int = 0xFFFFFFFF) -> list[int]:
    """Read up to `most` numbers; stop before a non-number or a number above `largest`."""
    out: list[int] = []
    while len(out) < most:
        start = scanner.at
        operand = operand_of(scanner, "l")
        if operand.source is OperandSource.NONE or operand.value > largest:
            scanner.at = start
            break
        out.append(operand.value)
    return out

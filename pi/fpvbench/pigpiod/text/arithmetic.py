"""Arithmetic of script instructions: C arithmetic on 32 bits, as on an ARM."""

import operator
from collections.abc import Callable

from fpvbench.pigpiod.text.command_words import Op


class ScriptFault(Exception):
    """Raised to stop a script whose stack is empty or full, or that divides by zero."""


def divide(a: int, b: int) -> int:
    """Divide, rounding towards zero. Raises ScriptFault if b is 0."""
    if b == 0:
        # A real daemon dies of SIGFPE here (libgcc's __aeabi_idiv0).
        raise ScriptFault("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shift_left(a: int, b: int) -> int:
    """Shift a left by the low byte of b."""
    return a << (b & 0xFF) if b & 0xFF < 32 else 0


def shift_right(a: int, b: int) -> int:
    """Shift a right by the low byte of b; keep the sign."""
    return a >> min(b & 0xFF, 31)


ARITHMETIC: dict[int, Callable[[int, int], int]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MLT: operator.mul,
    Op.DIV: divide,
    Op.MOD: lambda a, b: a - b * divide(a, b),
    Op.AND: operator.and_,
    Op.OR: operator.or_,
    Op.XOR: operator.xor,
    Op.RLA: shift_left,
    Op.RRA: shift_right,
}

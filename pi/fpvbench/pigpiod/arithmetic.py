"""Arithmetic of script instructions: C's, on 32 bits, as an ARM does it."""

import operator
from collections.abc import Callable

from fpvbench.pigpiod.command_words import Op


class ScriptFault(Exception):
    """Stops a script: its stack is empty or full, or it divides by zero."""


def divide(a: int, b: int) -> int:
    """Divides towards zero. Raises ScriptFault where b is 0."""
    if b == 0:
        # A real daemon dies of SIGFPE here (libgcc's __aeabi_idiv0).
        raise ScriptFault("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shift_left(a: int, b: int) -> int:
    """Shifts a left by the low byte of b."""
    return a << (b & 0xFF) if b & 0xFF < 32 else 0


def shift_right(a: int, b: int) -> int:
    """Shifts a right by the low byte of b; keeps the sign."""
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

"""Numeric command-line arguments with bounds; a refusal states the bounds."""

import argparse
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", int, float)


def within(kind: Callable[[str], T], least: T, most: T) -> Callable[[str], T]:
    """Return a type for argparse that accepts numbers from `least` to `most`."""

    def number(text: str) -> T:
        refused = argparse.ArgumentTypeError(f"{text} refused: expected {least:g} to {most:g}")
        try:
            value = kind(text)
        except ValueError:
            raise refused from None
        if not least <= value <= most:
            raise refused
        return value

    return number

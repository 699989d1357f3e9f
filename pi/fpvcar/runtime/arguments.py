"""Shared by all command lines: numbers with bounds, and the level of the log."""

import argparse
import logging
import os
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", int, float)
QUIET = "FPVCAR_QUIET"
"""Environment variable of the bench's parts: not empty without `-v`."""


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


def log_level() -> int:
    """Return the lowest level to log: INFO, or WARNING for a part of a quiet bench."""
    return logging.WARNING if os.environ.get(QUIET) else logging.INFO

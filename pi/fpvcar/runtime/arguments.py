"""Shared by all command lines: numbers with bounds, options of tunnels, the level of the log."""

import argparse
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T", int, float)
QUIET = "FPVCAR_QUIET"
"""Environment variable of the bench's parts: not empty without `-v`."""
WIREGUARD_PORT = 51820


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


def add_tunnel_options(
    verb: argparse.ArgumentParser, site: str, port_text: str, required: bool = True
) -> None:
    """Add the options of a verb that writes a tunnel's files; `site` names the listening end."""
    verb.add_argument(
        "--endpoint", required=required, metavar="HOST", help=f"name or address of the {site}"
    )
    verb.add_argument(
        "--port", type=within(int, 1, 65535), help=f"port at the {site} (default: {port_text})"
    )
    verb.add_argument(
        "--network",
        metavar="NET",
        help="private addresses in the tunnel, like 10.99.3.0/24 (default: chosen by its name)",
    )
    verb.add_argument(
        "--to",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder to write tunnel-NAME into (default: this one)",
    )
    verb.add_argument(
        "--force", action="store_true", help="replace an earlier configuration, with new keys"
    )

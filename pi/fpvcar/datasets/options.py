"""Options of the verbs that export a dataset."""

import argparse
import re
from pathlib import Path

from fpvcar.runtime.arguments import within

SIZE = re.compile(r"(\d{1,4})x(\d{1,4})")
PIXELS_LEAST, PIXELS_MOST = 16, 4096


def add_to(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add the options to a verb."""
    kinds = parser.add_mutually_exclusive_group(required=required)
    kinds.add_argument(
        "--lerobot", type=Path, metavar="DIR", help="write a new LeRobot dataset, version 3.0"
    )
    kinds.add_argument("--donkey", type=Path, metavar="DIR", help="write a new Donkeycar tub")
    group = parser.add_argument_group("datasets")
    group.add_argument(
        "--fps",
        type=within(int, 1, 240),
        default=0,
        metavar="N",
        help="rows per second (default: the camera's frames per second)",
    )
    group.add_argument(
        "--size",
        type=_size,
        metavar="WxH",
        help="scale the pictures (default: as recorded; a tub: 160x120)",
    )
    group.add_argument(
        "--copy",
        action="store_true",
        help="copy the video of each episode whose frames come one per row, which is much "
        "faster; the others are encoded. Frame access in training is slower",
    )
    group.add_argument(
        "--marks",
        action="store_true",
        help="begin an episode at each mark, with its text as the task, instead of one at each "
        "change of driver",
    )
    group.add_argument("--task", default="", metavar="TEXT", help="task of all episodes")
    group.add_argument(
        "--least",
        type=within(float, 0.1, 3600.0),
        default=1.0,
        metavar="S",
        help="leave out episodes shorter than this (default: %(default)g s)",
    )
    group.add_argument(
        "--partial",
        action="store_true",
        help="exit with 0, not 3, if recorded data is missing in DIR",
    )


def _size(text: str) -> tuple[int, int]:
    """Parse an even width and height."""
    match = SIZE.fullmatch(text)
    sides = [int(side) for side in match.groups()] if match else []
    if not sides or any(not PIXELS_LEAST <= side <= PIXELS_MOST or side % 2 for side in sides):
        raise argparse.ArgumentTypeError(
            f"{text} refused: expected even numbers, {PIXELS_LEAST} to {PIXELS_MOST}: 160x120"
        )
    return sides[0], sides[1]


def export(program: str, arguments: argparse.Namespace, paths: list[Path]) -> int:
    """Export the recordings as a dataset; return the exit status. Raises OSError."""
    # Not above: a command line loads no exports.
    from fpvcar.datasets import export
    from fpvcar.datasets.grid import Size

    settings = export.Settings(
        kind="donkey" if arguments.donkey else "lerobot",
        fps=arguments.fps,
        size=Size(*arguments.size) if arguments.size else None,
        copy=arguments.copy,
        marks=arguments.marks,
        task=arguments.task,
        least_s=arguments.least,
    )
    out = arguments.donkey or arguments.lerobot
    return export.run(program, settings, out, paths, arguments.partial)

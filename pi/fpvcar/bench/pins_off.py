"""python -m fpvcar.bench.pins_off: the bench's root helper, one process a request.

It does what devices/linux/pins_off.py does on a Pi, and ends.
"""

import argparse
from pathlib import Path

from fpvcar.bench import soc as chip
from fpvcar.bench.units import let_go


def main() -> None:
    """Lets go of the pins; the supervisor then restarts pigpiod."""
    parser = argparse.ArgumentParser("python -m fpvcar.bench.pins_off")
    parser.add_argument("--soc", type=Path, required=True)
    parser.add_argument("pins", nargs="+", type=int, metavar="GPIO")
    given = parser.parse_args()
    let_go(chip.attach(given.soc), given.pins)


if __name__ == "__main__":
    main()

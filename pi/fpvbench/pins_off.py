"""python -m fpvbench.pins_off: the bench's root helper, one process per request.

It emulates devices/linux/pins_off.py on a Pi, and exits.
"""

import argparse
from pathlib import Path

from fpvbench import soc as chip
from fpvbench.units import let_go
from fpvcar.devices.linux import pins_off


def main() -> None:
    """Release the pins; the supervisor then restarts pigpiod."""
    parser = argparse.ArgumentParser("python -m fpvbench.pins_off")
    parser.add_argument("--soc", type=Path, required=True)
    parser.add_argument("stops", nargs="*", metavar="WORD", help="as in motor-pins")
    options = parser.parse_args()
    pins, chips, _ = pins_off.parse(" ".join(options.stops))
    let_go(chip.attach(options.soc), pins, chips)


if __name__ == "__main__":
    main()

"""Draws hardware/pictures/NAME.svg for each profile that ships: `make docs`."""

import sys

from fpvcar.cli.profile import shipped
from fpvcar.config import profiles
from fpvcar.runtime import paths
from fpvcar.wiring import drawing, parts

PICTURES = paths.HARDWARE / "pictures"


def drawings() -> dict[str, str]:
    """Name of a profile -> its drawing."""
    return {
        name: drawing.svg(parts.plan_of(profiles.load(path), name))
        for name, path in shipped().items()
    }


def main() -> int:
    """Writes them all."""
    PICTURES.mkdir(exist_ok=True)
    for name, text in drawings().items():
        (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

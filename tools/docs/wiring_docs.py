"""Generator of hardware/pictures/NAME.svg for each shipped profile: `make docs`."""

import sys

from fpvcar.cli.profile import shipped
from fpvcar.config import profiles
from fpvcar.runtime import paths
from fpvcar.wiring import drawing, parts

PICTURES = paths.HARDWARE / "pictures"


def drawings() -> dict[str, str]:
    """Return name -> drawing for all shipped profiles."""
    return {
        name: drawing.svg(parts.plan_of(profiles.load(path), name))
        for name, path in shipped().items()
    }


def main() -> int:
    """Write the drawings of all profiles."""
    PICTURES.mkdir(exist_ok=True)
    for name, text in drawings().items():
        (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Generator of hardware/pictures/NAME/, the drawings of each shipped profile: `make docs`."""

import shutil
import sys
from pathlib import Path

from fpvcar.cli.profile import heading, shipped
from fpvcar.config import profiles
from fpvcar.runtime import paths
from fpvcar.wiring import drawing, parts

PICTURES = paths.HARDWARE / "pictures"
PAGE = "README.md"
WIDTH = 390


def files(name: str) -> dict[str, str]:
    """Return file name -> text of a profile's folder: its drawings, and a page that shows them."""
    path = shipped()[name]
    sheets = drawing.sheets(parts.plan_of(profiles.load(path), name))
    images = (f'<img src="{stem}.svg" width="{WIDTH}" alt="{stem}">' for stem in sheets)
    page = [
        f"# {name}",
        "",
        f"<!-- Written by `make docs` from hardware/{path.name}. -->",
        "",
        f"{heading(path)}. [Legend](../../README.md#which-wire-goes-where).",
        "",
        *images,
    ]
    drawn = {f"{stem}.svg": text for stem, text in sheets.items()}
    return {PAGE: "\n".join(page) + "\n", **drawn}


def write(folder: Path) -> None:
    """Write the drawings of all profiles, and remove older ones."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in shipped():
        (folder / name).mkdir(parents=True)
        for file, text in files(name).items():
            (folder / name / file).write_text(text, encoding="utf-8")


def main() -> int:
    write(PICTURES)
    return 0


if __name__ == "__main__":
    sys.exit(main())

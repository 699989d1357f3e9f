"""Writes docs/doctor.md from the findings that `fpvcar doctor` may have: `make docs`.

doctor/checks/*.py: each Kind, below the symptom that somebody notices first
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from fpvcar.doctor import checks
from fpvcar.doctor.report import WORSE, Kind, Symptom

PAGE = Path(__file__).resolve().parent.parent / "docs" / "doctor.md"
HEAD = """\
# When something does not work

<!-- Written by `make docs` from pi/fpvcar/doctor/checks/: change these. -->

    sudo fpvcar doctor                              # needs a Pi

looks at the whole car and says what is wrong, why that matters, and the line that
mends it; the worst comes first. Nothing moves: the dead man is proved by feeding him,
and then not, while the motors stand. Without `sudo` it sees less, and says so: what
could not be asked is never called well. On the page a grown-up has the same list while
the car stands: the menu, *Look for faults*.

While the car runs its dead man is its own: one beside it, over no pins, shows that the
machine does what such a one needs. The whole proof takes the car out of service:

    sudo systemctl stop fpvcar-wheels               # needs a Pi
    sudo fpvcar doctor                              # needs a Pi
    sudo systemctl start fpvcar-wheels              # needs a Pi

| option | what it does |
|---|---|
| `--json` | the same for programs |
| `--move` | turns each motor both ways: with the wheels in the air, and after `sudo \
systemctl stop fpvcar-wheels`. Whether a wheel went round only you can see |
| `--root DIR` | a card that is not booted: its files |
| `--profile FILE` | another car than that in `/etc/fpvcar/car.toml` |
| `--port N` | where `fpvcar run` listens, if not at 8080 |

Its exit status is 0 where there is nothing worse than a note, 3 for a warning, 4 for a
fault. None of it has met metal yet: it was tried on played machines that are ill in
each of these ways, and on the bench.

What the program says elsewhere, on the page or in its log, is in
[troubleshooting](troubleshooting.md).
"""
TABLE = "| doctor says | why it matters | what mends it |\n|---|---|---|"


def cell(words: str) -> str:
    """A text with "..." where a value will be."""
    return re.sub(r"\{[^}]*\}", "...", words).replace("|", "\\|")


def row(kind: Kind) -> str:
    """One line of a table."""
    cells = (f"**{kind.severity}**: {cell(kind.what)}", cell(kind.why), cell(kind.mend))
    return f"| {' | '.join(cells)} |"


def sections() -> Iterator[str]:
    """A table for each symptom, the worst first."""
    for symptom in get_args(Symptom):
        found = [one for one in checks.kinds() if one.symptom == symptom]
        found.sort(key=lambda one: -WORSE.index(one.severity))
        yield f"## {symptom}\n"
        yield "\n".join([TABLE, *map(row, found)]) + "\n"


def page() -> str:
    """The whole of docs/doctor.md."""
    return "\n".join([HEAD, *sections()])


def main() -> int:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

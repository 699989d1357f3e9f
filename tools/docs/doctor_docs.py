"""Generator of the tables of findings in docs/troubleshooting.md: `make docs`.

doctor/checks/*.py: each Kind, below the symptom that a user notices first
"""

import re
import sys
from pathlib import Path
from typing import get_args

from tools.docs.written import filled

from fpvcar.doctor import checks
from fpvcar.doctor.report import WORSE, Kind, Symptom

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
TABLE = "| finding | why it matters | remedy |\n|---|---|---|"


def cell(text: str) -> str:
    """Return a text with "..." in place of each value."""
    return re.sub(r"\{[^}]*\}\.?", "...", text).replace("|", "\\|")


def row(kind: Kind) -> str:
    """Return a kind of finding as a table row."""
    cells = (f"**{kind.severity}**: {cell(kind.what)}", cell(kind.why), cell(kind.mend))
    return f"| {' | '.join(cells)} |"


def table(symptom: str) -> str:
    """Return the table of a symptom's findings, the worst first."""
    kinds = [kind for kind in checks.kinds() if kind.symptom == symptom]
    kinds.sort(key=lambda kind: -WORSE.index(kind.severity))
    return "\n".join([TABLE, *map(row, kinds)])


def page() -> str:
    """Return the full text of docs/troubleshooting.md."""
    tables = {f"doctor, {symptom}": table(symptom) for symptom in get_args(Symptom)}
    return filled(PAGE.read_text(encoding="utf-8"), tables)


def main() -> int:
    """Write docs/troubleshooting.md, up to date."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

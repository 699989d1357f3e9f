"""Verb `fpvcar wiring`: connections of all wires in a profile's car."""

import sys
from pathlib import Path

from fpvcar.cli.profile import shipped
from fpvcar.config import profiles
from fpvcar.wiring import drawing, parts, tables

FORMS = {"drawing": drawing.svg, "pins": tables.pins, "table": tables.wires}


def run(name: str, form: str, out: Path | None) -> int:
    """Write one of FORMS; return the exit status. Raises ConfigError, OSError."""
    path = shipped().get(name, Path(name))
    text = FORMS[form](parts.plan_of(profiles.load(path), path.stem))
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        print(f"wrote {out}", file=sys.stderr)
    return 0

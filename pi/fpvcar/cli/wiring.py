"""Verb `fpvcar wiring`: connections of all wires in a profile's car."""

import sys
from pathlib import Path

from fpvcar.cli.profile import shipped
from fpvcar.config import ConfigError, profiles
from fpvcar.wiring import drawing, parts, tables

TABLES = {"pins": tables.pins, "table": tables.wires}


def run(name: str, form: str, sheet: str, out: Path | None) -> int:
    """Write a table, a sheet, or all sheets into a folder; return the exit status. Raises
    ConfigError, OSError."""
    path = shipped().get(name, Path(name))
    plan = parts.plan_of(profiles.load(path), path.stem)
    sheets = {} if form in TABLES else drawing.sheets(plan)
    if sheets and out is not None and not out.suffix:
        out.mkdir(exist_ok=True)
        files = {out / f"{name}.svg": text for name, text in sheets.items()}
    elif sheets and sheet not in sheets:
        raise ConfigError(f"no sheet {sheet!r}: the sheets are {', '.join(sheets)}")
    else:
        text = sheets[sheet] if sheets else TABLES[form](plan)
        if out is None:
            sys.stdout.write(text)
            return 0
        files = {out: text}
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
        print(f"wrote {file}", file=sys.stderr)
    return 0

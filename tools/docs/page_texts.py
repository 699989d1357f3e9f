"""Generator of web/lang/en/findings.json and tests/web/lang/sent.json, texts that the car sends by
key: `make docs`.

A page in English shows the car's own text; these files are the model of the translations.
"""

import ast
import json
import re
import string
import sys
from pathlib import Path
from typing import Any

from fpvcar.doctor import checks
from fpvcar.runtime.texts import VERBATIM

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.compile(r"sudo [^,(;]+(; sudo [^,(;]+)*")
"""Remedy without words, the same in all languages."""
FINDINGS = ROOT / "web" / "lang" / "en" / "findings.json"
DRAWER = ROOT / "web" / "lang" / "en" / "drawer.json"
SOURCES = ("pi", "base-station")
SENT = ROOT / "tests" / "web" / "lang" / "sent.json"


def template(text: str) -> str:
    """Return a text whose placeholders have no format."""
    pieces = string.Formatter().parse(text)
    return "".join(before + (f"{{{name}}}" if name else "") for before, name, _, _ in pieces)


def findings() -> str:
    """Return the texts of doctor's findings, and the names of the parts that it checks: a line
    for each."""
    kinds = {}
    for kind in checks.kinds():
        texts = {"what": kind.what, "why": kind.why}
        texts |= {} if COMMANDS.fullmatch(kind.mend) else {"mend": kind.mend}
        kinds[kind.key] = {key: template(text) for key, text in texts.items()}
    groups: dict[str, dict[str, Any]] = {
        "parts": {part: part for part, _ in checks.PARTS},
        "kinds": kinds,
    }
    lines = ",\n".join(
        f'    "{name}": {{\n'
        + ",\n".join(
            f'      "{key}": {json.dumps(one, ensure_ascii=False)}' for key, one in group.items()
        )
        + "\n    }"
        for name, group in groups.items()
    )
    return f'{{\n  "findings": {{\n{lines}\n  }}\n}}\n'


def texts() -> dict[str, set[str]]:
    """Return the English of each key in the source: calls of Text and Phrase."""
    found = dict[str, set[str]]()
    for path in (path for name in SOURCES for path in (ROOT / name).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or len(call.args) < 2:
                continue
            key, english, *_ = call.args
            if ast.unparse(call.func) not in ("Text", "Phrase"):
                continue
            if isinstance(key, ast.Constant) and isinstance(english, ast.Constant):
                found.setdefault(str(key.value), set()).add(str(english.value))
    return found


def sent_texts() -> str:
    """Return the English template of each key that car and station send in a Text."""
    elsewhere = {VERBATIM.key, *json.loads(DRAWER.read_bytes())["faults"]}
    english = {"status": "error {status}"}  # web/lib/http.js: of an answer without a text
    english |= {key: max(all_of_it) for key, all_of_it in texts().items() if key not in elsewhere}
    return json.dumps(dict(sorted(english.items())), ensure_ascii=False, indent=1) + "\n"


def main() -> int:
    """Write the files, up to date."""
    FINDINGS.write_text(findings(), encoding="utf-8")
    SENT.write_text(sent_texts(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

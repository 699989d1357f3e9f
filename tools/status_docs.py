"""Writes docs/status.md from docs/status.json, the last report that was kept: `make
docs`.

To keep a newer one: fpvcar hil --report DIR, then DIR/report.json as docs/status.json.
"""

import sys
from pathlib import Path

from fpvcar.hil import results, status

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, REPORT = DOCS / "status.md", DOCS / "status.json"


def page() -> str:
    """The whole of docs/status.md."""
    return status.page(results.from_json(REPORT.read_bytes()))


def main() -> int:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Generator of docs/reference/status.md from status.json, the last stored report: `make docs`.

To store a newer report: fpvcar hil --report DIR, then copy DIR/report.json to status.json there.
"""

import sys
from pathlib import Path

from fpvcar.hil import results, status

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE, REPORT = DOCS / "status.md", DOCS / "status.json"


def page() -> str:
    """Return the full text of docs/reference/status.md."""
    return status.page(results.from_json(REPORT.read_bytes()))


def main() -> int:
    """Write docs/reference/status.md, up to date."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

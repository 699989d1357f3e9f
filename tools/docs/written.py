"""Generated parts of hand-written pages: `make docs`. The text between

<!-- make docs: KEY --> <!-- end -->

is replaced; the rest is written by hand.
"""

import re
from collections.abc import Mapping

PART = re.compile(r"(<!-- make docs: (.+?) -->\n).*?(<!-- end -->\n)", re.S)


def filled(text: str, parts: Mapping[str, str]) -> str:
    """Return the page with each part replaced. Raises ValueError unless the page has each part
    exactly once, and no other."""
    found_parts = sorted(key for _, key, _ in PART.findall(text))
    if found_parts != sorted(parts):
        raise ValueError(f"the page has the parts {found_parts}, not {sorted(parts)}")
    return PART.sub(lambda part: f"{part[1]}\n{parts[part[2]].rstrip()}\n\n{part[3]}", text)

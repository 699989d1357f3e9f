"""Parts of a page that a program writes: `make docs`. What stands between

<!-- make docs: KEY -->
<!-- end -->

is replaced; the rest is written by hand.
"""

import re
from collections.abc import Mapping

PART = re.compile(r"(<!-- make docs: (.+?) -->\n).*?(<!-- end -->\n)", re.S)


def filled(text: str, parts: Mapping[str, str]) -> str:
    """The page with each part as it is now. Raises ValueError unless the page has
    each of them once, and no other."""
    there = sorted(key for _, key, _ in PART.findall(text))
    if there != sorted(parts):
        raise ValueError(f"the page has the parts {there}, not {sorted(parts)}")
    return PART.sub(lambda part: f"{part[1]}\n{parts[part[2]].rstrip()}\n\n{part[3]}", text)

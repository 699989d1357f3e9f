"""Overlaps on a page by geometry: controls and words, as rectangles."""

from pathlib import Path

from playwright.sync_api import Page

FAULTS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def faults(page: Page) -> list[str]:
    """Return controls and words that overlap, are cut, hidden below others, or too small."""
    found: list[str] = page.evaluate(FAULTS)
    return found

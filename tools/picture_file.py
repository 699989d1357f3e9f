"""File of a page's screenshot: few colours, and the page's texts for detecting a stale picture.

says    beside the pixels: each visible heading, button and label whose text is literally in
        the pages' sources
"""

import io
from functools import cache
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import Page

WEB = Path(__file__).resolve().parent.parent / "web"
COLOURS = 256
KEY = "says"
SEEN = """
  [...document.querySelectorAll('h1, h2, h3, h4, button, .button, summary, label')]
    .filter((one) => one.checkVisibility()).map((one) => one.innerText.trim())"""


@cache
def sources() -> str:
    """Return the sources of all pages in English: a superset of their texts."""
    languages = WEB / "lang"
    return "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted(WEB.rglob("*.js"))
        if languages not in path.parents or path.parent == languages / "en"
    )


def write(page: Page, path: Path, taken: bytes = b"") -> None:
    """Write the current screenshot, or the given one, at a fifth of its size in bytes."""
    picture = Image.open(io.BytesIO(taken or page.screenshot())).convert("RGB")
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE)  # rare colours stay
    said = sorted({one for one in page.evaluate(SEEN) if one and one in sources()})
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt(KEY, "\n".join(said))
    few.save(path, optimize=True, pnginfo=notes)


def says(path: Path) -> list[str]:
    """Return the texts that are stored with the picture."""
    with Image.open(path) as picture:
        return str(picture.info[KEY]).splitlines()


def stale(path: Path) -> list[str]:
    """Return the texts in the picture that no page contains any more."""
    return [one for one in says(path) if one not in sources()]

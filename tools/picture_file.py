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
        path.read_text(encoding="utf-8").replace('\\"', '"')
        for path in sorted(WEB.rglob("*.js*"))
        if languages not in path.parents or path.parent == languages / "en"
    )


def write(page: Page, path: Path, screenshot: bytes = b"") -> None:
    """Write the current screenshot, or the given one, at a fifth of its size in bytes."""
    picture = Image.open(io.BytesIO(screenshot or page.screenshot())).convert("RGB")
    paletted = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE)  # rare colours stay
    texts = sorted({text for text in page.evaluate(SEEN) if text and text in sources()})
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt(KEY, "\n".join(texts))
    paletted.save(path, optimize=True, pnginfo=notes)


def says(path: Path) -> list[str]:
    """Return the texts that are stored with the picture."""
    with Image.open(path) as picture:
        return str(picture.info[KEY]).splitlines()


def stale(path: Path) -> list[str]:
    """Return the texts in the picture that no page contains any more."""
    return [text for text in says(path) if text not in sources()]

"""A picture of a page as a file: few colours, and the words by which it is found stale.

says    beside the pixels: each heading, button and label that was to be seen and that
        the pages' sources have word for word
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
    """All that the pages can say in English, and more."""
    languages = WEB / "lang"
    return "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted(WEB.rglob("*.js"))
        if languages not in path.parents or path.parent == languages / "en"
    )


def write(page: Page, path: Path, taken: bytes = b"") -> None:
    """What the page shows, or showed, a fifth as large as it was."""
    picture = Image.open(io.BytesIO(taken or page.screenshot())).convert("RGB")
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE)  # rare colours stay
    said = sorted({one for one in page.evaluate(SEEN) if one and one in sources()})
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt(KEY, "\n".join(said))
    few.save(path, optimize=True, pnginfo=notes)


def says(path: Path) -> list[str]:
    """The words beside the pixels."""
    with Image.open(path) as picture:
        return str(picture.info[KEY]).splitlines()


def stale(path: Path) -> list[str]:
    """What it shows that no page says any more."""
    return [one for one in says(path) if one not in sources()]

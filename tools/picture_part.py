"""Part of a page that a picture shows: no element is cut."""

from playwright.sync_api import FloatRect, Page

SCROLL = """(part, by) => {
  let box = part.parentElement;
  while (box !== document.body && box.scrollHeight <= box.clientHeight) box = box.parentElement;
  (box === document.body ? document.scrollingElement : box).scrollBy(0, by);
}"""
CUT = """() => {
  const parts = [...document.querySelectorAll(
    'button, input, select, li, p, h1, h2, h3, h4, dd, summary, canvas, img, svg')];
  const scrolls = (box) => box.scrollHeight > box.clientHeight + 1 && (
    box === document.scrollingElement || /auto|scroll/.test(getComputedStyle(box).overflowY));
  const scroller = (box) => !box || scrolls(box) ? box : scroller(box.parentElement);
  const shown = parts.filter((part) => part.offsetHeight !== 0 && scroller(part.parentElement));
  return shown.map((part) => {
    const {left, top, right, bottom} = part.getBoundingClientRect();
    const seen = (y) => part.contains(document.elementFromPoint((left + right) / 2, y));
    let covered = 2;
    while (top + covered < bottom && !seen(top + covered)) covered += 2;
    const cut = covered > 2 !== !seen(bottom - 2) && bottom - top < innerHeight / 2;
    return {top, covered: covered > 2 ? covered : 0, cut};
  }).filter(({cut}) => cut);
}"""
"""Elements that are scrolled half off the screen or below a bar; `covered`: pixels of the top."""


def whole(page: Page) -> FloatRect:
    """Return the part of the screen above the elements that its lower end cuts."""
    size = page.viewport_size
    assert size is not None
    tops = [part["top"] for part in page.evaluate(CUT) if not part["covered"]]
    lower = [top - 2 for top in tops if top > size["height"] / 2]  # each is lower than that half
    return {"x": 0, "y": 0, "width": size["width"], "height": min([size["height"], *lower])}


def shown(page: Page, part: str) -> None:
    """Scroll this element to the top of the screen, and no element half under a bar there."""
    page.locator(part).evaluate("(one) => one.scrollIntoView({block: 'start'})")
    page.wait_for_timeout(300)
    covered = max((element["covered"] for element in page.evaluate(CUT)), default=0)
    page.locator(part).evaluate(SCROLL, -covered)
    page.wait_for_timeout(300)

"""Pictures of `make pictures`: the part of a page that is taken, and the moment."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tools import picture_part, pictures

pytestmark = pytest.mark.e2e
BAR = "<div style='position: sticky; top: 0; height: 40px; background: #fff'></div>"
COUNTING = """<div id=battery></div><script>
let share = 40;
setInterval(() => { battery.innerText = `${share = Math.min(share + 2, 70)}% · 7.7 V`; }, 150);
</script>"""


def button(height: int) -> str:
    return f"<button id=b{height} style='display: block; height: {height}px'>{height}</button>"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_page(viewport={"width": 300, "height": 400}) as page:
        yield page


def test_picture_ends_above_a_cut_element(page: Page) -> None:
    page.set_content(f"<body style='margin: 0'>{button(100)}{button(250)}{button(99)}")
    assert picture_part.whole(page) == {"x": 0, "y": 0, "width": 300, "height": 348}
    hidden = "<button style='display: none'></button><p></p>"
    over = "<div style='position: fixed; top: 300px; left: 0; width: 300px; height: 50px'></div>"
    page.set_content(f"<body style='margin: 0'>{hidden}{button(100)}{button(250)}{over}")
    assert picture_part.whole(page)["height"] == 400


def test_element_under_a_bar_is_scrolled_out(page: Page) -> None:
    above = "".join(button(height) for height in (60, 61))
    page.set_content(f"<body style='margin: 0'>{BAR}{above}{button(700)}")
    page.evaluate("scrollTo(0, 70)")
    assert page.evaluate(picture_part.CUT)[0]["covered"] > 0
    picture_part.shown(page, "#b61")
    assert not any(element["covered"] for element in page.evaluate(picture_part.CUT))


def test_picture_waits_until_the_charge_is_steady(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "STEADY_S", 1.5)
    page.set_content(COUNTING)
    page.wait_for_function("battery.innerText !== ''")
    pictures.settle(page)
    assert page.locator("#battery").inner_text() == "70% · 7.7 V"

"""Controls and words of the driver's seat never overlap, in any state, at any size of screen, in
both orientations."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.layout import faults
from testkit.browsers.played_car import SECURE, play, say
from testkit.browsers.seat import until
from testkit.browsers.seat_states import KEYS, LOOKS, STOPPED, TOUCH, show
from testkit.cameras.video_source import encode

LANGUAGES = ("de", "en", "es", "fi", "fr", "zh")
pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", params=["touch", "keys"])
def seat(
    request: pytest.FixtureRequest, browser: Browser
) -> Iterator[tuple[Page, dict[str, tuple[int, int]]]]:
    """A page on a phone or on a desk, and its sizes."""
    touch = request.param == "touch"
    context = browser.new_context(has_touch=touch, is_mobile=touch)
    page = play(context, encode(frames=10, gop=10, width=640, height=480, noise=8))
    yield page, TOUCH if touch else KEYS
    context.close()


def settled(page: Page) -> list[str]:
    """Return the faults once the page is laid out again, and again by its observers. Toasts are
    removed: they go by themselves, and take no pushes."""
    found: list[str] = []
    page.evaluate("document.getElementById('toasts').replaceChildren()")
    for _ in range(20):
        page.wait_for_timeout(100)
        if not (found := faults(page)):
            break
    return found


def states() -> Iterator[object]:
    """Yield every state on a phone, and on a desk; most of the latter only for `make soak`."""
    for kind in ("touch", "keys"):
        for number, name in enumerate(LOOKS):
            long = (kind == "keys" and number % 3) or name.startswith("two-cameras-")
            yield pytest.param(kind, name, marks=[pytest.mark.long] if long else [])


@pytest.mark.soak
@pytest.mark.parametrize(("seat", "name"), list(states()), indirect=["seat"])
def test_seat_controls_and_texts_never_overlap(
    seat: tuple[Page, dict[str, tuple[int, int]]], name: str, soaking: bool
) -> None:
    """`make soak` checks every size. Otherwise two phone sizes or one desk size are checked, and
    the next state checks others."""
    page, sizes = seat
    show(page, LOOKS[name])
    found = {}
    every = 1 if soaking else max(2, len(sizes) // 2)
    first = list(LOOKS).index(name) % every
    for size, (width, height) in list(sizes.items())[first::every]:
        page.set_viewport_size({"width": width, "height": height})
        found[size] = settled(page)
    assert not {size: wrong for size, wrong in found.items() if wrong}


EXTRAS = {"touch": ((390, 844), (844, 390)), "keys": ((1280, 720),)}
EXTRA_CONTROLS = ("#look", "#small-picture", "#talk")
"""Controls of a car with a second camera, an intercom, pan and tilt."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_second_camera_intercom_and_servos_crowd_no_screen_in_any_language(
    seat: tuple[Page, dict[str, tuple[int, int]]], language: str, request: pytest.FixtureRequest
) -> None:
    page, _ = seat
    wrong = {}
    page.goto(f"{SECURE}icon.svg")
    page.evaluate("(it) => localStorage.setItem('fpvcar.language', it)", language)
    try:
        for name in ("servos", "servos-fault", "servos-stopped"):
            show(page, LOOKS[name])
            if name == "servos-fault":
                until(page, "document.querySelectorAll('.toast').length === 1")
            for width, height in EXTRAS[request.node.callspec.params["seat"]]:
                page.set_viewport_size({"width": width, "height": height})
                found = settled(page)
                hidden = [one for one in EXTRA_CONTROLS if not page.locator(one).is_visible()]
                wrong[f"{name} {width}x{height}"] = [*found, *hidden]
                if folder := os.environ.get("FPVCAR_PICTURES"):
                    page.screenshot(path=f"{folder}/{name}-{language}-{width}x{height}.png")
    finally:
        page.evaluate("localStorage.removeItem('fpvcar.language')")
    assert not {at: faults for at, faults in wrong.items() if faults}


UNREACHED = """(selectors) => selectors.filter((selector) => {
  const element = document.querySelector(selector);
  const words = document.createRange();
  words.selectNodeContents(element);
  const {left, top, right, bottom} = words.getBoundingClientRect();
  const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return !element.checkVisibility({opacityProperty: true, visibilityProperty: true}) ||
    left < 0 || top < 0 || right > innerWidth || bottom > innerHeight ||
    !element.contains(at) && !at?.contains(element);
})"""
LONG_STOP = {"stop": {"cause": "direction", "clears": "resume", "by": ""}}
CARD = ("#card-title", "#card-text")
UNLOCK = "#unlock-form .primary"
BOTH = (*CARD, "#resume", "#asking-says", "#asking-give", "#asking-later")
LOW = {
    "asked-stopped": ("fi", BOTH),
    "help-asked-stopped": ("es", BOTH),
    "menu-asked-stopped": ("de", BOTH),
    "code-asked-stopped": ("fr", (*BOTH, UNLOCK)),
    "code-stopped": ("fr", (*CARD, "#resume", UNLOCK)),
    "watching": ("fr", CARD),
}
"""States on low screens: the language in `make test`, and the words and buttons in reach."""


@pytest.mark.soak
@pytest.mark.parametrize("seat", ["touch"], indirect=True)
@pytest.mark.parametrize("name", LOW)
def test_stop_and_request_are_both_in_reach_on_low_screens(
    seat: tuple[Page, dict[str, tuple[int, int]]], name: str, soaking: bool
) -> None:
    """`make soak` checks each state in all languages."""
    page, sizes = seat
    wrong = {}
    usual, reached = LOW[name]
    page.goto(f"{SECURE}icon.svg")
    try:
        for language in LANGUAGES if soaking else (usual,):
            page.evaluate("(it) => localStorage.setItem('fpvcar.language', it)", language)
            show(page, LOOKS[name])
            for size in ("844x390", "568x320", "320x568"):
                width, height = sizes[size]
                page.set_viewport_size({"width": width, "height": height})
                for stop in (STOPPED, LONG_STOP):
                    say(page, stop)
                    found = settled(page)
                    at = f"{language} {size} {stop['stop']['cause']}"
                    wrong[at] = [*found, *page.evaluate(UNREACHED, list(reached))]
    finally:
        page.evaluate("localStorage.removeItem('fpvcar.language')")
    assert not {at: faults for at, faults in wrong.items() if faults}


def test_card_in_the_menu_is_as_wide_as_its_text(
    seat: tuple[Page, dict[str, tuple[int, int]]],
) -> None:
    page, sizes = seat
    width, height = sizes.get("844x390", sizes[min(sizes)])
    page.set_viewport_size({"width": width, "height": height})
    show(page, LOOKS["menu-stopped"])
    assert settled(page) == []
    card = page.locator("#card")
    assert card.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    assert card.evaluate("(one) => one.clientWidth") > 200


PICTURE = """() => {
  const {width, height} = document.querySelector('.windscreen').getBoundingClientRect();
  const fit = getComputedStyle(document.getElementById('picture')).objectFit;
  return [width / innerWidth, height / innerHeight, fit === 'cover' ? width / height : 0];
}"""
DISTANCES = """() => [...document.querySelectorAll('#ranges text')].map(
  (label) => parseFloat(getComputedStyle(label).fontSize) * label.getScreenCTM().a)"""


@pytest.mark.parametrize("name", ["asked", "watching", "stopped"])
def test_upright_picture_is_as_wide_as_the_screen_and_half_as_high(
    seat: tuple[Page, dict[str, tuple[int, int]]], name: str
) -> None:
    """Only a phone that is too short for picture, card and sticks has a lower picture, whole. A
    driver sees the sticks below a stop and a request."""
    page, sizes = seat
    show(page, LOOKS[name])
    measured = {}
    for size, (width, height) in sizes.items():
        if width < height:
            page.set_viewport_size({"width": width, "height": height})
            settled(page)
            until(page, LOOKS[name].shows)  # a busy machine made the link late meanwhile
            measured[size] = page.evaluate(PICTURE)
            if name != "watching" and "keys" not in size:
                assert page.locator(".stick").filter(visible=True).count() == 2, size
    assert measured
    for size, (wide, high, ratio) in measured.items():
        assert wide == 1.0, f"{size}: {measured}"
        if sizes[size][1] <= 700 and name == "stopped" and "keys" not in size:
            assert high > 0.33, f"{size}: {measured}"
        else:
            assert high >= 0.499, f"{size}: {measured}"
        if sizes[size][0] >= 500:
            assert abs(ratio - 4 / 3) < 0.01, f"{size} is cropped: {measured}"


def test_distances_are_readable_at_every_size(
    seat: tuple[Page, dict[str, tuple[int, int]]],
) -> None:
    page, sizes = seat
    for name in ("driving", "watching"):
        show(page, LOOKS[name])
        for size, (width, height) in sizes.items():
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("played.say({role: played.state.role})")
            found = page.evaluate(DISTANCES)
            if page.locator("#ranges").is_visible():
                assert len(found) == 4 and min(found) >= 14.0, f"{name} {size}: {found}"


def test_seat_of_any_size_has_level_sticks_big_buttons_and_no_scroll(
    seat: tuple[Page, dict[str, tuple[int, int]]],
) -> None:
    page, sizes = seat
    show(page, LOOKS["driving"])
    root = "document.documentElement"
    for size, (width, height) in sizes.items():
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(100)
        boxes = [one.bounding_box() for one in page.locator(".stick").all() if one.is_visible()]
        middles = [box["y"] + box["height"] / 2 for box in boxes if box]
        assert len(middles) == (0 if "keys" in size else 2), size
        assert not middles or abs(middles[0] - middles[1]) < 1.0, f"{size}: {middles}"
        assert page.evaluate(f"{root}.scrollWidth <= {width}"), size
        assert page.evaluate(f"{root}.scrollHeight <= {height}"), size
        for button, least in (("#stop", 64), ("#full", 48)):
            box = page.locator(button).bounding_box()
            assert box and min(box["width"], box["height"]) >= least, f"{button}, {size}: {box}"
            assert box["x"] + box["width"] <= width, f"{button}, {size}: {box}"
            assert box["y"] + box["height"] <= height, f"{button}, {size}: {box}"
        page.locator("#full").click(trial=True)  # nothing lies over it


def test_toast_leaves_the_windscreen_in_place(
    seat: tuple[Page, dict[str, tuple[int, int]]],
) -> None:
    page, sizes = seat
    show(page, LOOKS[next(iter(LOOKS))])
    for size, (width, height) in sizes.items():
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        page.evaluate("import('./seat/toast.js').then((it) => it.toast('new', 'warn'))")
        page.wait_for_timeout(200)
        seen = page.locator(".windscreen").bounding_box()
        assert seen and seen["width"] == width, f"{size}: {seen}"


OVER = """() => {
  const box = document.createElement('button');
  box.id = 'box';
  box.style.cssText = 'position: fixed; z-index: 99; width: 60px; height: 60px';
  const {left, top} = document.getElementById(%r).getBoundingClientRect();
  Object.assign(box.style, {left: `${left + 5}px`, top: `${top + 5}px`});
  document.body.append(box);
}"""


@pytest.mark.parametrize("name", ["wheel", "stop", "card-text", "lights"])
def test_overlap_check_finds_a_covered_element(
    seat: tuple[Page, dict[str, tuple[int, int]]], name: str
) -> None:
    page, _ = seat
    page.set_viewport_size({"width": 1024, "height": 768})
    show(page, LOOKS["stopped"])
    assert faults(page) == []
    page.evaluate(OVER % name)
    assert any(f"#{name}" in one and "#box" in one for one in faults(page))

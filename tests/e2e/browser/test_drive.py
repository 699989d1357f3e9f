"""Driving from a browser by keys, thumbs and gamepad, checked at the pins and in the world.

Gamepad tests replace navigator.getGamepads: a headless browser has none.
"""

from functools import partial

import pytest
from benchmarks.memory import heavy, resident_mb
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import (
    GAMEPAD,
    Thumbs,
    at_the_wheel,
    drives,
    go_on,
    grown_up,
    holds,
    opened,
    probe,
    stands,
    until,
)
from testkit.harness import FEW, RunningBench, wait_for

pytestmark = pytest.mark.e2e
OPTIONS = FEW
FORWARD, REVERSE, LEFT, RIGHT = range(4)


@pytest.fixture
def seat(page: Page, bench: RunningBench) -> Page:
    """A page at the wheel."""
    return at_the_wheel(page, bench.url)


@pytest.mark.smoke
def test_arrow_up_drives_and_the_picture_moves(seat: Page, bench: RunningBench) -> None:
    before = bench.world()
    picture = seat.locator("#picture").screenshot()

    def drove() -> bool:
        now = bench.world()
        moved_m = abs(now.x_m - before.x_m) + abs(now.y_m - before.y_m)
        return bool(now.speed_mps > 0.3 and moved_m > 0.2)

    with bench.watch() as watch:
        drives(
            seat,
            drove,
            lambda: seat.keyboard.down("ArrowUp"),
            lambda: seat.keyboard.up("ArrowUp"),
            "ArrowUp",
        )
        seat.keyboard.up("ArrowUp")
        stands(watch)
    assert seat.locator("#picture").screenshot() != picture


def test_drive_keys_turn_on_only_their_own_pin(seat: Page, bench: RunningBench) -> None:
    """Only the key's own pin is on; the brake of the previous key has been released."""
    with bench.watch() as watch:
        for key, pin in (
            ("ArrowUp", FORWARD),
            ("w", FORWARD),
            ("ArrowDown", REVERSE),
            ("s", REVERSE),
            ("ArrowLeft", LEFT),
            ("a", LEFT),
            ("ArrowRight", RIGHT),
            ("d", RIGHT),
        ):

            def alone(pin: int = pin) -> bool:
                duties = enumerate(watch.now.duties)
                return [index for index, duty in duties if duty] == [pin]

            drives(
                seat, alone, partial(seat.keyboard.down, key), partial(seat.keyboard.up, key), key
            )
            seat.keyboard.up(key)
            wait_for(lambda: not any(watch.now.duties), "it does not let go")


@pytest.mark.smoke
def test_space_stops_and_only_go_on_button_resumes(seat: Page, bench: RunningBench) -> None:
    with bench.watch() as watch:
        holds(seat, watch, "ArrowUp")
        seat.keyboard.press("Space")
        stands(watch)
        until(seat, "window.fpvcar.state.stop?.cause === 'estop'")
        seat.keyboard.up("ArrowUp")
        seat.keyboard.down("ArrowUp")
        seat.wait_for_timeout(300)
        assert not watch.now.driving, "a key brought the car back"
        seat.keyboard.press("Space")
        seat.keyboard.press("Enter")
        seat.keyboard.up("ArrowUp")
        seat.wait_for_timeout(200)
        assert probe(seat, "state.stop.cause") == "estop", "a stray key was Resume"
        go_on(seat)
        holds(seat, watch, "ArrowUp")
        seat.keyboard.up("ArrowUp")
        stands(watch)


def test_space_is_taken_before_a_focused_button(seat: Page, bench: RunningBench) -> None:
    with bench.watch() as watch:
        holds(seat, watch, "ArrowUp")
        seat.locator("#wheel").focus()
        seat.keyboard.press("Space")
        stands(watch)
        seat.keyboard.up("ArrowUp")
    until(seat, "window.fpvcar.state.stop?.cause === 'estop'")
    assert probe(seat, "state.role") == "driver", "Space pushed the button instead"
    go_on(seat)


def test_two_thumbs_drive(browser: Browser, bench: RunningBench) -> None:
    context = browser.new_context(
        viewport={"width": 844, "height": 390}, has_touch=True, is_mobile=True
    )
    page = at_the_wheel(context.new_page(), bench.url)
    thumbs = Thumbs(context, page)

    def both() -> bool:
        duties = watch.now.duties
        return duties[FORWARD] > 0.0 and duties[LEFT] > 0.0

    with bench.watch() as watch:
        drives(page, both, thumbs.push, thumbs.lift, "two thumbs")
        thumbs.lift()
        stands(watch, "lifted thumbs")
    context.close()


def test_gamepad_drives_and_stops_when_unplugged(browser: Browser, bench: RunningBench) -> None:
    context = browser.new_context()
    context.add_init_script(GAMEPAD)
    page = at_the_wheel(context.new_page(), bench.url)
    page.evaluate("plug()")
    right, left, stick = "pad.buttons[7].value", "pad.buttons[6].value", "pad.axes[0]"

    def pushes(what: str, pin: int) -> None:
        drives(
            page,
            lambda: watch.now.duties[pin] > 0.0,
            lambda: page.evaluate(f"{what} = 1"),
            lambda: page.evaluate(f"{what} = 0"),
            what,
        )

    with bench.watch() as watch:
        for what, pin in ((right, FORWARD), (left, REVERSE), (stick, RIGHT)):
            pushes(what, pin)
            page.evaluate(f"{what} = 0")
            stands(watch, what)
        pushes(right, FORWARD)
        page.evaluate("unplug()")
        stands(watch, "an unplugged gamepad")
        page.evaluate(f"{right} = 0; navigator.getGamepads = () => [pad]; plug()")
        pushes(right, FORWARD)
        page.evaluate("pad.buttons[1] = {pressed: true, touched: true, value: 1}")
        stands(watch, "B")
        until(page, "window.fpvcar.state.stop?.cause === 'estop'")
    context.close()


def test_lights_are_on_the_pins(seat: Page, bench: RunningBench) -> None:
    head, rear = (5, 6), 13
    seat.keyboard.press("l")
    wait_for(lambda: all(bench.soc.pin[gpio].duty() > 0 for gpio in head), "head lights")
    drives(
        seat,
        lambda: bench.soc.pin[rear].duty() > 0,
        lambda: seat.keyboard.down("ArrowDown"),
        lambda: seat.keyboard.up("ArrowDown"),
        "rear lights",
    )
    seat.keyboard.up("ArrowDown")
    wait_for(lambda: bench.soc.pin[rear].duty() == 0, "rear lights stay on")
    seat.keyboard.press("l")
    wait_for(lambda: bench.soc.pin[head[0]].duty() == 0, "head lights stay on")


def test_watcher_cannot_drive_but_can_stop(
    seat: Page, browser: Browser, bench: RunningBench
) -> None:
    context = browser.new_context()
    watcher = opened(context.new_page(), bench.url)
    assert probe(watcher, "state.role") == "watching"
    with bench.watch() as watch:
        watcher.keyboard.down("ArrowUp")
        watcher.wait_for_timeout(300)
        assert not watch.now.driving, "a watcher drove"
        watcher.keyboard.up("ArrowUp")
        seat.bring_to_front()
        holds(seat, watch, "ArrowUp")
        watcher.locator("#stop").click()
        stands(watch)
    seat.keyboard.up("ArrowUp")
    until(seat, "window.fpvcar.state.stop?.cause === 'estop'")
    go_on(seat)
    seat.locator("#wheel").click()
    until(watcher, "window.fpvcar.state.seat_free")
    watcher.locator("#wheel").click()
    until(watcher, "window.fpvcar.state.role === 'driver'")
    watcher.locator("#wheel").click()
    until(seat, "window.fpvcar.state.seat_free")
    seat.locator("#wheel").click()
    until(seat, "window.fpvcar.state.role === 'driver'")
    context.close()


def test_grown_up_takes_the_wheel_and_the_car_stands(
    seat: Page, browser: Browser, bench: RunningBench
) -> None:
    context = browser.new_context()
    mum = opened(context.new_page(), bench.url)
    seat.keyboard.down("ArrowUp")
    grown_up(mum, bench)
    mum.locator("#grown-take").click()
    until(mum, "window.fpvcar.state.role === 'driver'")
    with bench.watch() as watch:
        mum.wait_for_timeout(300)
        assert not watch.now.driving
    assert probe(seat, "state.role") == "watching"
    seat.keyboard.up("ArrowUp")
    mum.locator('#menu [data-close="menu"]').click()
    mum.locator("#wheel").click()
    until(seat, "window.fpvcar.state.seat_free")
    context.close()


def test_driving_units_fit_the_memory_of_a_small_pi(seat: Page, bench: RunningBench) -> None:
    assert probe(seat, "state.role") == "driver"
    for unit, most_mb in (("run", 60.0), ("wheels", 25.0)):
        assert resident_mb(bench.pid(unit)) <= most_mb, unit
        assert heavy(bench.pid(unit)) == [], unit

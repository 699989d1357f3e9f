"""Links that stall or are late under a browser, and parts that die, with the page's messages."""

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page
from testkit.browsers.seat import (
    at_the_wheel,
    comes_back,
    drives,
    go_on,
    holds,
    opened,
    probe,
    seated_over,
    stands,
    until,
)
from testkit.driver import Driver, free
from testkit.harness import SMALL, PinWatch, RunningBench, wait_for
from testkit.network.proxy import Link

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
DEAF = """
const Whole = WebSocket;
window.WebSocket = class extends Whole {
  constructor(url) {
    super(url);
    if (!url.includes('/ws/drive')) return;
    window.drive = this;
    this.addEventListener('message', (event) => {
      if (this.stuck) event.stopImmediatePropagation();
    });
  }
  send(data) {
    if (!this.stuck) super.send(data);
  }
};
"""
"""A stall like TCP's after losses: a single socket is silent, both ways, and stays open."""
CARD = "document.querySelector('#card').innerText"


@pytest.mark.parametrize(
    ("up_s", "down_s"),
    [
        (1.5, 0.0),
        pytest.param(0.0, 1.5, marks=[pytest.mark.soak, pytest.mark.long]),
        pytest.param(0.6, 0.6, marks=[pytest.mark.soak, pytest.mark.long]),
    ],
)
def test_link_late_from_the_start_drives_nothing(
    page: Page, bench: RunningBench, link: Link, up_s: float, down_s: float
) -> None:
    """The first wishes of a new socket do not measure it. The page shows its delay, and drives
    once the link is in time again."""
    seated_over(page, link)
    link.up_s, link.down_s = up_s, down_s
    link.cut()
    until(page, "window.fpvcar.link.kind !== 'up'")
    until(page, "window.fpvcar.link.kind === 'up'", 30.0)
    with bench.watch() as watch:
        page.keyboard.down("ArrowUp")
        until(page, f"{CARD}.includes('The link is 1.')")
        assert "s late: the car waits" in page.inner_text("#card")
        page.keyboard.up("ArrowUp")
        page.keyboard.down("ArrowUp")
        page.wait_for_timeout(2500)
        assert not any(sample.driving for sample in watch.samples)
        link.up_s = link.down_s = 0.0
        until(page, "document.body.dataset.situation !== 'late'")
        page.wait_for_timeout(300)
        assert not watch.now.driving, "a key held through it drove on"
        page.keyboard.up("ArrowUp")
        go_on(page)
        holds(page, watch, "ArrowUp")
        page.keyboard.up("ArrowUp")
        stands(watch)


def test_slow_way_is_explained_and_left_by_watching(
    page: Page, bench: RunningBench, link: Link, tmp_path: Path
) -> None:
    """A round trip between the longest that drives and the age limit of a wish."""
    page.set_viewport_size({"width": 390, "height": 844})
    seated_over(page, link)
    link.up_s = link.down_s = 0.17
    until(page, "document.body.dataset.situation === 'late'")
    until(page, f"{CARD}.includes('It drives below 300')")
    page.wait_for_timeout(400)  # the card fades in
    page.screenshot(path=tmp_path / "late.png")
    with bench.watch() as watch:
        page.keyboard.down("ArrowUp")
        page.wait_for_timeout(600)
        page.keyboard.up("ArrowUp")
        assert not any(sample.driving for sample in watch.samples)
    page.locator("#card-watch").click()
    until(page, "window.fpvcar.state.role === 'watching'")
    until(page, "document.body.dataset.situation === 'watching'")


def another_drives(driver: Driver, watch: PinWatch, page: Page) -> None:
    """Let another driver drive, on a link of their own; this page watches."""
    assert probe(page, "state.role") == "watching"
    drives(
        page,
        lambda: watch.now.driving,
        lambda: driver.drive(0.4, 0.0),
        lambda: free(driver),
        "somebody else",
    )


def test_watcher_stop_reaches_the_car_after_link_stall(
    page: Page, bench: RunningBench, link: Link, driver: Driver
) -> None:
    opened(page, f"http://localhost:{link.port}/")
    with bench.watch() as watch:
        another_drives(driver, watch, page)
        link.stall()
        until(page, f"{CARD}.includes('If someone is driving, the car keeps driving')")
        page.locator("#stop").click()
        until(page, f"{CARD}.includes('STOP not sent yet')")
        page.wait_for_timeout(500)
        assert driver.stop_cause() != "estop", "the link was not stalled"
        link.mend()
        wait_for(lambda: driver.stop_cause() == "estop", "not heard", 15.0)
        stands(watch)
    until(page, f"{CARD}.includes('You pressed STOP')")


def test_stuck_drive_socket_is_replaced_and_its_stop_resent(
    page: Page, bench: RunningBench, driver: Driver
) -> None:
    page.add_init_script(DEAF)
    opened(page, bench.url)
    with bench.watch() as watch:
        another_drives(driver, watch, page)
        page.evaluate("window.stuckOne = drive; drive.stuck = true")
        page.locator("#stop").click()
        wait_for(lambda: driver.stop_cause() == "estop", "not heard", 15.0)
        stands(watch)
    until(page, f"{CARD}.includes('You pressed STOP')")
    assert page.evaluate("drive !== stuckOne")


def test_readings_from_before_a_stall_look_old(page: Page, bench: RunningBench, link: Link) -> None:
    battery = "document.querySelector('#battery')"
    arcs = "[...document.querySelectorAll('#ranges .arc')]"
    opened(page, f"http://localhost:{link.port}/")
    until(page, f"{arcs}.length > 0 && {arcs}.some((one) => !one.matches('.unknown'))")
    until(page, f"!{battery}.matches('.old')")
    link.stall()
    until(page, "window.fpvcar.link.kind !== 'up'")
    assert page.evaluate(f"{battery}.matches('.old')")
    assert page.evaluate(f"{arcs}.every((one) => one.matches('.unknown'))")
    until(page, f"/.V, [1-9]+.s ago/.test({battery}.innerText)")
    link.mend()
    until(page, f"!{battery}.matches('.old')")
    until(page, f"{arcs}.some((one) => !one.matches('.unknown'))")


@pytest.mark.parametrize("unit", ["run", "wheels", "pigpiod"])
def test_killed_unit_comes_back_and_go_on_drives(
    page: Page, bench: RunningBench, unit: str
) -> None:
    at_the_wheel(page, bench.url)
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")
        bench.kill(unit)
        stands(watch)
        page.keyboard.up("ArrowUp")
        comes_back(page)
        go_on(page)
        holds(page, watch, "ArrowUp")
        page.keyboard.up("ArrowUp")
        stands(watch)


def test_lost_camera_is_logged_and_comes_back(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    before = bench.log().count("camera lost")
    for pid in bench.cameras():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: bench.log().count("camera lost") > before, "nothing was said")
    comes_back(page)
    go_on(page)


def test_picture_is_current_after_a_stall(page: Page, bench: RunningBench, link: Link) -> None:
    seated_over(page, link)
    link.stall()
    page.wait_for_timeout(1500)
    link.mend()
    comes_back(page)
    wait_for(lambda: probe(page, "video.latencyMs.at(-1)") < 200, "old pictures")

"""The picture on the page: its settings, changed by a grown-up and kept; the second camera."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page
from testkit.browsers.seat import (
    at_the_wheel,
    go_on,
    grown_up,
    holds,
    open_menu,
    stands,
    until,
    violations,
)
from testkit.driver import open_socket
from testkit.harness import FEW, STRIP, RunningBench, wait_for

from fpvcar.config import Camera
from fpvcar.devices import sensor_modes
from fpvcar.wire.video import parse_video

pytestmark = pytest.mark.e2e
OPTIONS = (STRIP, '--set=cameras.rear = {source = "strip", width = 322, height = 240, fps = 10}')
SET = "fetch('/api/picture').then((answer) => answer.json())"


def test_grown_up_sets_the_picture(page: Page, bench: RunningBench) -> None:
    at_the_wheel(page, bench.url)
    open_menu(page, "picture")
    settings = page.get_by_test_id("picture-settings")
    settings.wait_for(state="attached")
    assert not settings.is_visible(), "a grown-up's"
    grown_up(page, bench)
    open_menu(page, "picture")
    settings.locator("summary").click()
    night = page.get_by_test_id("picture-night")
    night.wait_for(state="visible")
    assert not page.get_by_test_id("picture-exposure").is_visible(), "a Pi camera's"
    assert violations(page) == []
    night.check()
    until(page, f"(async () => (await {SET}).night)()")
    page.get_by_test_id("picture-size").select_option("320 × 240")
    until(page, f"(async () => (await {SET}).width === 320)()")
    until(page, "window.fpvcar.video.size?.[0] === 320", 30.0)
    kept = (bench.state / "kept.json").read_text()
    assert '"picture":{"width":320,"height":240,"night":true}' in kept


def test_page_shows_view_and_mode_of_a_pi_camera(page: Page, bench: RunningBench) -> None:
    report = sensor_modes.report("imx708", Camera(fps=60))
    can = {"can": ["fps", "view"], "fps": 60, "view": "whole", "mode": [report.text, report.rate]}
    asked = msgspec.json.encode(can)
    page.route(
        "**/api/picture", lambda route: route.fulfill(body=asked, content_type="application/json")
    )
    page.add_init_script("localStorage.setItem('fpvcar.language', 'de')")
    at_the_wheel(page, bench.url)
    grown_up(page, bench)
    open_menu(page, "picture")
    settings = page.get_by_test_id("picture-settings")
    settings.locator("summary").click()
    page.get_by_test_id("picture-view").wait_for(state="visible")
    shown = settings.inner_text().replace("\xa0", " ")
    assert "das Bild ist 52° breit, 75 % × 100 % des Sensors" in shown
    assert "die ganze Sicht hat 56 von 60" in shown
    assert violations(page) == []


def rear_pids(bench: RunningBench) -> list[int]:
    """Return the processes of the second camera."""
    found = []
    for pid in bench.children():
        with suppress(FileNotFoundError):
            if b"--view=rear" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_hot_car_films_fewer_pictures_and_says_so(page: Page, tmp_path: Path) -> None:
    firmware = tmp_path / "vcgencmd"
    firmware.write_text("#!/bin/sh\necho throttled=0x4\n")
    firmware.chmod(0o755)
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    bench = RunningBench(tmp_path, STRIP, *FEW, "--set=camera.fps = 60", env=env)
    try:
        at_the_wheel(page, bench.wait_ready().url)
        until(page, "window.fpvcar.state.lowered_rate?.values.reason.key === 'rate_heat'")
        open_menu(page, "picture")
        assert "30 instead of 60" in page.inner_text("#rate-says")
        with open_socket(bench.port, "/ws/video") as socket:
            units = [socket.recv(20.0) for _ in range(60)]
        first, *_, last = [parse_video(unit)[0] for unit in units if isinstance(unit, bytes)]
        assert 59e6 / (last.capture_us - first.capture_us) < 33.0, "fewer on a busy machine"
    finally:
        bench.stop()
        print(bench.log())


@pytest.mark.smoke
def test_second_camera_is_swapped_by_a_key_and_stops_the_car_when_it_hangs(
    page: Page, bench: RunningBench
) -> None:
    wait_for(lambda: not rear_pids(bench), "no page shows it", 20.0)
    at_the_wheel(page, bench.url)
    small = page.locator("#small-picture")
    small.wait_for(state="visible")
    assert small.inner_text() == "rear" and violations(page) == []
    page.keyboard.press("c")
    until(page, "window.fpvcar.video.size[0] === 322 && window.fpvcar.video.ageMs < 400")
    assert page.locator(".windscreen").get_attribute("data-camera") == "rear"
    until(page, "window.fpvcar.state.camera === 'ok'")
    with bench.watch() as watch:
        holds(page, watch, "w")
        (pid,) = rear_pids(bench)
        os.kill(pid, signal.SIGSTOP)
        until(page, "window.fpvcar.state.stop && window.fpvcar.video.ageMs > 400")
        stands(watch)
        page.keyboard.up("w")
        small.click()
        until(page, "window.fpvcar.video.size[0] !== 322 && window.fpvcar.video.ageMs < 400")
        go_on(page)
        holds(page, watch, "w")
        page.keyboard.up("w")
    page.close()
    wait_for(lambda: not rear_pids(bench), "the last viewer has left", 20.0)

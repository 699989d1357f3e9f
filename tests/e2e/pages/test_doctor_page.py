"""Faults of the car: the list in the drawer on a grown-up's request, and the same on the command
line beside the running bench."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from testkit.browsers.panels import LONG_S, ROUTE, looked
from testkit.browsers.played_answers import refuse
from testkit.browsers.seat import grown_up, opened, until
from testkit.doctor import THROTTLED, PlayedMachine, examined, healthy, put
from testkit.driver import Driver
from testkit.harness import SMALL, RunningBench, wait_for

from fpvcar.doctor.collect import LEAST_TIMEOUT
from fpvcar.doctor.report import Report, as_json
from fpvcar.http.responses import CAR_MOVES

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
ASK = "fetch('/api/doctor', {method: 'POST'}).then((one) => one.text())"


def broken(page: Page) -> list[str]:
    """Return the rules that axe-core finds broken in the list."""
    found = Axe().run(page, context="#doctor").response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]


def ill(root: Path) -> Report:
    """Return the report of a car with a fault, two warnings and a note."""
    machine = PlayedMachine()
    machine.present, machine.rests = {(1, 0x29)}, True
    put(healthy(root), THROTTLED, "50000\n")
    put(root, LEAST_TIMEOUT, "200000\n")
    return examined(root, machine)


def test_grown_up_sees_faults_while_the_car_stands(
    page: Page, bench: RunningBench, tmp_path: Path
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, bench.url)
    assert "grown-up code" in page.evaluate(ASK)
    grown_up(page, bench)
    with bench.watch() as watch:
        looked(page)
    assert not any(sample.driving for sample in watch.samples)
    well = page.locator("#doctor .hint", has_text="OK: ").inner_text()
    for part in ("profile", "pins", "I2C", "version"):
        assert part in well, well
    page.locator("#doctor summary").click()
    not_asked = page.locator("#doctor details").inner_text()
    assert "motors: nothing moves without --move" in not_asked
    assert "a second one released after" in not_asked
    assert broken(page) == []

    report = ill(tmp_path)
    page.route(ROUTE, lambda route: route.fulfill(body=as_json(report)))
    looked(page)
    shown = page.locator(".finding")
    until(page, "document.querySelectorAll('.finding').length === 4")
    for index, one in enumerate(report.findings):
        text = shown.nth(index).inner_text()
        assert all(words[1:] in text for words in (one.what, one.why, one.mend)), text
    assert shown.first.get_attribute("data-severity") == "fault"
    assert broken(page) == []
    assert page.evaluate("document.querySelector('#sheet-body').scrollWidth") <= 390

    page.unroute(ROUTE)
    page.route(ROUTE, lambda route: refuse(route, web.HTTPConflict, CAR_MOVES))
    looked(page)
    assert page.locator("#doctor").inner_text() == str(CAR_MOVES)
    assert page.locator("#look-for-faults").is_enabled()


def test_doctor_command_leaves_a_running_car_alone(bench: RunningBench) -> None:
    argv = [
        sys.executable,
        "-m",
        "fpvcar",
        "doctor",
        "--json",
        f"--port={bench.port}",
        f"--set=pins.port = {bench.pigpio_port}",
    ]
    env = {
        **os.environ,
        "RUNTIME_DIRECTORY": str(bench.runtime),
        "STATE_DIRECTORY": str(bench.state),
    }
    with Driver(bench.port) as driver:
        wait_for(lambda: bool(driver.state), "no state")
        done = subprocess.run(argv, capture_output=True, env=env, timeout=LONG_S)
        assert done.returncode in (0, 3, 4), done.stderr
        found = {one["key"] for one in json.loads(done.stdout)["findings"]}
        assert not {"dead-man", "dead-man-sleeps", "pins", "profile"} & found
        wait_for(lambda: driver.state["wheels"] == "ok", "the wheels are lost")

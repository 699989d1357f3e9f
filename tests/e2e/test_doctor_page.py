"""What is wrong with the car: the list that a grown-up asks for in the drawer, and the
same on the command line beside the running bench."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

from fpvcar.doctor.collect import LEAST_TIMEOUT
from fpvcar.doctor.report import as_json
from tests.e2e.driver import Driver
from tests.e2e.harness import RunningBench, wait_for
from tests.e2e.seat import grown_up, opened, until, violations
from tests.rigs.doctor import THROTTLED, PlayedMachine, examined, healthy, put

pytestmark = [pytest.mark.e2e, pytest.mark.unhurried]
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
FOUND = "document.querySelector('#doctor [role=status]')?.textContent"


def looked(page: Page) -> None:
    """The list is there."""
    page.locator("#look-for-faults").click()
    until(page, f"{FOUND}?.startsWith('The car looks at itself')")
    until(page, f"!{FOUND}.startsWith('The car looks')", 60.0)


def test_a_grown_up_sees_the_list_and_the_car_stands(
    page: Page, bench: RunningBench
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, bench.url)
    grown_up(page, bench)
    with bench.watch() as watch:
        looked(page)
    assert not any(sample.driving for sample in watch.samples)
    says = page.evaluate(FOUND)
    assert "wrong" in says or "look at" in says, says
    well = page.locator("#doctor .hint", has_text="Well: ").inner_text()
    for part in ("profile", "pins", "I2C", "version"):
        assert part in well, well
    page.locator("#doctor summary").click()
    not_asked = page.locator("#doctor details").inner_text()
    assert "motors: nothing moves without --move" in not_asked
    assert "board: this is no Raspberry Pi" in not_asked
    assert "dead man:" not in not_asked
    assert page.evaluate("document.querySelector('#menu-body').scrollWidth") <= 390
    assert violations(page) == []


def test_each_finding_says_what_why_and_what_to_do(
    page: Page, bench: RunningBench, tmp_path: Path
) -> None:
    machine = PlayedMachine()
    machine.present = {(1, 0x29)}
    machine.rests = True
    put(healthy(tmp_path), THROTTLED, "50000\n")
    put(tmp_path, LEAST_TIMEOUT, "200000\n")
    report = examined(tmp_path, machine)
    page.route("**/api/doctor", lambda route: route.fulfill(body=as_json(report)))
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, bench.url)
    grown_up(page, bench)
    looked(page)
    shown = page.locator(".finding")
    assert shown.count() == len(report.findings) == 4
    for index, one in enumerate(report.findings):
        text = shown.nth(index).inner_text()
        for words in (one.what, one.why, one.mend):
            assert words in text
    assert shown.first.get_attribute("data-severity") == "fault"
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        page.locator("#doctor").evaluate("one => one.scrollIntoView()")
        page.screenshot(path=bench.state.parent / f"doctor-{scheme}.png")
    page.unroute("**/api/doctor")


def test_a_refusal_is_shown_in_its_own_words(page: Page, bench: RunningBench) -> None:
    words = "The car moves: let it stand, then look again.\n"
    page.route(
        "**/api/doctor", lambda route: route.fulfill(status=409, body=words)
    )  # fmt: skip
    opened(page, bench.url)
    grown_up(page, bench)
    looked(page)
    assert page.locator("#doctor").inner_text() == words.strip()
    assert page.locator("#look-for-faults").is_enabled()
    page.unroute("**/api/doctor")


def test_who_is_no_grown_up_is_told_so(page: Page, bench: RunningBench) -> None:
    opened(page, bench.url)
    said = page.evaluate(
        "fetch('/api/doctor', {method: 'POST'}).then((one) => one.text())"
    )
    assert "grown-ups' code" in said


def test_the_command_line_leaves_a_running_car_alone(
    bench: RunningBench,
) -> None:
    argv = [
        sys.executable, "-m", "fpvcar", "doctor", "--json", f"--port={bench.port}",
        f"--set=pins.port = {bench.pigpio_port}",
    ]  # fmt: skip
    env = {
        **os.environ, "RUNTIME_DIRECTORY": str(bench.runtime),
        "STATE_DIRECTORY": str(bench.state),
    }  # fmt: skip

    def report() -> dict[str, list[dict[str, str]]]:
        done = subprocess.run(argv, capture_output=True, env=env, timeout=60)
        assert done.returncode in (0, 3, 4), done.stderr
        found: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
        return found

    with Driver(bench.port) as driver:
        wait_for(lambda: bool(driver.state), "no state")
        found = {one["key"] for one in report()["findings"]}
        assert not {"dead-man", "dead-man-sleeps", "pins", "profile"} & found
        wait_for(lambda: driver.state["wheels"] == "ok", "the wheels are lost")

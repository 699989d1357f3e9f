"""The questions of a card's first boot, in a browser, from the real service."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import violations
from testkit.harness import wait_for
from testkit.network.ports import free_port

from fpvcar.cli import first_boot

pytestmark = pytest.mark.e2e


@pytest.fixture(params=["dark", "light"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param, locale="fi-FI")
    yield context.new_page()
    context.close()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


@contextmanager
def serving(state: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run the service of a first boot; yield it and its port."""
    port = free_port()
    words = [sys.executable, "-m", "fpvcar", "first-boot", "serve", "--port", str(port)]
    service = subprocess.Popen(words, env={**os.environ, "STATE_DIRECTORY": str(state)})
    try:
        wait_for(lambda: listens(port), "the service does not listen", 20.0)
        yield service, port
    finally:
        service.kill()
        service.wait()


def test_answers_bring_the_codes_and_end_the_service(page: Page, tmp_path: Path) -> None:
    with serving(tmp_path) as (service, port):
        page.set_viewport_size({"width": 390, "height": 700})
        page.goto(f"http://localhost:{port}/")
        page.locator("#questions").wait_for(state="visible")
        assert page.locator("#country").input_value() == "FI"
        assert "Suomi" in page.locator("#country").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == []
        page.locator("#board").select_option("l298n")
        page.locator("#name").fill("Rusty")
        page.locator("#resistors").check()
        page.locator("#questions button").click()
        page.locator("#answer").wait_for(state="visible")
        codes = json.loads((tmp_path / "codes.json").read_text())
        assert page.locator("#drive").inner_text() == codes["drive"]
        assert page.locator("#grown-up").inner_text() == codes["grown_up"]
        assert page.locator("#by-name").get_attribute("href") == "http://rusty.local:8080/"
        assert violations(page) == []
        assert service.wait(20.0) == 0
    answers = json.loads((tmp_path / first_boot.ANSWERS).read_text())
    assert answers["name"] == "Rusty" and answers["resistors"] is True

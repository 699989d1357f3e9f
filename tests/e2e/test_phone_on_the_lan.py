"""HOST=0.0.0.0 and a phone beside it: a browser in a network namespace of its own.

On plain http at an address a browser has no WebCodecs: this is the way of Media
Source Extensions. Whoever has not entered the code only watches.
"""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.conftest import CHROMIUM, chromium
from tests.e2e.harness import RunningBench
from tests.e2e.seat import go_on, holds, opened, probe, stands, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
CAR, PHONE = "10.77.0.1", "10.77.0.2"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """A host with one cable to this one."""
    name, near, far = f"fpv{os.getpid()}", f"fpva{os.getpid()}", f"fpvb{os.getpid()}"
    ip("netns", "add", name)
    try:
        ip("link", "add", near, "type", "veth", "peer", "name", far)
        ip("link", "set", far, "netns", name)
        ip("addr", "add", f"{CAR}/24", "dev", near)
        ip("link", "set", near, "up")
        ip("-n", name, "addr", "add", f"{PHONE}/24", "dev", far)
        ip("-n", name, "link", "set", far, "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        ip("netns", "del", name)


@pytest.fixture(scope="module")
def lan_bench(
    tmp_path_factory: pytest.TempPathFactory, namespace: str
) -> Iterator[RunningBench]:
    """A bench that is open to the LAN."""
    running = RunningBench(tmp_path_factory.mktemp("lan"), "--host=0.0.0.0")
    try:
        yield running.wait_ready()
    finally:
        running.stop()
        print(running.log())


@pytest.fixture(scope="module")
def phone_browser(
    tmp_path_factory: pytest.TempPathFactory, namespace: str
) -> Iterator[Browser]:
    """Chromium inside the namespace; it talks to us over pipes."""
    wrapper = tmp_path_factory.mktemp("bin") / "chromium"
    wrapper.write_text(f'#!/bin/sh\nexec ip netns exec {namespace} {CHROMIUM} "$@"\n')
    wrapper.chmod(0o755)
    with chromium(str(wrapper)) as running:
        yield running


@pytest.fixture
def phone(phone_browser: Browser) -> Iterator[Page]:
    """A phone's page, not opened yet."""
    context = phone_browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
        ignore_https_errors=True,
    )  # fmt: skip
    yield context.new_page()
    context.close()


def code(bench: RunningBench) -> str:
    """The drive code that the bench printed."""
    drive: str = json.loads((bench.state / "codes.json").read_text())["drive"]
    assert f"Drive code: {drive}" in bench.log()
    return drive


def test_the_bench_prints_a_qr_code(lan_bench: RunningBench) -> None:
    assert "▀" in lan_bench.log() and "on the phone" in lan_bench.log()


def test_a_phone_watches_by_mse_enters_the_code_and_drives(
    phone: Page, lan_bench: RunningBench
) -> None:
    opened(phone, f"http://{CAR}:{lan_bench.port}/")
    assert phone.evaluate("typeof VideoDecoder") == "undefined"
    assert probe(phone, "video.path") == "mse"
    assert probe(phone, "state.role") == "watching"
    assert not probe(phone, "state.may_drive")
    phone.locator("#wheel").click()
    phone.locator("#code").fill(code(lan_bench))
    phone.keyboard.press("Enter")
    until(phone, "window.fpvcar.state.may_drive")
    if probe(phone, "state.role") != "driver":
        phone.locator("#wheel").click()
    until(phone, "window.fpvcar.state.role === 'driver'")
    go_on(phone)
    with lan_bench.watch() as watch:
        holds(phone, watch, "ArrowUp")
        phone.keyboard.up("ArrowUp")
        stands(watch)


def test_a_wrong_code_is_said(phone: Page, lan_bench: RunningBench) -> None:
    opened(phone, f"http://{CAR}:{lan_bench.port}/")
    phone.locator("#wheel").click()
    phone.locator("#code").fill("000000" if code(lan_bench) != "000000" else "111111")
    phone.keyboard.press("Enter")
    until(phone, "document.body.innerText.includes('That is not the code')")
    assert not probe(phone, "state.may_drive")


def test_https_gives_the_phone_webcodecs(phone: Page, lan_bench: RunningBench) -> None:
    opened(phone, f"https://{CAR}:{lan_bench.port + 1}/")
    assert probe(phone, "video.path") == "webcodecs"


def test_the_mse_picture_is_now(phone: Page, lan_bench: RunningBench) -> None:
    opened(phone, f"http://{CAR}:{lan_bench.port}/")
    shown = probe(phone, "video.shown")
    until(phone, f"window.fpvcar.video.shown > {shown} + 60")
    latencies = probe(phone, "video.latencyMs")
    assert sorted(latencies)[len(latencies) // 2] < 250, latencies

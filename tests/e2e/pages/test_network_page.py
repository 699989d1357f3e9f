"""The Wi-Fi page on the bench, whose radio and networks are simulated."""

import json

import pytest
from playwright.sync_api import Page
from testkit.browsers.seat import until
from testkit.driver import Driver
from testkit.harness import SMALL, RunningBench, wait_for

pytestmark = pytest.mark.e2e
OPTIONS = SMALL


@pytest.fixture
def wifi(page: Page, bench: RunningBench) -> Page:
    """The page, unlocked by a grown-up."""
    codes = json.loads((bench.state / "codes.json").read_text())
    page.goto(f"{bench.url}network")
    page.locator("#code").fill(codes["grown_up"])
    page.locator("#unlock button").click()
    page.locator("#list button").first.wait_for()
    return page


def joined(page: Page, ssid: str, key: str) -> None:
    """Choose a network and type its key."""
    page.locator("#list button", has_text=ssid).click()
    page.locator("#key").fill(key)
    page.locator("#join .primary").click()


def test_grown_up_joins_network_and_sees_wrong_key(wifi: Page, bench: RunningBench) -> None:
    assert wifi.locator("#own-key").inner_text()
    assert wifi.locator("#list button", has_text="Office").is_disabled()
    joined(wifi, "Home", "not the right key")
    says = "document.getElementById('says').textContent"
    until(wifi, f"{says}.startsWith('The car is joining Home')")
    reason = "document.getElementById('reason').textContent"
    until(wifi, f"{reason} === 'The car could not join Home: wrong key.'")
    until(wifi, "!document.querySelector('#list button').disabled", 60.0)
    joined(wifi, "Home", "home sweet home")
    until(wifi, f"{says} === 'The car is on the network Home.'")


def test_grown_up_joins_hidden_network(wifi: Page, bench: RunningBench) -> None:
    assert not wifi.locator("#list button", has_text="Attic").count()
    wifi.locator("#list button").last.click()
    wifi.locator("#join .primary").click()
    assert wifi.locator("#ssid").evaluate("input => input.validity.valueMissing")
    wifi.locator("#ssid").fill("Attic")
    wifi.locator("#key").fill("attic attic")
    wifi.locator("#join .primary").click()
    says = "document.getElementById('says').textContent"
    until(wifi, f"{says} === 'The car is on the network Attic.'", 60.0)


def test_joining_is_refused_during_a_drive(wifi: Page, bench: RunningBench) -> None:
    with Driver(bench.port, name="Ann") as ann:
        wait_for(lambda: bool(ann.state), "no state")
        ann.say(kind="take")
        wait_for(lambda: ann.state.get("role") == "driver", "no wheel")
        joined(wifi, "Workshop", "workshop")
        until(
            wifi,
            "document.getElementById('join-fault').textContent.startsWith('Someone is driving')",
        )
        assert ann.state["role"] == "driver"
        wifi.locator("#join-cancel").click()

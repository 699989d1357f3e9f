"""A permitted driver gets in at the first try, even if strangers take every free place."""

import http.client
import json
import socket
from pathlib import Path

import pytest
from playwright.sync_api import Page
from testkit.browsers.seat import grown_up, open_menu, opened, until
from testkit.driver import Driver, sit_down
from testkit.harness import SMALL, RunningBench, wait_for
from testkit.network.attacks import plug

from tests.e2e.hostile.test_hostile import start

pytestmark = pytest.mark.e2e
OPTIONS = SMALL
HOLD_MOST_S = 30.0
NEWCOMER_S = 3.0


def code(bench: RunningBench, kind: str) -> str:
    codes: dict[str, str] = json.loads((bench.state / "codes.json").read_text())
    return codes[kind]


def stranger(bench: RunningBench, last: int, said: str = "", cookie: str = "") -> Driver:
    """Return a driver at an address of its own, without the rights of loopback."""
    headers = {"Cookie": cookie} if cookie else None
    link: socket.socket = plug(bench.port, last)
    link.settimeout(None)
    return Driver(
        bench.port, code=said, own_origin=False, link=link, headers=headers, name=f"number {last}"
    )


def remembered(bench: RunningBench, driver: Driver) -> str:
    """Return the driver's cookie, fetched as a browser does."""
    found: list[str] = []

    def offered() -> bool:
        found.extend(one["ticket"] for one in driver.heard if one["kind"] == "pass")
        return bool(found)

    wait_for(offered, "no ticket")
    connection = http.client.HTTPConnection("localhost", bench.port, timeout=5)
    connection.request("POST", "/api/pass", headers={"X-Pass": found[0]})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 204
    return (answer.getheader("Set-Cookie") or "").partition(";")[0]


def restarted(bench: RunningBench) -> None:
    """Kill `run` and wait until the bench has started it again."""
    before = bench.pid("run")
    bench.kill("run")

    def answers() -> bool:
        try:
            with plug(bench.port, 5):
                return bench.pid("run") != before
        except OSError:
            return False

    wait_for(answers, "run does not come back", 20.0)


@pytest.mark.parametrize("name", ["two_holders", pytest.param("holders", marks=pytest.mark.long)])
def test_permitted_drivers_get_in_during_attack(
    bench: RunningBench, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new driver gets in with the code, and the old one by its cookie after a restart."""
    with stranger(bench, 10, code(bench, "drive")) as old:
        cookie = remembered(bench, old)
    restarted(bench)
    with start(name, bench.port, HOLD_MOST_S) as attack:
        assert attack.stdout is not None
        assert attack.stdout.readline() == "holding\n"
        with stranger(bench, 10, cookie=cookie) as old:
            wait_for(lambda: bool(old.state), "no state", NEWCOMER_S)
            assert old.state["may_drive"] and not old.state["grown_up"]
            sit_down(old)
            with stranger(bench, 11, code(bench, "grown_up")) as new:
                wait_for(lambda: bool(new.state.get("grown_up")), "no rights", NEWCOMER_S)
            with stranger(bench, 12) as watcher:
                wait_for(lambda: bool(watcher.state), "no state", NEWCOMER_S)
                assert not watcher.state["may_drive"]
            assert old.state["role"] == "driver" and not old.closed.is_set()
            old.say(kind="release")
        attack.terminate()
        said = attack.communicate(timeout=60)[0]
    with capsys.disabled():
        print(f"\n{name}: {said.strip()}", end="")
    assert attack.returncode == 0 and "'refused'" in said, said


def test_ended_driver_and_lock_survive_a_restart(bench: RunningBench) -> None:
    with (
        stranger(bench, 20, code(bench, "grown_up")) as mum,
        stranger(bench, 21, code(bench, "drive")) as ann,
    ):
        hers, anns = remembered(bench, mum), remembered(bench, ann)
        mum.say(kind="who")
        wait_for(lambda: bool(listed(mum)), "no list")
        there = {one["name"]: one for one in listed(mum)}
        assert there["number 20"]["you"] and there["number 20"]["grown_up"]
        mum.say(kind="end", id=there["number 21"]["id"])
        wait_for(lambda: not ann.state.get("may_drive", True), "may drive still")
        told = [one["what"] for one in ann.errors()]
        assert "a grown-up has ended your rights" in told
        with stranger(bench, 20, cookie=hers) as tab:
            wait_for(lambda: bool(tab.state.get("grown_up")), "not known")
            mum.say(kind="lock")
            wait_for(lambda: not tab.state.get("grown_up", True), "not locked")
        wait_for(lambda: kept(bench, "number 20", 0.0), "not saved")
    restarted(bench)
    with stranger(bench, 21, cookie=anns) as ann:
        wait_for(lambda: bool(ann.state), "no state")
        assert not ann.state["may_drive"]
    with stranger(bench, 20, cookie=hers) as mum:
        wait_for(lambda: bool(mum.state), "no state")
        assert mum.state["may_drive"] and not mum.state["grown_up"]


def test_grown_up_page_ends_driver_and_locks_the_car(
    page: Page, bench: RunningBench, tmp_path: Path
) -> None:
    """A grown-up is remembered after a reload, sees the permitted drivers and ends one, locks
    the car, and the lock stays."""
    opened(page, bench.url)
    with page.expect_response("**/api/pass") as kept_it:
        grown_up(page, bench)
    assert kept_it.value.status == 204
    assert page.evaluate("document.cookie") == "", "no script reads it"
    opened(page, bench.url)
    until(page, "window.fpvcar.state.grown_up")
    with stranger(bench, 30, code(bench, "drive")) as ann:
        open_menu(page, "grown-ups")
        row = page.locator("#who-may-drive li", has_text="number 30")
        row.wait_for()
        row.evaluate("(one) => one.scrollIntoView()")  # at once: rows are made again
        page.screenshot(path=tmp_path / "who.png")
        assert "this computer" in row.inner_text()
        row.locator(".end").click()
        row.locator(".undo").click()
        row.locator(".end").click()
        row.locator(".undo").wait_for()
        assert ann.state["may_drive"], "there were 5 s to undo it"
        page.screenshot(path=tmp_path / "undo.png")
        wait_for(lambda: not ann.state.get("may_drive", True), "may drive still", 15.0)
        row.locator("button").wait_for(state="detached")
        assert "watching" in row.inner_text()
    page.locator("#lock-again").click()
    until(page, "!window.fpvcar.state.grown_up")
    opened(page, bench.url)
    until(page, "window.fpvcar.state !== null && !window.fpvcar.state.grown_up")


def listed(driver: Driver) -> list[dict[str, object]]:
    """Return the newest answer to `who`."""
    said = [one["people"] for one in driver.heard if one["kind"] == "people"]
    return said[-1] if said else []


def kept(bench: RunningBench, name: str, used_s: float) -> bool:
    """Return whether the kept list has this entry."""
    path: Path = bench.state / "devices.json"
    return {"name": name, "used_s": used_s}.items() <= {
        key: value
        for one in json.loads(path.read_text())
        if one["name"] == name
        for key, value in one.items()
    }.items()

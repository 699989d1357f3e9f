"""Rules of a moment, by a passed-in clock; changes, and their undoing."""

import datetime
import subprocess
import threading
import time
import zoneinfo
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.access.rights import RecordingRights
from fpvcar.config import ConfigError
from fpvcar.runtime.texts import Text
from fpvsites import gate, state
from fpvsites.__main__ import main
from fpvsites.config import Config, Group
from fpvsites.page import Page
from fpvsites.rules import Rules, Switch, permission, rules, switch_until
from fpvstation.errors import StationError, require

ZONE = datetime.timezone(datetime.timedelta(hours=2))
KIDS = Group(("02:00:5e:10:00:01",), ("a.org",), hours=("Mon-Fri 08:00-12:00", "Mon 12:00-13:00"))
CONFIG = Config("wlan0", ("9.9.9.9",), groups={"kids": KIDS, "staff": Group(everything=True)})


def clock(text: str) -> datetime.datetime:
    """Return a time in the week that starts with Monday, 23 November 2026."""
    return datetime.datetime.fromisoformat(f"2026-11-{text}").replace(tzinfo=ZONE)


def at(text: str, **switches: Switch) -> Rules:
    return rules(CONFIG, switches, clock(text))


@pytest.mark.parametrize(
    ("now", "mode", "until"),
    [
        ("23 07:59:59", "nothing", "23 08:00"),
        ("23 08:00:00", "sites", "23 13:00"),
        ("23 12:59:59", "sites", "23 13:00"),
        ("23 13:00:00", "nothing", "24 08:00"),
        ("27 11:59:59", "sites", "27 12:00"),
        ("27 12:00:00", "nothing", "30 08:00"),
    ],
)
def test_timetable_changes_at_its_edge(now: str, mode: str, until: str) -> None:
    kids, staff = at(now).groups
    assert (kids.mode, kids.until) == (mode, clock(until))
    assert (staff.mode, staff.until) == ("everything", None)
    assert ("server=/a.org/9.9.9.9\n" in kids.dnsmasq) == (mode == "sites")
    assert "\nlog-queries" not in kids.dnsmasq and " log" not in at(now).nft


def test_open_group_closes_by_the_kernels_clock() -> None:
    edge = int(clock("23 13:00").timestamp())
    made = at("23 09:00").nft
    assert f"meta time >= {edge} drop" in made and f"meta time < {edge} accept" in made
    assert "meta time" not in at("23 13:00").nft


def test_switch_rules_until_its_time() -> None:
    switch = Switch("everything", clock("23 18:00").timestamp())
    kids = at("23 17:59:59", kids=switch).groups[0]
    assert (kids.mode, kids.until) == ("everything", clock("23 18:00"))
    assert at("23 18:00:00", kids=switch) == at("23 18:00:00")
    closed = Switch("nothing", clock("23 10:00").timestamp())
    assert at("23 09:00", kids=closed).groups[0].mode == "nothing"


def test_permissions_have_own_marks_and_sets() -> None:
    """A change of the sites cuts the connections that the old ones allowed."""
    before = at("23 09:00")
    assert at("24 09:00").parts == before.parts, "another day: the same permissions"
    other = msgspec.structs.replace(KIDS, sites=("a.org", "b.org"))
    config = msgspec.structs.replace(CONFIG, groups={**CONFIG.groups, "kids": other})
    after = rules(config, {}, clock("23 09:00"))
    assert {part for part in after.parts & before.parts if "kids" in part} == set()


@pytest.mark.parametrize("text", ["8:00", "25:00", "12:60", "24:01", "noon", "١٢:٠٠", ""])
def test_bad_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="refused: it is 09:00; expected a later time"):
        switch_until(text, clock("23 09:00"))


def test_past_time_is_refused() -> None:
    with pytest.raises(ConfigError, match='time "09:00" refused: it is 09:00;'):
        switch_until("09:00", clock("23 09:00"))
    assert switch_until("24:00", clock("23 09:00")) == clock("24 00:00").timestamp()


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "until", "utc"),
    [
        ("2026-10-25 01:30", "08:00", "2026-10-25 07:00"),
        ("2027-03-28 01:30", "08:00", "2027-03-28 06:00"),
        ("2026-10-25 01:30", "02:30", "2026-10-25 00:30"),
        ("2026-10-25 01:30", "24:00", "2026-10-25 23:00"),
        ("2027-03-28 00:30", "24:00", "2027-03-28 22:00"),
    ],
)
@pytest.mark.parametrize("zone", [BERLIN, state.LocalZone()])
def test_clock_change_moves_no_time_of_a_switch(
    now: str, until: str, utc: str, zone: datetime.tzinfo, berlin: None
) -> None:
    begin = datetime.datetime.fromisoformat(now).replace(tzinfo=zone)
    expected = datetime.datetime.fromisoformat(f"{utc}+00:00")
    assert switch_until(until, begin) == expected.timestamp()


@pytest.mark.parametrize(
    ("hours", "now", "is_open", "until"),
    [
        ("01:00-18:00", "2026-10-24T23:30", True, "2026-10-25T17:00"),
        ("01:00-18:00", "2027-03-28T00:30", True, "2027-03-28T16:00"),
        ("20:00-24:00", "2026-10-25T00:00", False, "2026-10-25T19:00"),
        ("01:00-02:30", "2026-10-25T00:29", True, "2026-10-25T00:30"),
        ("01:00-02:30", "2026-10-25T00:31", False, "2026-10-25T01:00"),  # 2:00 again
        ("01:00-02:30", "2026-10-25T01:29", True, "2026-10-25T01:30"),
        ("01:00-02:30", "2027-03-28T00:59", True, "2027-03-28T01:00"),  # 3:00 after 1:59
        ("02:15-04:00", "2027-03-28T00:59", False, "2027-03-28T01:00"),
    ],
)
@pytest.mark.parametrize("zone", [BERLIN, state.LocalZone()])
def test_timetable_follows_the_clocks_when_they_change(
    hours: str, now: str, is_open: bool, until: str, zone: datetime.tzinfo, berlin: None
) -> None:
    group = Group(("02:00:5e:10:00:01",), ("a.org",), hours=(f"Sun {hours}",))
    begin = datetime.datetime.fromisoformat(f"{now}+00:00").astimezone(zone)
    mode, end = permission(group, None, begin)
    assert mode == ("sites" if is_open else "nothing")
    assert end is not None and f"{end.astimezone(datetime.UTC):%FT%H:%M}" == until


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this computer be in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_local_zone_gives_each_instant_back(berlin: None) -> None:
    for day in ("2026-10-25", "2027-03-28"):
        begin_s = datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() - 7200
        for quarter in range(20):
            at_s = begin_s + 900 * quarter
            here = datetime.datetime.fromtimestamp(at_s, state.LocalZone())
            assert here.timestamp() == at_s
            assert here.isoformat() == datetime.datetime.fromtimestamp(at_s, BERLIN).isoformat()


def test_changes_at_once_are_all_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "check_programs", lambda: None)
    monkeypatch.setattr("fpvsites.__main__.CONFIRM_S", 60.0)
    changed(tmp_path, state.applied(CONFIG))
    over = threading.Event()

    def enforce() -> None:
        while not over.wait(0.02):
            newest = state.newest(state.load(tmp_path))
            state.save(tmp_path / state.IN_FORCE, state.InForce(newest.at_s))

    words = ["everything", "--until", "24:00", "--state", str(tmp_path)]
    thread = threading.Thread(target=enforce)
    thread.start()
    with ThreadPoolExecutor(8) as pool:
        groups = [("kids", "staff")[number % 2] for number in range(8)]
        found = list(pool.map(lambda group: main(["allow", group, *words]), groups))
    over.set()
    thread.join()
    assert found == [0] * 8 and len(state.load(tmp_path)) == 9, capsys.readouterr().err
    assert set(state.load(tmp_path)[-1].switches) == {"kids", "staff"}


def changed(folder: Path, change: state.Change) -> state.State:
    with state.changing(folder) as states:
        return change(states, clock("23 09:00"))


def test_undo_takes_each_change_back(tmp_path: Path) -> None:
    switch = Switch("everything", clock("23 18:00").timestamp())
    first = changed(tmp_path, state.applied(CONFIG))
    second = changed(tmp_path, state.switched("kids", switch, "kids: everything until 18:00"))
    changed(tmp_path, state.removed)
    assert state.load(tmp_path)[-1].config is None
    with pytest.raises(StationError, match="the rules are off"):
        changed(tmp_path, state.switched("kids", switch, ""))
    assert changed(tmp_path, state.undone) == second
    assert changed(tmp_path, state.undone) == first == state.load(tmp_path)[-1]
    with pytest.raises(StationError, match="nothing to undo"):
        changed(tmp_path, state.undone)
    assert state.load(tmp_path) == [first]


def test_change_before_first_apply_and_unknown_group_are_refused(tmp_path: Path) -> None:
    switch = Switch("everything", 0.0)
    with pytest.raises(StationError, match="no rules yet"):
        changed(tmp_path, state.switched("kids", switch, ""))
    changed(tmp_path, state.applied(CONFIG))
    with pytest.raises(ConfigError, match='group "kid" is unknown; groups: kids, staff'):
        changed(tmp_path, state.switched("kid", switch, ""))
    assert len(state.load(tmp_path)) == 1


def test_garbled_state_names_the_next_step(tmp_path: Path) -> None:
    (tmp_path / state.CHANGES).write_text("[{")
    with pytest.raises(StationError, match="delete it, then fpvsites apply"):
        state.load(tmp_path)


def test_kept_changes_are_bounded(tmp_path: Path) -> None:
    for _ in range(state.KEPT + 5):
        changed(tmp_path, state.applied(CONFIG))
    assert len(state.load(tmp_path)) == state.KEPT


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        (None, "nft is not installed; sudo apt install nftables"),
        ("", "dnsmasq is not installed; sudo apt install dnsmasq-base"),
        ("Dnsmasq version 2.85\nno-nftset", r"too old \(Dnsmasq version 2.85\): expected 2.90"),
        ("Dnsmasq version 2.89\nnftset", r"too old \(Dnsmasq version 2.89\): expected 2.90"),
        ("Dnsmasq version 2.90\nno-nftset", r"2.90 or newer, built with nftset"),
    ],
)
def test_missing_program_is_named_with_its_package(
    said: str | None,
    refusal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Programs of other versions, as an older Debian has them."""

    def which(name: str, path: str) -> str | None:
        if said is None or (name == "dnsmasq" and not said):
            return None
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{said}'\n")
        program.chmod(0o755)
        return str(program)

    monkeypatch.setattr("shutil.which", which)
    with pytest.raises(StationError, match=refusal):
        gate.check_programs()
    assert main(["off", "--state", str(tmp_path)]) == 1
    assert not (tmp_path / state.CHANGES).exists() and "fpvsites: " in capsys.readouterr().err


def test_installed_programs_pass_the_check() -> None:
    gate.check_programs()


def test_rules_are_valid_for_dnsmasq() -> None:
    for group in at("23 09:00").groups:
        words = [require("dnsmasq"), "--test", "--conf-file=-"]
        done = subprocess.run(words, input=group.dnsmasq, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class GrownUps(RecordingRights):
    """Rights of a client that has entered the password."""

    def let_grown_up(self, request: web.Request) -> None:
        pass


async def test_texts_of_the_page_have_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed(tmp_path, state.applied(CONFIG))
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    gate.Gate(tmp_path).step()
    async with TestClient(TestServer(Page(tmp_path, GrownUps()).application())) as client:
        said = await (await client.get("/api/sites")).json()
        fault = msgspec.convert(said["fault"], Text)
        assert str(fault) == "nft is not installed; sudo apt install nftables"
        assert (fault.key, fault.values["program"]) == ("not_installed", "nft")
        order = {"group": "kids", "mode": "nothing", "until": "00:00"}
        late = await client.post("/api/sites/switch", json=order)
        assert late.status == 400 and "key=sites_time" in late.headers["X-Refusal"]
        strange = await client.post(
            "/api/sites/switch", json={**order, "group": "kid", "until": "24:00"}
        )
        assert strange.status == 409 and "key=sites_group" in strange.headers["X-Refusal"]
        foreign = await client.get("/", headers={"Host": "evil.example"})
        assert foreign.status == 403 and "key=foreign_host" in foreign.headers["X-Refusal"]


class OldReport(msgspec.Struct):
    """Report of `fpvsites run` of the version before."""

    at_s: float
    fault: str = ""
    sent: str = ""


async def test_report_is_read_by_the_version_before_and_its_own_by_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, state.applied(CONFIG))
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    gate.Gate(tmp_path).step()
    path = tmp_path / state.IN_FORCE
    report = msgspec.json.decode(path.read_bytes(), type=OldReport)
    assert report.fault == "nft is not installed; sudo apt install nftables"
    path.write_bytes(msgspec.json.encode(OldReport(1.0, "nft: no", "key=says&place=nft")))
    async with TestClient(TestServer(Page(tmp_path, GrownUps()).application())) as client:
        said = await (await client.get("/api/sites")).json()
    assert str(msgspec.convert(said["fault"], Text)) == "nft: no"

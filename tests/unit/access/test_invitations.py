"""Invitations: a grown-up's QR code lets one device drive until its hour, no longer."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request
from testkit.car import Car, Client
from testkit.hub import CODES, House, Visitor

from fpvcar.access.codes import TRIES, TRIES_ALL, Rights, new_codes
from fpvcar.access.invitations_api import BASE, InvitationsApi
from fpvcar.access.remembered_browsers import FILE, INVITED, PASS_S, Devices
from fpvcar.access.rights import CODE
from fpvcar.http import addresses
from fpvcar.http.endpoints import Address
from fpvcar.wire import down, up
from tests.unit.seat.test_authorization import again, people, remembered

HOUR_S = 3600.0


@pytest.fixture
def house() -> House:
    """Return a house whose UTC advances with its clock."""
    made = House(utc_s=lambda: made.now_s)
    return made


def invited(house: House, name: str = "Bo", minutes: float = 60.0) -> Visitor:
    """Return a visitor that came by an invitation."""
    guest = house.visitor(name, drive=False)
    guest.say(up.Unlock(house.devices.invite(minutes, house.now_s)))
    return guest


def test_guest_drives_for_the_hour_and_then_the_car_stops(house: House) -> None:
    bo = invited(house)
    offered = bo.session._outbox[-1]
    assert isinstance(offered, down.Pass) and offered.left_s == HOUR_S
    bo.say(up.Take())
    bo.drive_off(0.5)
    assert bo.state.role == "driver" and house.duties != (0.0, 0.0)
    house.now_s += HOUR_S - 1.0
    bo.drive_off(0.5)
    assert bo.state.may_drive and house.duties != (0.0, 0.0)
    house.now_s += 1.0
    assert bo.state.role == "watching" and not bo.state.may_drive
    assert bo.errors()[-1].what == "your time to drive is over"
    house.control.tick()
    assert house.duties == (0.0, 0.0) and not house.devices.all()


def test_invitation_is_for_one_device_and_remembered_there(house: House) -> None:
    token = house.devices.invite(60.0, house.now_s)
    bo, eve = house.visitor("Bo", drive=False), house.visitor("Eve", drive=False)
    bo.say(up.Unlock(token))
    eve.say(up.Unlock(token))
    assert bo.state.may_drive and not eve.state.may_drive
    assert eve.errors()[-1].what == "wrong code"
    remembered(house, bo)
    assert again(house, bo, "Tab").state.may_drive
    assert [one.name for one in house.devices.all()] == ["Tab"]
    house.now_s += HOUR_S
    assert not again(house, bo, "Late").state.may_drive


def test_valid_invitation_opens_while_strangers_guess(house: House) -> None:
    token = house.devices.invite(60.0, house.now_s)
    for number in range(TRIES_ALL):
        guesser = house.visitor("Eve", drive=False, address=f"10.0.{number}.1")
        guesser.say(up.Unlock("000000"))
    bo = house.visitor("Bo", drive=False, address="10.0.0.1")
    for _ in range(TRIES):
        bo.say(up.Unlock("000000"))
    assert bo.errors()[-1].what == "too many wrong codes"
    bo.say(up.Unlock(token))
    assert bo.state.may_drive
    mum = house.visitor("Mum", drive=False, address="10.9.9.9")
    mum.say(up.Unlock(CODES.grown_up))
    assert mum.state.grown_up


def test_invitation_in_the_hello_gives_drive_rights(house: House) -> None:
    bo = house.visitor("Bo", drive=False, code=house.devices.invite(5, house.now_s))
    assert bo.state.may_drive and not bo.state.grown_up


def test_expired_invitation_is_a_wrong_code(house: House) -> None:
    token = house.devices.invite(5.0, house.now_s)
    house.now_s += 5 * 60.0
    bo = house.visitor("Bo", drive=False, code=token)
    assert not bo.state.may_drive and bo.errors()[-1].what == "wrong code"


def test_guesser_of_invitations_waits_like_a_guesser_of_codes(house: House) -> None:
    eve = house.visitor("Eve", drive=False)
    for number in range(TRIES):
        eve.say(up.Unlock(f"{number:032x}"))
    for code in (f"{TRIES:032x}", CODES.drive):
        eve.say(up.Unlock(code))
        assert eve.errors()[-1].what == "too many wrong codes"
    assert not eve.state.may_drive


def test_unlock_by_a_driver_does_not_use_up_an_invitation(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    token = house.devices.invite(60.0, house.now_s)
    mum.say(up.Unlock(token))
    assert mum.errors()[-1].what == "you may drive already" and mum.state.grown_up
    bo = house.visitor("Bo", drive=False, code=token)
    assert bo.state.may_drive


def test_grown_up_sees_and_ends_guests_and_open_invitations(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    bo = invited(house)
    token = house.devices.invite(30.0, house.now_s)
    house.now_s += 60.0
    seen = people(mum)
    assert seen["Bo"].left_s == HOUR_S - 60.0 and seen["Mum"].left_s == 0.0
    assert seen[INVITED].left_s == 29 * 60.0 and not seen[INVITED].drives
    mum.say(up.End(seen["Bo"].id))
    mum.say(up.End(seen[INVITED].id))
    assert not bo.state.may_drive
    assert bo.errors()[-1].what == "a grown-up has ended your rights"
    bo.say(up.Unlock(token))
    assert not bo.state.may_drive
    seen = people(mum)
    assert set(seen) == {"Mum", "Bo"} and seen["Bo"].watches


@pytest.mark.parametrize("code", [CODES.drive, CODES.grown_up])
def test_guest_entering_a_code_stays(house: House, code: str) -> None:
    bo = invited(house)
    remembered(house, bo)
    bo.say(up.Unlock(code))
    offered = bo.session._outbox[-1]
    assert isinstance(offered, down.Pass) and offered.left_s == 0.0
    assert bo.state.grown_up == (code == CODES.grown_up)
    remembered(house, bo)
    house.now_s += HOUR_S
    assert bo.state.may_drive and len(house.devices.all()) == 1
    device = bo.session.device
    assert device and device.until_s - house.now_s > PASS_S - HOUR_S - 1


def test_invitations_outlive_a_restart_and_hold_no_token(tmp_path: Path) -> None:
    devices = Devices(bytes(32), CODES, tmp_path / FILE)
    token = devices.invite(60.0, 1000.0)
    asyncio.run(devices.save(1000.0))
    assert token not in (tmp_path / FILE).read_text()
    loaded = Devices(bytes(32), CODES, tmp_path / FILE)
    assert loaded.find_invitation(token, 1000.0) and not loaded.find_invitation("", 1000.0)
    others = Devices(bytes(32), new_codes(), tmp_path / FILE)
    assert not others.find_invitation(token, 1000.0), "new codes end it"


def test_oldest_of_too_many_invitations_is_dropped(tmp_path: Path) -> None:
    devices = Devices(bytes(32), CODES, tmp_path / FILE)
    tokens = [devices.invite(60.0, 1000.0 + n) for n in range(10)]
    good = [bool(devices.find_invitation(token, 1100.0)) for token in tokens]
    assert good == [False] * 2 + [True] * 8
    assert {len(bytes.fromhex(token)) for token in tokens} == {16}


def test_guest_is_no_grown_up_even_with_the_clock_in_1970(tmp_path: Path) -> None:
    devices = Devices(bytes(32), CODES, tmp_path / FILE)
    guest = devices.find_invitation(devices.invite(60.0, 1.0), 1.0)
    assert guest and guest.rights(1.0) == Rights(drive=True)


class Inviting(Car):
    """Car that listens at `host`."""

    def __init__(self, folder: Path, host: str = "0.0.0.0") -> None:
        super().__init__(utc_s=lambda: self.now_s, folder=folder)
        rights, address = self.vehicle.rights, Address(host, 8080, None)
        self.api = InvitationsApi(self.devices, rights, address, lambda: self.now_s)

    def ask(self, code: str = CODES.grown_up) -> AbstractAsyncContextManager[Client]:
        return self.serve(self.api, code=code)


async def test_invitation_has_a_reachable_link_and_its_qr_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "lan_address", lambda: "10.1.2.3")
    inviting = Inviting(tmp_path)
    async with inviting.ask() as client:
        answer = await client.post(f"{BASE}?minutes=30")
        assert answer.status == 200 and answer.headers["Cache-Control"] == "no-store"
        said = await answer.json()
        page, token = said["link"].split("#invited=")
        assert page == "http://10.1.2.3:8080/" and said["left_s"] == 1800.0
        assert inviting.devices.find_invitation(token, inviting.now_s)
        assert "<svg xmlns=" in said["qr"] and "#fff" in said["qr"]
        near = await (await client.post(BASE, headers={"Host": "10.9.9.9:81"})).json()
        assert near["link"].startswith("http://10.9.9.9:81/#") and near["left_s"] == HOUR_S


@pytest.mark.parametrize("minutes", [5, 720])
async def test_invitation_may_last_five_minutes_to_twelve_hours(
    tmp_path: Path, minutes: int
) -> None:
    inviting = Inviting(tmp_path)
    async with inviting.ask() as client:
        answer = await client.post(f"{BASE}?minutes={minutes}", headers={"Host": "10.9.9.9:81"})
        assert (await answer.json())["left_s"] == 60.0 * minutes


@pytest.mark.parametrize("minutes", ["4.9", "721", "nan", "soon"])
async def test_invitation_time_out_of_bounds_is_refused(tmp_path: Path, minutes: str) -> None:
    inviting = Inviting(tmp_path)
    async with inviting.ask() as client:
        answer = await client.post(f"{BASE}?minutes={minutes}")
        assert answer.status == 400 and "5 to 720" in await answer.text()
    assert not inviting.devices.invitations()


@pytest.mark.parametrize(
    ("code", "host", "status", "words"),
    [
        (CODES.drive, "0.0.0.0", 401, "Only a grown-up can do that"),
        (CODES.grown_up, "127.0.0.1", 409, "--host 0.0.0.0"),
    ],
)
async def test_refused_invitation_names_the_reason(
    tmp_path: Path, code: str, host: str, status: int, words: str
) -> None:
    inviting = Inviting(tmp_path, host)
    async with inviting.ask(code) as client:
        answer = await client.post(BASE)
        assert answer.status == status and words in await answer.text()
    assert not inviting.devices.invitations()


async def test_invitation_without_a_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "lan_address", lambda: "127.0.0.1")
    inviting = Inviting(tmp_path)
    async with inviting.ask() as client:
        answer = await client.post(BASE)
        assert answer.status == 409 and "join a network" in await answer.text()
        assert not inviting.devices.invitations()
        near = await client.post(BASE, headers={"Host": "10.9.9.9:81"})
        assert near.status == 200


async def test_guest_cookie_lasts_the_hour_and_longer_after_a_code(tmp_path: Path) -> None:
    inviting = Inviting(tmp_path)
    token = inviting.devices.invite(60.0, inviting.now_s)
    guest = inviting.devices.find_invitation(token, inviting.now_s)
    assert guest
    inviting.devices.accept_invitation(guest, "Bo", "10.0.0.1", inviting.now_s)
    request = make_mocked_request("POST", "/api/pass")
    answer = await inviting.devices.cookie_response(guest, inviting.now_s, request)
    assert Devices(bytes(32), CODES, inviting.devices._path).get(guest.id), "it is saved"
    cookie, age, *_ = answer.headers["Set-Cookie"].split("; ")
    assert cookie.startswith("fpvcar-pass=") and age == f"Max-Age={HOUR_S:.0f}"
    async with inviting.ask("") as client:
        said = await client.post(
            "/api/recordings/unlock", headers={CODE: CODES.drive, "Cookie": cookie}
        )
        assert said.status == 204
    assert not guest.guest and guest.until_s == inviting.now_s + PASS_S

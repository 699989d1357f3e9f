"""Browsers remembered by a cookie: for how long, and how a cookie is revoked."""

import asyncio
import errno
import json
import os
import ssl
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request
from testkit.car import Car
from testkit.hub import CODES

from fpvcar.access.codes import Codes, Rights
from fpvcar.access.remembered_browsers import COOKIE, FILE, GROWN_UP_S, Device, Devices
from fpvcar.runtime import files

KEY = bytes(range(32))
MONTH_S, DEVICES = 2_592_000, 64
DRIVER, GROWN_UP = Rights(drive=True), Rights(drive=True, grown_up=True)


def listed(folder: Path, key: bytes = KEY, codes: Codes = CODES) -> Devices:
    return Devices(key, codes, folder / FILE)


@pytest.fixture
def devices(tmp_path: Path) -> Devices:
    return listed(tmp_path)


def test_cookie_is_signed_by_the_car_and_expires(devices: Devices) -> None:
    device = devices.add("Ann", "10.0.0.1", DRIVER, 1000.5)
    cookie = devices.cookie(device)
    assert devices.find(cookie, 1000.5) is device
    assert devices.find(cookie, 999.0 + MONTH_S) is device
    assert devices.find(cookie, 1000.0 + MONTH_S) is None
    assert device.rights(2000.0) == DRIVER and device.where == "home network"
    name, until, mac = cookie.split(".")
    later = f"{name}.{int(until) + 1}.{mac}"
    for other in ("", "x", later, f"{name}.{until}.{'0' * 64}", f"{cookie}\n", "é" * 99):
        assert devices.find(other, 1000.0) is None, other


@pytest.mark.parametrize(
    ("secure", "cookies", "known"),
    [
        (True, "__Host-fpvcar-pass={mine}; fpvcar-pass={other}", True),
        (True, "fpvcar-pass={other}; __Host-fpvcar-pass={mine}", True),
        (True, "fpvcar-pass=stale; __Host-fpvcar-pass={mine}", True),
        (True, "__Host-fpvcar-pass=stale; fpvcar-pass={mine}", True),
        (True, "fpvcar-pass={mine}", True),
        (True, "fpvcar-pass=stale", False),
        (True, "", False),
        (False, "fpvcar-pass={mine}", True),
        (False, "fpvcar-pass=stale; __Host-fpvcar-pass={mine}", True),  # a proxy ends TLS
        (False, "__Host-fpvcar-pass=stale; __Secure-fpvcar-pass={mine}", True),  # below a path
    ],
)
def test_secure_cookie_comes_first(
    secure: bool, cookies: str, known: bool, devices: Devices
) -> None:
    """A plain one may be old, or set by another page under the car's address."""
    mine, other = (devices.add(name, "10.0.0.1", DRIVER, 0.0) for name in "ab")
    said = cookies.format(mine=devices.cookie(mine), other=devices.cookie(other))
    tls = ssl.create_default_context() if secure else None
    request = make_mocked_request("GET", "/", {"Cookie": said}, sslcontext=tls)
    assert request.secure is secure
    assert devices.device_of(request, 1.0) is (mine if known else None)


def test_cookie_fails_with_another_key_or_new_codes(tmp_path: Path, devices: Devices) -> None:
    device = devices.add("Ann", "10.0.0.1", DRIVER, 0.0)
    asyncio.run(devices.save(0.0))
    assert listed(tmp_path).find(devices.cookie(device), 1.0) == device
    for other in (
        listed(tmp_path, bytes(32)),
        listed(tmp_path, KEY, Codes("654321", "grownups")),
        listed(tmp_path, KEY, Codes("123456", "grownup2")),
    ):
        assert other.find(devices.cookie(device), 1.0) is None


def test_grown_up_rights_end_without_use_drive_rights_stay(devices: Devices) -> None:
    device = devices.add("Mum", "10.0.0.1", GROWN_UP, 100.0)
    assert device.rights(99.0 + GROWN_UP_S) == GROWN_UP
    assert device.rights(100.0 + GROWN_UP_S) == DRIVER
    assert device.rights(99.95) == DRIVER, "a clock that was set back proves nothing"
    devices.note_use(device, 1500.0)
    assert device.rights(1499.0 + GROWN_UP_S) == GROWN_UP
    devices.lock(device)
    assert device.rights(1500.0) == DRIVER


def test_ended_device_stays_ended_after_a_restart(tmp_path: Path, devices: Devices) -> None:
    ann, bob = (devices.add(name, "10.0.0.1", DRIVER, 0.0) for name in ("Ann", "Bob"))
    asyncio.run(devices.save(0.0))
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    devices.end(ann.id)
    devices.end("nobody")
    asyncio.run(devices.save(0.0))
    for each in (devices, listed(tmp_path)):
        assert each.find(devices.cookie(ann), 1.0) is None
        assert each.find(devices.cookie(bob), 1.0) == bob


def test_full_list_drops_the_device_away_longest(devices: Devices) -> None:
    first = devices.add("first", "10.0.0.1", DRIVER, 0.0)
    second = devices.add("second", "10.0.0.1", DRIVER, 1.0)
    devices.note_visit(first, "came back", 2.0)
    for number in range(DEVICES - 1):
        devices.add(str(number), "10.0.0.1", DRIVER, 3.0)
    assert len(devices.all()) == DEVICES
    assert first in devices.all() and second not in devices.all()


@pytest.mark.parametrize(
    "rubbish", [b"", b"{}", b'[{"id":7}]', b"\xff", b'[{"id":"\xff"', b'[{"x":' + b"[" * 5000]
)
def test_damaged_list_is_empty_and_logged(
    tmp_path: Path, rubbish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(rubbish)
    assert listed(tmp_path).all() == []
    assert "must enter the code again" in caplog.text


def test_entry_of_a_later_version_loses_only_itself(
    tmp_path: Path, devices: Devices, caplog: pytest.LogCaptureFixture
) -> None:
    ann = devices.add("Ann", "10.0.0.1", DRIVER, 0.0)
    entries = [msgspec.to_builtins(ann) | {"new": 1}, msgspec.to_builtins(ann) | {"guest": "week"}]
    (tmp_path / FILE).write_bytes(msgspec.json.encode(entries))
    (read,) = listed(tmp_path).all()
    assert read == msgspec.structs.replace(ann, later=read.later)
    asyncio.run((again := listed(tmp_path)).save(0.0))
    assert json.loads((tmp_path / FILE).read_bytes())[0]["new"] == 1, "written back unchanged"
    assert again.get(ann.id) == read
    assert "must enter the code again" in caplog.text


def test_failing_card_is_logged_and_devices_stay_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    devices = listed(tmp_path / "nowhere")
    device = devices.add("Ann", "10.0.0.1", DRIVER, 0.0)
    asyncio.run(devices.save(0.0))
    assert "tried again every 5 s" in caplog.text
    assert "new devices must enter the code" in caplog.text
    assert devices.find(devices.cookie(device), 1.0) is device


async def test_device_ended_while_card_is_full_stays_ended_after_restart(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    devices: Devices,
) -> None:
    caplog.set_level("INFO")
    ann = devices.add("Ann", "10.0.0.1", DRIVER, 0.0)
    await devices.save(0.0)
    tries, whole = 0, files.write_whole

    def full_twice(path: Path, pieces: list[bytes]) -> int:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return whole(path, pieces)

    monkeypatch.setattr(files, "write_whole", full_twice)
    devices.end(ann.id)
    await devices.save(0.0)
    assert str(devices.unsaved) == "No space left on device"
    devices._changed.set()
    job = asyncio.create_task(devices.run(retry_s=0.001))
    for _ in range(5000):
        if devices.unsaved:
            await asyncio.sleep(0.001)
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
    assert devices.unsaved is None and tries == 3
    assert listed(tmp_path).find(devices.cookie(ann), 1.0) is None
    assert caplog.text.count("No space left") == 1, "logged once, not at each try"
    assert caplog.text.count("saved again") == 1


def test_full_list_with_clock_in_1970_keeps_the_newest(tmp_path: Path) -> None:
    devices, now_s = listed(tmp_path), 1.8e9
    for number in range(DEVICES):
        devices.add(str(number), "10.0.0.1", DRIVER, now_s)
    newest = devices.add("after a power cut", "10.0.0.1", DRIVER, 60.0)
    names = [one.name for one in devices.all()]
    assert newest in devices.all()
    assert len(names) == DEVICES and "0" not in names and "1" in names


def test_device_used_with_clock_in_1970_outlives_idle_devices(tmp_path: Path) -> None:
    devices, now_s = listed(tmp_path), 1.8e9
    mum = devices.add("Mum", "10.0.0.1", GROWN_UP, now_s)
    for number in range(DEVICES - 1):
        devices.add(str(number), "10.0.0.1", DRIVER, now_s)
    devices.note_use(mum, 60.0)
    asyncio.run(devices.save(60.0))
    again = listed(tmp_path)
    again.add("new", "10.0.0.1", DRIVER, 61.0)
    names = [one.name for one in again.all()]
    assert "Mum" in names and "0" not in names


def test_device_seen_after_its_end_stays_off_the_list(devices: Devices) -> None:
    ann = devices.add("Ann", "10.0.0.1", GROWN_UP, 0.0)
    devices.end(ann.id)
    devices.note_visit(ann, "Ann", 1.0)
    devices.note_use(ann, 2.0)
    assert devices.all() == []


def test_changes_are_saved_at_once_and_use_rarely(devices: Devices) -> None:
    mum = devices.add("Mum", "10.0.0.1", DRIVER, 0.0)

    def guest() -> Device:
        return devices.all()[-1]

    def changed(now_s: float, act: Callable[[], object]) -> bool:
        act()
        was_set = devices._changed.is_set()
        asyncio.run(devices.save(now_s))
        return was_set

    assert changed(0.0, lambda: None), "the new device"
    assert changed(1.0, lambda: devices.note_use(mum, 1.0)), "the first use"
    assert not changed(1.0, lambda: devices.note_use(mum, 300.9))
    assert changed(301.0, lambda: devices.note_use(mum, 301.0))
    assert changed(301.0, lambda: devices.note_use(mum, 1.0)), "the clock was set back"
    assert changed(301.0, lambda: devices.lock(mum))
    assert changed(301.0, lambda: devices.note_use(mum, 302.0)), "the first since the lock"
    assert not changed(301.0, lambda: devices.note_visit(mum, "Mum", 303.0))
    assert changed(301.0, lambda: devices.invite(60.0, 304.0))
    assert changed(301.0, lambda: devices.accept_invitation(guest(), "Bo", "10.0.0.2", 304.0))
    assert (guest().name, guest().invitation) == ("Bo", "")
    assert changed(301.0, lambda: devices.make_permanent(guest(), 304.0))
    assert changed(301.0, lambda: devices.note_use(guest(), 305.0))
    assert not changed(301.0, lambda: devices.end("nobody"))
    assert changed(301.0, lambda: devices.end(mum.id))


class Saves:
    """`run` of a list for some milliseconds; counts its writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self._write = 0, files.write_whole
        monkeypatch.setattr(files, "write_whole", self._counted)

    def _counted(self, path: Path, pieces: list[bytes]) -> int:
        self.count += 1
        return self._write(path, pieces)

    async def of(self, devices: Devices) -> int:
        job = asyncio.create_task(devices.run(retry_s=60.0))
        for _ in range(5000):
            if not self.count:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        return self.count


async def test_run_saves_a_new_device_once(
    tmp_path: Path, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices.add("Ann", "10.0.0.1", DRIVER, 0.0)
    assert await Saves(monkeypatch).of(devices) == 1
    assert [one.name for one in listed(tmp_path).all()] == ["Ann"]


async def test_run_waits_before_it_saves_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = listed(tmp_path / "nowhere")
    devices.add("Ann", "10.0.0.1", DRIVER, 0.0)
    assert await Saves(monkeypatch).of(devices) == 1 and devices.unsaved


async def test_ticket_makes_one_http_only_cookie(car: Car) -> None:
    async with car.serve() as client:
        ws, _ = await car.joins("Ann", "123456")
        said = await ws.receive_json()
        assert said["kind"] == "pass"
        for ticket in ("", "x", "é"):
            answer = await client.post("/api/pass", headers={"X-Pass": ticket})
            assert answer.status == 403 and not answer.cookies
        head = {"X-Pass": said["ticket"]}
        foreign = {**head, "Sec-Fetch-Site": "same-site"}
        assert (await client.post("/api/pass", headers=foreign)).status == 403
        answer = await client.post("/api/pass", headers=head)
        assert answer.status == 204
        cookie = answer.cookies[COOKIE]
        assert cookie["httponly"] and cookie["samesite"] == "Strict"
        assert cookie["path"] == "/" and int(cookie["max-age"]) == MONTH_S
        assert not cookie["secure"], "this was plain http"
        assert (await client.post("/api/pass", headers=head)).status == 403
        await ws.close()
        ws = await car.opens("/ws/drive", "new")  # the client has the cookie
        assert (await ws.receive_json())["code_needed"] is False

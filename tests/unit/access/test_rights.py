"""Rights to recordings, by request: other sites, uses of grown-up rights, tries of codes.

seat/test_rights.py has the table of all routes, library/api/test_recordings_access.py the answers.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from testkit.hub import CODES

from fpvcar.access.codes import TRIES, CodeCheck, Rights
from fpvcar.access.remembered_browsers import COOKIE, FILE, Device, Devices
from fpvcar.access.rights import CODE, DeviceRights, RecordingRights
from fpvcar.http.rights import Right

NOW_S = 1_800_000_000.0
PAGE = {"Origin": "http://127.0.0.1:8080"}
RIGHTS = (Right.DRIVER, Right.DRIVERS_PAGE, Right.GROWN_UP)


class Door:
    """Rights of a car, and requests from another machine."""

    def __init__(self, folder: Path) -> None:
        self.now_s = 0.0
        self.devices = Devices(bytes(32), CODES, folder / FILE)
        codes = CodeCheck(CODES)
        self.rights = DeviceRights(codes, self.devices, lambda: self.now_s, lambda: NOW_S)

    def device(self, grown_up: bool, used_s: float = 0.0) -> Device:
        """Add a device that last used its rights so long ago."""
        return self.devices.add("Ann", "192.0.2.7", Rights(True, grown_up), NOW_S - used_s)

    def request(
        self, device: Device | None = None, headers: Mapping[str, str] = PAGE
    ) -> web.Request:
        cookie = {"Cookie": f"{COOKIE}={self.devices.cookie(device)}"} if device else {}
        request = make_mocked_request("POST", "/", headers={**headers, **cookie})
        return request.clone(remote="192.0.2.7")

    async def unlock(self, code: str, headers: Mapping[str, str] = PAGE) -> int:
        """Return the status of the answer to a code."""
        try:
            answer = await self.rights._unlock(self.request(headers={**headers, CODE: code}))
        except web.HTTPException as refusal:
            return refusal.status
        return answer.status


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


@pytest.mark.parametrize("right", RIGHTS)
def test_page_of_another_site_gets_no_right_by_a_grown_ups_cookie(door: Door, right: Right) -> None:
    mum = door.device(grown_up=True)
    door.rights.check(right, door.request(mum))
    with pytest.raises(web.HTTPForbidden):
        door.rights.check(right, door.request(mum, {"Sec-Fetch-Site": "cross-site"}))


@pytest.mark.parametrize("right", RIGHTS)
@pytest.mark.parametrize("headers", [{}, PAGE], ids=["program", "page"])
def test_unknown_client_of_another_machine_gets_no_right(
    door: Door, right: Right, headers: dict[str, str]
) -> None:
    with pytest.raises(web.HTTPUnauthorized):
        door.rights.check(right, door.request(headers=headers))


def test_grown_up_rights_are_used_by_changes_only(door: Door) -> None:
    mum, ann = door.device(grown_up=True, used_s=1000.0), door.device(grown_up=False)
    door.rights.check(Right.DRIVER, door.request(mum))
    assert mum.used_s == NOW_S - 1000.0 and mum.seen_s == NOW_S
    for device in (mum, ann):
        door.rights.check(Right.DRIVERS_PAGE, door.request(device))
    assert mum.used_s == NOW_S and ann.used_s == 0.0


async def test_code_opens_from_its_own_page_only(door: Door) -> None:
    assert await door.unlock(CODES.drive, {"Sec-Fetch-Site": "cross-site"}) == 403
    assert door.devices.all() == []
    assert await door.unlock(CODES.drive) == 204
    (device,) = door.devices.all()
    assert device.where == "home network"


async def test_code_is_not_read_until_the_wait_is_over(door: Door) -> None:
    for number in range(TRIES):
        assert await door.unlock(f"{number:06d}") == 401
    door.now_s = 59.95
    assert await door.unlock(CODES.drive) == 429
    door.now_s = 60.0
    assert await door.unlock(CODES.drive) == 204


def test_only_the_rights_of_a_car_take_codes(door: Door) -> None:
    assert door.rights.takes_codes and not RecordingRights().takes_codes
    assert RecordingRights().grown_up(door.request()) is False

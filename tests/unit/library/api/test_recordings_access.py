"""Rights to /api/recordings, on the car and on the page of some files."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer
from testkit import mcaps
from testkit.hub import House, server_of
from testkit.recordings import CODES, NAME, Client, ask, no_devices, routes_of

from fpvcar.access.codes import CodeCheck, Rights
from fpvcar.access.remembered_browsers import COOKIE, PASS_S
from fpvcar.access.rights import CODE, DeviceRights
from fpvcar.cli import play
from fpvcar.library.api.exports import EXPORTS
from fpvcar.wire import up


async def test_recordings_need_a_code_and_its_cookie(folder: Path) -> None:
    async def status(client: Client, method: str, path: str, **more: Any) -> int:
        answer: ClientResponse = await client.request(method, path, **more)
        return answer.status

    async with ask(folder, at_home=False) as client:
        base, unlock = "/api/recordings", "/api/recordings/unlock"
        for end in ("", f"/{NAME}", f"/{NAME}/units", f"/{NAME}/table"):
            assert await status(client, "GET", base + end) == 401
        assert await status(client, "POST", unlock, headers={CODE: "000000"}) == 401
        assert await status(client, "GET", base) == 401
        answer = await client.get(base)
        assert answer.headers["X-Opened-By"] == "code"
        assert answer.headers["X-Refusal"] == "key=drive_code_needed"
        answer = await client.post(unlock, headers={CODE: "123456"})
        assert answer.status == 204
        cookie = answer.headers["Set-Cookie"]
        for word in ("HttpOnly", "SameSite=Strict", "Path=/;", f"Max-Age={PASS_S}"):
            assert word in cookie
        assert "123456" not in cookie
        token = {"Cookie": cookie.partition(";")[0]}
        assert await status(client, "GET", base, headers=token) == 200
        assert await status(client, "GET", f"{base}/{NAME}", headers=token) == 200
        forged = {"Cookie": f"{COOKIE}=x"}
        client.session.cookie_jar.clear()
        assert await status(client, "GET", base, headers=forged) == 401


async def test_sixth_wrong_code_a_minute_has_to_wait(folder: Path) -> None:
    async with ask(folder, at_home=False) as client:
        tries = [
            await client.post("/api/recordings/unlock", headers={CODE: f"{number:06d}"})
            for number in range(6)
        ]
        assert [one.status for one in tries] == [401] * 5 + [429]
        assert "try again in 60 s" in await tries[-1].text()
        assert tries[-1].headers["X-Refusal"] == "key=too_many_codes&wait_s=60"
        right = await client.post("/api/recordings/unlock", headers={CODE: "123456"})
        assert right.status == 429


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_foreign_site_is_refused(site: str, client: Client) -> None:
    head = {"Sec-Fetch-Site": site}
    for end in ("", f"/{NAME}", f"/{NAME}/table"):
        answer = await client.get("/api/recordings" + end, headers=head)
        assert answer.status == 403
    head = {"Sec-Fetch-Site": "same-origin"}
    assert (await client.get("/api/recordings", headers=head)).status == 200


async def test_driver_sees_recordings_until_the_device_is_ended(folder: Path) -> None:
    house = House()
    rights = DeviceRights(CodeCheck(CODES), house.devices)
    mum = house.visitor("Mum", drive=False, code="grownups")
    ann = house.devices.add("Ann", "192.0.2.7", Rights(drive=True), time.time() - 60.0)
    head = {"Cookie": f"{COOKIE}={house.devices.cookie(ann)}"}
    async with ask(folder, at_home=False, rights=rights) as client:

        async def statuses() -> set[int]:
            ends = ("", "/drives", f"/{NAME}", f"/{NAME}/units", "/exports/x")
            answers = [await client.get("/api/recordings" + end, headers=head) for end in ends]
            return {one.status for one in answers}

        assert await statuses() == {200, 404}, "her cookie is the seat's"
        assert time.time() - ann.seen_s < 30.0, "she is here"
        mum.say(up.End(ann.id))
        assert await statuses() == {401}
        unlock = "/api/recordings/unlock"
        assert (await client.post(unlock, headers={CODE: "123456"})).status == 204
        head.clear()  # the client sends the new cookie
        assert await statuses() == {200, 404}
        (device,) = house.devices.all()
        assert device.name == "recordings page"
        mum.say(up.End(device.id))
        assert await statuses() == {401}


async def test_repeated_code_makes_no_second_device(folder: Path) -> None:
    known = no_devices()
    ann = known.add("Ann", "192.0.2.7", Rights(drive=True), time.time())
    head = {"Cookie": f"{COOKIE}={known.cookie(ann)}"}
    async with ask(folder, at_home=False, rights=DeviceRights(CodeCheck(CODES), known)) as client:
        for code, grown_up in (("123456", False), ("grownups", True)):
            answer = await client.post("/api/recordings/unlock", headers={**head, CODE: code})
            assert answer.cookies[COOKIE].value == known.cookie(ann)
            assert ann.rights(time.time()).grown_up is grown_up
        assert known.all() == [ann]


async def test_play_page_is_read_only_and_for_this_machine(folder: Path) -> None:
    app = play.application([folder / NAME], "Plague")
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/recordings.html")).status == 200
        assert (await client.get("/")).status == 200
        assert (await client.get("/recordings/main.js")).status == 200
        said = await (await client.get("/api/recordings")).json()
        assert (said["car"], said["seat"]) == ("Plague", False)
        assert [one["name"] for one in said["recordings"]] == [NAME]
        drives = "/api/recordings/drives"
        said = await (await client.get(f"{drives}?wheel=driven")).json()
        (one,) = said["drives"]
        assert not said["editable"] and not said["grown_up"] and not said["removable"]
        for what in ("title", "delete"):
            head = {"Origin": f"http://{client.host}:{client.port}"}
            url = f"{drives}/{one['id']}/{what}"
            assert (await client.post(url, headers=head)).status in (404, 405)
        for head in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert (await client.get("/api/recordings", headers=head)).status == 403
        assert (await client.get("/..%2fREADME.md")).status == 404
        assert (await client.post("/api/recordings/unlock")).status == 405


def test_play_refuses_other_files_and_equal_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "letter").write_text("Dear reader")
    assert play.run([folder / "letter"], 0, False) == 1
    assert "letter" in capsys.readouterr().err
    other = folder.parent / NAME
    other.write_bytes((folder / NAME).read_bytes())
    assert play.run([folder / NAME, other], 0, False) == 1
    assert "two files are named" in capsys.readouterr().err


async def test_server_rules_hold_for_the_recordings_routes(folder: Path) -> None:
    """Rules of the server: Host, Origin, no bodies; its pages do not hide the routes."""
    hub: Any = SimpleNamespace(leave=lambda _: None)
    app = server_of(mcaps.PROFILE, hub, hub, apis=(routes_of(folder),)).application()
    async with TestClient(TestServer(app)) as client:
        url = f"/api/recordings/{NAME}"
        assert (await client.get("/recordings.html")).status == 200
        assert (await client.get(url)).status == 200
        for head in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert (await client.get(url, headers=head)).status == 403
        unlock = "/api/recordings/unlock"
        assert (await client.post(unlock, data=b"x")).status == 413
        assert (await client.post(unlock, headers={CODE: "123456"})).status == 204
        assert (await client.delete(url)).status == 405


async def test_export_request_may_have_a_bounded_body(folder: Path) -> None:
    """The body names its files: those of a day do not fit into an address."""
    hub: Any = SimpleNamespace(leave=lambda _: None)
    wanted = {"kind": "zip", "files": [NAME], "from_ms": 0.0, "to_ms": 9e14}
    apis = (routes_of(folder),)
    app = server_of(mcaps.PROFILE, hub, hub, apis=apis, bodies=(EXPORTS,)).application()
    async with TestClient(TestServer(app)) as client:
        url = "/api/recordings/exports"
        answer = await client.post(url, json=wanted)
        assert answer.status == 201, await answer.text()
        assert (await client.post(url, data=b"x" * 70_000)).status == 413
        assert (await client.get(url + "/x", data=b"x")).status == 413

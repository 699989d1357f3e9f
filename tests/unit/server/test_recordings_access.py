"""/api/recordings: who may see them, on the car and on the page of some files."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.commands import play
from fpvcar.server.recordings_rights import CODE, Tokens
from tests.rigs import mcaps
from tests.rigs.hub import server_of
from tests.rigs.recordings import NAME, Client, ask, one_drive, routes_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return one_drive(tmp_path)


def test_strangers_say_the_code_first(folder: Path) -> None:
    async def status(client: Client, method: str, path: str, **more: Any) -> int:
        answer: ClientResponse = await client.request(method, path, **more)
        return answer.status

    async def act(client: Client) -> None:
        base, unlock = "/api/recordings", "/api/recordings/unlock"
        for end in ("", f"/{NAME}", f"/{NAME}/units", f"/{NAME}/table"):
            assert await status(client, "GET", base + end) == 401
        assert await status(client, "POST", unlock, headers={CODE: "000000"}) == 401
        assert await status(client, "GET", base) == 401
        answer = await client.post(unlock, headers={CODE: "123456"})
        assert answer.status == 204
        cookie = answer.headers["Set-Cookie"]
        for word in ("HttpOnly", "SameSite=Strict", "Path=/api/recordings", "Max-Age"):
            assert word in cookie
        assert "123456" not in cookie
        token = {"Cookie": cookie.partition(";")[0]}
        assert await status(client, "GET", base, headers=token) == 200
        assert await status(client, "GET", f"{base}/{NAME}", headers=token) == 200
        forged = {"Cookie": "fpvcar-drive=x"}
        client.session.cookie_jar.clear()
        assert await status(client, "GET", base, headers=forged) == 401

    ask(folder, act, at_home=False)


def test_five_wrong_codes_a_minute(folder: Path) -> None:
    async def act(client: Client) -> None:
        tries = [
            await client.post("/api/recordings/unlock", headers={CODE: f"{number:06d}"})
            for number in range(6)
        ]
        assert [one.status for one in tries] == [401] * 5 + [429]
        assert "try again in" in await tries[-1].text()
        right = await client.post("/api/recordings/unlock", headers={CODE: "123456"})
        assert right.status == 429

    ask(folder, act, at_home=False)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_foreign_pages_get_nothing(folder: Path, site: str) -> None:
    async def act(client: Client) -> None:
        head = {"Sec-Fetch-Site": site}
        for end in ("", f"/{NAME}", f"/{NAME}/table"):
            answer = await client.get("/api/recordings" + end, headers=head)
            assert answer.status == 403
        head = {"Sec-Fetch-Site": "same-origin"}
        assert (await client.get("/api/recordings", headers=head)).status == 200

    ask(folder, act)


def test_a_token_counts_for_half_a_day_and_the_oldest_go() -> None:
    tokens = Tokens()
    first = tokens.new(100.0)
    assert tokens.good(first, 100.0) and not tokens.good("", 100.0)
    assert tokens.good(first, 100.0 + 12 * 3600 - 1)
    assert not tokens.good(first, 100.0 + 12 * 3600)
    for _ in range(256):
        last = tokens.new(100.0)
    assert tokens.good(last, 100.0) and not tokens.good(first, 100.0)


def test_the_page_of_some_files_is_for_this_machine_only(folder: Path) -> None:
    async def act() -> None:
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
            assert not said["editable"] and not said["grown_up"]
            for what in ("title", "delete"):
                head = {"Origin": f"http://{client.host}:{client.port}"}
                url = f"{drives}/{one['id']}/{what}"
                assert (await client.post(url, headers=head)).status in (404, 405)
            for head in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                assert (await client.get("/api/recordings", headers=head)).status == 403
            assert (await client.get("/..%2fREADME.md")).status == 404
            assert (await client.post("/api/recordings/unlock")).status == 404

    asyncio.run(act())


def test_the_page_refuses_what_is_no_recording(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "letter").write_text("Dear reader")
    assert play.run([folder / "letter"], 0, False) == 1
    assert "letter" in capsys.readouterr().err
    other = folder.parent / NAME
    other.write_bytes((folder / NAME).read_bytes())
    assert play.run([folder / NAME, other], 0, False) == 1
    assert "two files are called" in capsys.readouterr().err


def test_the_cars_own_rules_hold_for_recordings(folder: Path) -> None:
    """Behind the server: Host, Origin, no bodies; and its pages do not hide them."""
    hub: Any = SimpleNamespace(leave=lambda _: None)

    async def act() -> None:
        app = server_of(
            mcaps.PROFILE, hub, hub, recordings=routes_of(folder)
        ).application()
        async with TestClient(TestServer(app)) as client:
            url = f"/api/recordings/{NAME}"
            assert (await client.get("/recordings")).status == 200
            assert (await client.get(url)).status == 200
            for head in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                assert (await client.get(url, headers=head)).status == 403
            unlock = "/api/recordings/unlock"
            assert (await client.post(unlock, data=b"x")).status == 413
            assert (await client.post(unlock, headers={CODE: "123456"})).status == 204
            assert (await client.delete(url)).status == 405

    asyncio.run(act())


def test_the_cars_own_page_asks_for_a_film_with_a_body(folder: Path) -> None:
    """It names its files there: those of a day fit into no address."""
    hub: Any = SimpleNamespace(leave=lambda _: None)
    wanted = {"kind": "zip", "files": [NAME], "from_ms": 0.0, "to_ms": 9e14}

    async def act() -> None:
        app = server_of(
            mcaps.PROFILE, hub, hub, recordings=routes_of(folder)
        ).application()
        async with TestClient(TestServer(app)) as client:
            url = "/api/recordings/exports"
            answer = await client.post(url, json=wanted)
            assert answer.status == 201, await answer.text()
            assert (await client.post(url, data=b"x" * 70_000)).status == 413
            assert (await client.get(url + "/x", data=b"x")).status == 413

    asyncio.run(act())

"""The station's password: kept as scrypt, asked of others, by the car's rules."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.server.devices import Devices
from fpvcar.server.recordings_rights import CODE, DeviceRights
from fpvstation import password
from fpvstation.page import Page
from fpvstation.password import PasswordCheck, PasswordRefused
from tests.unit.fpvstation.test_page import page

__all__ = ["page"]
RIGHT = "open sesame, now"
PRIVATE = ("/api/recordings/drives", "/api/status")
Client = TestClient[Any, Any]


@pytest.fixture
def rights(tmp_path: Path) -> DeviceRights:
    password.save(tmp_path, RIGHT)
    saved = password.load(tmp_path)
    assert saved is not None
    known = Devices(bytes(32), password.codes_of(saved), tmp_path / "devices.json")
    return DeviceRights(PasswordCheck(saved), known)


def ask(page: Page, act: Callable[[Client], Awaitable[None]]) -> None:
    """Asks from another machine."""

    @web.middleware
    async def elsewhere(request: web.Request, handler: Any) -> web.StreamResponse:
        answer: web.StreamResponse = await handler(request.clone(remote="192.0.2.7"))
        return answer

    async def run() -> None:
        app = page.application()
        app.middlewares.append(elsewhere)
        async with TestClient(TestServer(app)) as client:
            await act(client)

    asyncio.run(run())


def test_another_machine_says_the_password_once(
    page: Page, rights: DeviceRights
) -> None:
    page._rights = rights

    async def act(client: Client) -> None:
        for path in PRIVATE:
            answer = await client.get(path)
            assert answer.status == 401, path
        for wrong in ("", "open sesame", RIGHT + "!", "x" * 5000, "\udcff"):
            headers = {CODE: wrong.encode("utf-8", "surrogateescape").decode("latin1")}
            answer = await client.post("/api/recordings/unlock", headers=headers)
            assert answer.status == 401, wrong
        answer = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        assert answer.status == 429, "five wrong ones a minute"

    ask(page, act)


def test_whoever_said_it_sees_and_moves_to_the_trash(
    page: Page, rights: DeviceRights, tmp_path: Path
) -> None:
    page._rights = rights

    async def act(client: Client) -> None:
        answer = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        assert answer.status == 204
        for path in PRIVATE:
            assert (await client.get(path)).status == 200, path
        listing = await (await client.get(PRIVATE[0])).json()
        assert listing["removable"] and listing["grown_up"]
        one, other = listing["drives"]
        origin = {"Origin": str(client.make_url("/")).rstrip("/")}
        path = f"{PRIVATE[0]}/{one['id']}/delete"
        answer = await client.post(path, headers=origin)
        assert answer.status == 200, await answer.text()
        assert len((await answer.json())["gone"]) == 1
        (left,) = (await (await client.get(PRIVATE[0])).json())["drives"]
        assert left["id"] == other["id"]
        assert (await client.post(path, headers=origin)).status == 404

    ask(page, act)
    assert len(list(tmp_path.glob(".trash/*/*/*/*/*.mcap"))) == 1


def test_all_tries_at_a_password_have_one_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = password.Saved("", "hash")
    monkeypatch.setattr(password.Saved, "of", lambda *_: "other")
    check = PasswordCheck(saved)
    for number, code in enumerate(["123456", "letters", "0123456789abcdef" * 2] * 7):
        check.unlock(code, f"10.0.{number}.1", 1.0)
    for code in ("123456", "letters", "0123456789abcdef" * 2):
        assert check.wait_s(code, "new", 2.0) == 59.0


def test_it_is_kept_as_scrypt_and_a_new_one_ends_all_cookies(tmp_path: Path) -> None:
    password.save(tmp_path, RIGHT)
    kept = (tmp_path / password.FILE).read_bytes()
    assert RIGHT.encode() not in kept
    assert (tmp_path / password.FILE).stat().st_mode & 0o077 == 0
    before = password.load(tmp_path)
    password.save(tmp_path, RIGHT)
    after = password.load(tmp_path)
    assert before is not None and after is not None
    assert password.codes_of(before) != password.codes_of(after)
    assert before.of(RIGHT) == before.hash != before.of(RIGHT + " ")


@pytest.mark.parametrize(
    "bad", ["short", "x" * 65, "tuxedo-ß-1", " padded-one", "a\nbcdefgh"]
)
def test_a_password_that_cannot_be_sent_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(PasswordRefused, match="8 to 64"):
        password.save(tmp_path, bad)
    assert password.load(tmp_path) is None


def test_a_file_that_cannot_be_read_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / password.FILE).write_bytes(b"{")
    with pytest.raises(PasswordRefused, match="fpvstation passwd"):
        password.load(tmp_path)

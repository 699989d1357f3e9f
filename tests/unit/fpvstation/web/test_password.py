"""Password of the station: kept as scrypt, required from other machines, by the car's rules."""

import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import COOKIE, Devices
from fpvcar.access.rights import CODE
from fpvcar.http.endpoints import Address
from fpvstation import service
from fpvstation.errors import StationError
from fpvstation.web import password
from fpvstation.web.page import Page
from fpvstation.web.password import PasswordCheck, PasswordRights
from tests.unit.fpvstation.web.test_page import page

__all__ = ["page"]
RIGHT = "open sesame, now"
PRIVATE = ("/api/recordings/drives", "/api/status")
Client = TestClient[Any, Any]


@pytest.fixture
def rights(tmp_path: Path) -> PasswordRights:
    password.save(tmp_path, RIGHT)
    saved = password.load(tmp_path)
    assert saved is not None
    known = Devices(bytes(32), password.codes_of(saved), tmp_path / "devices.json")
    return PasswordRights(PasswordCheck(saved), known)


def ask(page: Page, scheme: str = "https", remote: str = "192.0.2.7") -> Client:
    """Return a client on another machine."""

    @web.middleware
    async def elsewhere(request: web.Request, handler: Any) -> web.StreamResponse:
        seen = request.clone(remote=remote, scheme=scheme)
        answer: web.StreamResponse = await handler(seen)
        return answer

    app = page.application()
    app.middlewares.insert(0, elsewhere)
    return TestClient(TestServer(app))


async def test_wrong_passwords_from_another_machine_are_limited(
    page: Page, rights: PasswordRights
) -> None:
    page._rights = rights
    async with ask(page) as client:
        for path in PRIVATE:
            answer = await client.get(path)
            assert answer.status == 401, path
        for wrong in ("", "open sesame", RIGHT + "!", "x" * 5000, "\udcff"):
            headers = {CODE: wrong.encode("utf-8", "surrogateescape").decode("latin1")}
            answer = await client.post("/api/recordings/unlock", headers=headers)
            assert answer.status == 401, wrong
        answer = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        assert answer.status == 429, "five wrong ones a minute"


async def test_unlocked_client_lists_drives_and_deletes_to_trash(
    page: Page, rights: PasswordRights, tmp_path: Path
) -> None:
    page._rights = rights
    async with ask(page) as client:
        answer = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        assert answer.status == 204
        (cookie,) = answer.cookies.values()
        assert cookie.key.startswith("__Host-") and cookie["secure"]
        client.session.headers["Cookie"] = f"{cookie.key}={cookie.value}"
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
    assert len(list(tmp_path.glob(".trash/*/*/*/*/*.mcap"))) == 1


async def test_other_machine_over_http_gets_no_password_and_no_recordings(
    page: Page, rights: PasswordRights
) -> None:
    page._rights = rights
    device = rights._devices.add("Ann", "192.0.2.7", Rights(drive=True), time.time())
    cookie = {"Cookie": f"{COOKIE}={rights._devices.cookie(device)}"}
    async with ask(page, scheme="http") as client:
        answer = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        assert answer.status == 403 and not answer.cookies
        https = f"https://127.0.0.1:{(client.port or 0) + 1}/"
        assert f"open {https}" in await answer.text()
        for path in PRIVATE:
            answer = await client.get(path, headers=cookie)
            assert answer.status == 403, "a cookie that was sent in the clear"
        answer = await client.get("/?drive=1", allow_redirects=False)
        assert answer.status == 307
        assert answer.headers["Location"] == f"{https}?drive=1"


async def test_local_machine_may_use_http(page: Page, rights: PasswordRights) -> None:
    page._rights = rights
    async with ask(page, "http", "127.0.0.1") as client:
        answer = await client.post("/api/recordings/unlock", headers={CODE: RIGHT})
        assert answer.status == 204
        assert (await client.get("/", allow_redirects=False)).status == 200
        assert (await client.get("/api/status")).status == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_public_metrics_name_no_recording_health_counts_faults(
    page: Page, rights: PasswordRights, scheme: str
) -> None:
    page._rights = rights
    page._scheduler.states["1"].waiting = 2
    page._scheduler.states["1"].stored_s = 1.0
    async with ask(page, scheme) as client:
        text = await (await client.get("/metrics")).text()
        assert 'fpvcar_station_car_up{car="Plague"} 1' in text
        assert "mcap" not in text and "Plague-2" not in text
        answer = await client.get("/healthz")
        assert answer.status == 503
        assert await answer.text() == "1 fault: fpvstation status\n"


@pytest.mark.parametrize(
    ("host", "tls", "where"),
    [
        ("127.0.0.1", None, "http://localhost:8100/ "),
        ("0.0.0.0", True, "https://10.0.0.7:8101/ "),
        ("0.0.0.0", None, "http://localhost:8100/ (this machine only: https is off"),
    ],
)
def test_station_prints_https_for_other_machines(
    host: str, tls: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "lan_address", lambda: "10.0.0.7")
    line = service.greeting(Address(host, 8100, tls), Path("/srv"))
    assert where in line and line.endswith("(store: /srv)")


def test_password_tries_share_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = password.PasswordHash("", "hash")
    monkeypatch.setattr(password.PasswordHash, "of", lambda *_: "other")
    check = PasswordCheck(saved)
    for number, code in enumerate(["123456", "letters", "0123456789abcdef" * 2] * 7):
        check.unlock(code, f"10.0.{number}.1", 1.0)
    for code in ("123456", "letters", "0123456789abcdef" * 2):
        assert check.wait_s(code, "new", 2.0) == 59.0


def test_password_is_kept_as_scrypt_and_a_new_one_ends_cookies(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("bad", ["short", "x" * 65, "tuxedo-ß-1", " padded-one", "a\nbcdefgh"])
def test_unsendable_password_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(StationError, match="8 to 64"):
        password.save(tmp_path, bad)
    assert password.load(tmp_path) is None


def test_unreadable_password_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / password.FILE).write_bytes(b"{")
    with pytest.raises(StationError, match="fpvstation passwd"):
        password.load(tmp_path)

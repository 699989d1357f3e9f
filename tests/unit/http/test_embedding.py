"""Page below a path of a proxy and in frames: paths, cookies, policy, and rights of loopback."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from testkit.car import Car, Client
from testkit.hub import CODES
from testkit.profiles import profile_of
from yarl import URL

from fpvcar.access.invitations_api import BASE, InvitationsApi
from fpvcar.access.rights import CODE
from fpvcar.http import addresses
from fpvcar.http.embedding import ALONE, Embedding
from fpvcar.http.endpoints import Address
from fpvcar.http.pages import POLICY

HOME = "https://home.example.org"
PROFILE = profile_of(
    "bench",
    f"""
    server.base_path = "/car/"
    server.frame_ancestors = ["{HOME}:8123", "http://ha.local"]
    server.allowed_hosts = ["home.example.org"]
    """,
)
PROXIED = {"X-Forwarded-For": "10.0.0.9", "Host": "home.example.org", "Origin": HOME}
UNLOCK = "/api/recordings/unlock"


@pytest.fixture
def car(tmp_path: Path) -> Car:
    return Car(PROFILE, folder=tmp_path)


@pytest.fixture
async def client(car: Car) -> AsyncIterator[Client]:
    api = InvitationsApi(
        car.devices, car.vehicle.rights, Address("0.0.0.0", 8080, None), embedding=car.embedding
    )
    async with car.serve(api) as client:
        yield client


async def status(client: Client, path: str | URL, **more: Any) -> int:
    answer = await client.get(path, allow_redirects=False, **more)
    await answer.read()
    return answer.status


@pytest.mark.parametrize("path", ["/", "/trust.html", "/lib/dom.js?x=1", "/api/ping", "/healthz"])
async def test_page_is_served_beside_and_below_its_path(client: Client, path: str) -> None:
    beside, below = await client.get(path), await client.get(f"/car{path}")
    assert beside.status == below.status != 404
    if path != "/api/ping":  # a clock
        assert await beside.read() == await below.read()


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/car/car/", 404),
        ("/car//api/ping", 404),
        ("/cart/", 404),
        ("/CAR/", 404),
        ("/%63ar/", 404),
        ("/car/%2e%2e/api/ping", 404),
        ("/car/lib/none.js", 404),
    ],
)
async def test_path_is_stripped_once_and_as_written(client: Client, path: str, answer: int) -> None:
    assert await status(client, URL(path, encoded=True)) == answer


async def test_path_without_its_slash_leads_to_the_page(client: Client) -> None:
    answer = await client.get("/car?path=mse", allow_redirects=False)
    assert answer.status == 302 and answer.headers["Location"] == "/car/?path=mse"


async def test_sockets_open_below_the_path(car: Car, client: Client) -> None:
    for name, path in (("Ann", "/ws/drive"), ("Bo", "/car/ws/drive")):
        ws = await car.opens(path, name)
        assert (await ws.receive_json())["kind"] == "welcome"
        await ws.close()


async def test_only_named_origins_may_frame_the_page(client: Client) -> None:
    named = f"frame-ancestors {HOME}:8123 http://ha.local"
    for path in ("/", "/car/", "/car/trust.html", "/car/healthz"):
        policy = (await client.get(path)).headers[POLICY]
        assert policy.count("frame-ancestors") == 1 and named in policy, path
    missing = await client.get("/car/none.html", headers={"Accept": "text/html"})
    assert missing.status == 404 and named in missing.headers[POLICY]
    async with Car().serve() as alone:
        policy = (await alone.get("/")).headers[POLICY]
        assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("path", "start"), [("/none.html", "./"), ("/car/none.html", "./"), ("/car/lib/none.js", "../")]
)
async def test_error_page_leads_to_the_start_below_the_path(
    client: Client, path: str, start: str
) -> None:
    text = await (await client.get(path, headers={"Accept": "text/html"})).text()
    assert f'<a href="{start}">' in text


async def test_loopback_client_needs_the_code_beside_a_proxy(car: Car, client: Client) -> None:
    """A proxy on the car's own computer may strip the path, and add no header."""
    for path in ("/api/recordings/drives", "/car/api/recordings/drives"):
        assert await status(client, path) in (401, 404)
    ws = await car.opens("/ws/drive", "Ann")
    assert (await ws.receive_json())["code_needed"] is True
    await ws.close()


@pytest.mark.parametrize(
    ("path", "headers", "line"),
    [
        ("/api", {}, "pass=v; Max-Age=9; Path=/; HttpOnly; SameSite=Strict"),
        (
            "/car/api",
            {"Origin": HOME},
            "__Secure-pass=v; Max-Age=9; Path=/car/; HttpOnly; Secure; SameSite=None; Partitioned",
        ),
        (
            "/api",
            {"Origin": HOME},
            "__Host-pass=v; Max-Age=9; Path=/; HttpOnly; Secure; SameSite=None; Partitioned",
        ),
        (
            "/api",
            {"Origin": "http://ha.local", "X-Forwarded-Prefix": "/car"},
            "pass=v; Max-Age=9; Path=/car/; HttpOnly; SameSite=Strict",
        ),
        (
            "/api",
            {"X-Forwarded-Prefix": "/; Domain=example.org"},
            "pass=v; Max-Age=9; Path=/; HttpOnly; SameSite=Strict",
        ),
    ],
)
def test_cookie_fits_the_page(path: str, headers: dict[str, str], line: str) -> None:
    embedding = Embedding("/car/", (HOME,))
    request = make_mocked_request("POST", path, headers)
    assert embedding.cookie(embedding._inner(request), "pass", "v", 9) == line


def test_cookie_without_frames_stays_at_its_site() -> None:
    request = make_mocked_request("POST", "/api/pass", {"Origin": HOME})
    line = ALONE.cookie(request, "pass", "v", 9)
    assert line == "__Host-pass=v; Max-Age=9; Path=/; HttpOnly; Secure; SameSite=Strict"


@pytest.mark.parametrize("name", ["__Secure-fpvcar-pass", "__Host-fpvcar-pass"])
async def test_code_entered_through_a_proxy_opens_recordings(
    client: Client, name: str, car: Car
) -> None:
    below = "/car" if "Secure" in name else ""
    answer = await client.post(f"{below}{UNLOCK}", headers={**PROXIED, CODE: CODES.drive})
    assert answer.status == 204
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{name}=") and f"; Path={below}/; " in cookie
    token = {**PROXIED, "Cookie": cookie.partition(";")[0]}
    ws = await client.ws_connect("/car/ws/drive", headers=token)
    await ws.send_json({"kind": "hello", "v": 1, "client": "client-Ann"})
    assert (await ws.receive_json())["code_needed"] is False
    await ws.close()


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        (PROXIED, 401),
        ({**PROXIED, "Host": "127.0.0.1:8080", "X-Forwarded-Host": "home.example.org"}, 401),
        ({**PROXIED, "Host": "127.0.0.1:8080"}, 403),
        ({**PROXIED, "Host": "evil.org", "X-Forwarded-Host": "home.example.org"}, 403),
        ({**PROXIED, "Origin": "https://evil.org", "X-Forwarded-Host": "evil.org"}, 403),
        ({**PROXIED, "Origin": f"{HOME}:8123"}, 403),
        ({**PROXIED, "Origin": "null"}, 403),
    ],
)
async def test_posts_come_from_the_page_itself(
    client: Client, headers: dict[str, str], answer: int
) -> None:
    """A page around the frame is not the car's page."""
    said = await client.post(f"/car{UNLOCK}", headers={**headers, CODE: "000000"})
    assert said.status == answer, await said.text()


async def test_invitation_names_the_address_of_the_proxy(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "lan_address", lambda: "10.1.2.3")
    links = []
    for path, headers in (
        ("/car", PROXIED),
        ("", {"Host": "10.9.9.9:81", "Origin": "http://10.9.9.9:81"}),
        ("", {"Host": "localhost:81", "Origin": "http://localhost:81"}),
    ):
        answer = await client.post(f"{path}{UNLOCK}", headers={**headers, CODE: CODES.grown_up})
        token = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        invited = await client.post(f"{path}{BASE}", headers={**headers, **token})
        assert invited.status == 200
        links.append((await invited.json())["link"].partition("#")[0])
    assert links == [f"{HOME}/car/", "http://10.9.9.9:81/", "http://10.1.2.3:8080/"]

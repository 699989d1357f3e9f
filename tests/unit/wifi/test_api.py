"""Route /api/network: a grown-up only, and not while a driver is active."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from testkit.grown_up import Client, GrownUpsApi
from testkit.hub import CODES

from fpvcar.wifi.api import KEY, NetworkApi
from fpvcar.wifi.client import NetworkClient
from fpvcar.wifi.core import KEY_WRONG
from fpvcar.wire.network import Join, Network, NetworkState, OwnNetwork, Scan, Wish

OWN = OwnNetwork("Rusty", "twelve chars", ("101", "010"))
STATE = NetworkState("own", OWN, "Home", KEY_WRONG, (Network("Home", 80, "key"),), 7.0)


class PlayedService(NetworkClient):
    """Service in its own network that records its requests."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"), lambda: False, lambda: 3.0)
        self.state, self.wishes = STATE, list[Wish]()

    def wish(self, wish: Wish) -> bool:
        self.wishes.append(wish)
        return self.state is not None


class Rig(GrownUpsApi):
    """Routes over a service that is played."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.service, self.driven = PlayedService(), False

    def ask(self, code: str = CODES.grown_up) -> AbstractAsyncContextManager[Client]:
        control: Any = SimpleNamespace(driven=lambda: self.driven)
        api = NetworkApi(self.service, self.rights, control)
        return self.serve(code, api, hosts=self.service.hosts)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_grown_up_sees_the_network_state(rig: Rig) -> None:
    async with rig.ask() as client:
        answer = await client.get("/api/network")
        assert answer.headers["Cache-Control"] == "no-store"
        said = await answer.json()
        assert said["phase"] == "own" and said["reason"]["key"] == KEY_WRONG.key
        assert said["own"] == {"ssid": "Rusty", "key": OWN.key, "qr": ["101", "010"]}
        assert said["seen_s"] == 10, "7 s there, and 3 s here"
        assert said["networks"][0]["ssid"] == "Home" and said["join_s"] == 45.0


async def test_grown_up_joins_and_searches_networks(rig: Rig) -> None:
    async with rig.ask() as client:
        key = {KEY: "home: sweet home"}
        answer = await client.post("/api/network/join?ssid=H%26m%20e", headers=key)
        assert answer.status == 202
        assert (await client.post("/api/network/look")).status == 202
        assert rig.service.wishes == [Join("H&m e", "home: sweet home"), Scan()]


@pytest.mark.parametrize("act", ["look", "join?ssid=Home"])
async def test_network_join_and_search_refused_while_driving(rig: Rig, act: str) -> None:
    path = f"/api/network/{act}"
    async with rig.ask() as client:
        rig.driven = True
        key = {KEY: "home sweet home"}
        answer = await client.post(path, headers=key)
        assert answer.status == 409
        assert "give up the wheel first" in await answer.text()
        assert rig.service.wishes == []


@pytest.mark.parametrize(
    ("ssid", "key", "said"),
    [
        ("", "12345678", "0 characters"),
        ("x" * 33, "12345678", "33 characters"),
        ("\0", "12345678", "1 to 32 visible"),
        ("x\0", "12345678", "1 to 32 visible"),
        ("a\nfpvcar: b", "12345678", "1 to 32 visible"),
        ("Home", "short", "8 to 63"),
        ("Home", "x" * 65, "8 to 63"),
        ("Home", "\xe4\xf6\xfc\xdf\xe4\xf6\xfc\xdf", "8 to 63"),
    ],
)
async def test_invalid_ssid_or_key_is_refused_with_the_reason(
    rig: Rig, ssid: str, key: str, said: str
) -> None:
    async with rig.ask() as client:
        answer = await client.post("/api/network/join", params={"ssid": ssid}, headers={KEY: key})
        assert answer.status == 400 and said in await answer.text()
        assert rig.service.wishes == []


async def test_open_network_is_joined_without_a_key(rig: Rig) -> None:
    async with rig.ask() as client:
        assert (await client.post("/api/network/join?ssid=Cafe")).status == 202
        assert rig.service.wishes == [Join("Cafe", "")]


async def test_missing_network_service_names_the_unit_to_start(rig: Rig) -> None:
    async with rig.ask() as client:
        rig.service.state = None
        for method, path in (("GET", ""), ("POST", "/look")):
            answer = await client.request(method, f"/api/network{path}")
            assert answer.status == 503
            assert "systemctl status fpvcar-network" in await answer.text()


async def test_host_name_given_by_the_network_is_allowed(rig: Rig) -> None:
    async with rig.ask() as client:
        host = {"Host": "rusty-2.local"}
        assert (await client.get("/api/ping", headers=host)).status == 403
        rig.service.state = NetworkState("known", OWN, name="rusty-2.local")
        assert (await client.get("/api/ping", headers=host)).status == 200
        other = {"Host": "evil.local"}
        assert (await client.get("/api/ping", headers=other)).status == 403

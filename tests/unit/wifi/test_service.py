"""Service over the fake radio, and `run`'s side of its socket."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from testkit.harness import running
from testkit.network import radio_contract
from testkit.network.radio_contract import HOME, HOME_KEY, NETWORK

from fpvcar.wifi.client import NetworkClient
from fpvcar.wifi.core import KEY_WRONG, OWN_S, SEARCH_S, Machine
from fpvcar.wifi.fake import FakeRadio, Station
from fpvcar.wifi.nmcli import BLOCKED
from fpvcar.wifi.service import Service, load_key, own_network, serve, wifi_text
from fpvcar.wire.network import SOCKET, Join, Network, NetworkState, OwnNetwork, Scan

OWN = OwnNetwork("Rusty", "twelve chars")


class Rig:
    """Service at its socket, and a clock that stands until it is set."""

    def __init__(self, path: Path, opens: bool = True) -> None:
        self.now_s, self.used = 0.0, False
        self.radio = FakeRadio({HOME: Station(HOME_KEY), "Café": Station(strength=20)})
        self.service = Service(
            Machine(opens, 0.0), self.radio, OWN, "Rusty.local", lambda: self.now_s
        )
        self.client = NetworkClient(path, lambda: self.used)
        self.path = path

    async def at(self, now_s: float) -> None:
        """Advance the clock and wake the service."""
        self.now_s = now_s
        self.radio.stir()

    async def until(self, good: Callable[[NetworkState], bool]) -> NetworkState:
        for _ in range(2000):
            state = self.client.state
            if state is not None and good(state):
                return state
            await asyncio.sleep(0.01)
        raise AssertionError(f"still {self.client.state}")

    async def phase(self, phase: str) -> NetworkState:
        return await self.until(lambda state: state.phase == phase)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path / SOCKET)
    async with running(serve(made.service, made.path), made.client.run()):
        yield made


async def test_given_socket_outlives_the_service(tmp_path: Path) -> None:
    """The socket is systemd's: clients in between wait there for the next service."""
    rig = Rig(tmp_path / SOCKET)
    with socket.socket(socket.AF_UNIX) as given:
        given.bind(str(rig.path))
        given.listen()
        async with running(serve(rig.service, given.dup()), rig.client.run()):
            await rig.phase("searching")
        assert rig.path.exists()


async def opened(rig: Rig) -> None:
    await rig.phase("searching")
    await rig.at(SEARCH_S)
    await rig.phase("own")


async def test_service_opens_its_network_and_lists_those_heard(rig: Rig) -> None:
    await opened(rig)
    state = await rig.phase("own")
    assert [one.ssid for one in state.networks] == [HOME, "Café"]
    assert [one.security for one in state.networks] == ["key", "open"]
    assert state.own == OWN and state.seen_s == 0
    assert rig.radio.own == (OWN.ssid, OWN.key)


async def test_wish_to_join_makes_the_network_known(rig: Rig) -> None:
    await opened(rig)
    assert rig.client.wish(Join(HOME, HOME_KEY))
    state = await rig.phase("known")
    assert state.ssid == HOME and state.reason is None and rig.radio.own is None


async def test_hidden_network_is_joined_by_its_name(rig: Rig) -> None:
    rig.radio.around["Attic"] = Station("attic attic", hidden=True)
    await opened(rig)
    assert "Attic" not in [one.ssid for one in (await rig.phase("own")).networks]
    assert rig.client.wish(Join("Attic", "attic attic"))
    assert (await rig.phase("known")).ssid == "Attic"


async def test_wrong_key_reopens_the_own_network_with_the_reason(rig: Rig) -> None:
    await opened(rig)
    rig.radio.takes_s = 0.5
    rig.client.wish(Join(HOME, "not the right key"))
    state = await rig.phase("joining")
    assert state.ssid == HOME
    rig.radio.takes_s = 0.0
    state = await rig.phase("own")
    assert (state.ssid, state.reason) == (HOME, KEY_WRONG)
    assert rig.radio.history[-2:] == [("join", HOME), ("open", OWN.ssid)]


async def test_own_network_stays_while_it_is_used(rig: Rig) -> None:
    rig.used = True
    await opened(rig)
    for now_s in (OWN_S, 2 * OWN_S, 3 * OWN_S):
        await rig.at(SEARCH_S + now_s)
        await asyncio.sleep(0.05)
    assert ("close", "") not in rig.radio.history


async def test_unused_own_network_gives_way_to_a_known_network(rig: Rig) -> None:
    await opened(rig)
    rig.radio.known[HOME] = HOME_KEY
    await rig.at(SEARCH_S + OWN_S)
    state = await rig.phase("known")
    assert state.ssid == HOME and rig.radio.history[-1] == ("close", "")


async def test_service_scans_again_on_request(rig: Rig) -> None:
    await rig.phase("searching")
    rig.radio.around["New"] = Station("12345678", 99)
    rig.client.wish(Scan())
    state = await rig.until(lambda state: len(state.networks) == 3)
    assert state.networks[0].ssid == "New"


@pytest.mark.parametrize("known", [False, True])
async def test_start_scans_only_outside_a_known_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """A scanning radio carries no traffic, and a driver may be active."""
    rig, looks, looked = Rig(tmp_path / SOCKET), list[bool](), asyncio.Event()

    async def networks(anew: bool = True) -> list[Network]:
        looks.append(anew)
        looked.set()
        return []

    monkeypatch.setattr(rig.radio, "networks", networks)
    if known:
        rig.radio.known[HOME] = HOME_KEY
    async with running(rig.service.run()):
        await asyncio.wait_for(looked.wait(), 20.0)
    assert looks == [not known]


async def test_taken_host_name_is_reported_with_the_new_name(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rig.radio.called = "rusty-2.local"
    await opened(rig)
    state = await rig.until(lambda state: state.name != "")
    assert state.name == "rusty-2.local" == rig.client.hosts()[0]
    assert "Rusty.local is taken: the car is rusty-2.local" in caplog.text
    assert OWN.key not in caplog.text


async def test_own_host_name_is_not_reported_as_taken(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rig.radio.called = "rusty.local"
    await opened(rig)
    await rig.until(lambda state: state.name != "")
    assert "taken" not in caplog.text


async def test_unusable_radio_is_absent_and_joins_nothing(rig: Rig) -> None:
    await rig.phase("searching")
    rig.radio.broken = BLOCKED
    rig.radio.stir()
    state = await rig.phase("absent")
    assert state.reason == BLOCKED
    rig.client.wish(Join(HOME, HOME_KEY))
    await asyncio.sleep(0.05)
    assert ("join", HOME) not in rig.radio.history


async def test_own_network_that_fails_to_open_gives_its_reason(rig: Rig) -> None:
    await rig.phase("searching")
    rig.service._own = OwnNetwork("Rusty", "short")
    await rig.at(SEARCH_S)
    state = await rig.phase("failed")
    assert state.reason is not None and state.reason.key == "wifi_own"
    assert str(state.reason) == "the car's own network did not open: a key of 5 characters"


@pytest.mark.parametrize("line", [b"{\n", b'{"kind":"fly"}\n', b"x" * 100_000 + b"\n"])
async def test_malformed_line_closes_only_its_connection(rig: Rig, line: bytes) -> None:
    await rig.phase("searching")
    reader, writer = await asyncio.open_unix_connection(rig.path)
    await reader.readline()
    writer.write(line)
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(20.0):
            while await reader.readline():
                pass
    writer.close()
    assert rig.client.wish(Scan())


async def test_client_without_the_service_has_no_state(tmp_path: Path) -> None:
    client = NetworkClient(tmp_path / SOCKET, lambda: False)
    async with running(client.run()):
        await asyncio.sleep(0.05)
        assert client.state is None and not client.wish(Scan()) and client.hosts() == ()


async def test_fake_radio_keeps_the_contract() -> None:
    radio = FakeRadio({HOME: Station(HOME_KEY)})
    for check in radio_contract.IN_ORDER[:-1]:
        await check(radio)


async def test_fake_radio_with_an_own_network_hears_no_other() -> None:
    radio = FakeRadio({HOME: Station(HOME_KEY)})
    await radio.open(OWN.ssid, OWN.key)
    assert await radio.networks() == []
    await radio.close()
    assert await radio.networks() == [Station(HOME_KEY).network(HOME)]
    assert NETWORK.ssid == HOME


def test_own_network_key_is_made_once_and_private(tmp_path: Path) -> None:
    key = load_key(tmp_path)
    assert len(key) == 12 and load_key(tmp_path) == key
    assert (tmp_path / "own.key").stat().st_mode & 0o077 == 0
    (tmp_path / "own.key").write_text("short")
    assert len(load_key(tmp_path)) == 12


def test_wifi_text_is_escaped_and_its_qr_code_is_square() -> None:
    assert wifi_text('a;"b', "c:d,e\\f") == r"WIFI:T:WPA;S:a\;\"b;P:c\:d\,e\\f;;"
    own = own_network("Rusty", "twelve chars")
    assert len(own.qr) >= 21 and {len(row) for row in own.qr} == {len(own.qr)}
    assert set("".join(own.qr)) == {"0", "1"}

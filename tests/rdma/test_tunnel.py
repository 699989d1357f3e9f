"""A second office over the tunnels that `fpvstation tunnel` configures, between real hosts."""

import asyncio
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.base_station.stored import SESSION, new_store, put
from testkit.network import tunnel
from testkit.network.lan import Lan
from testkit.network.sshd import Sshd

from fpvcar.runtime.units import MIB
from fpvstation import settings
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remotes import Remotes
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(not os.path.exists("/dev/net/tun"), reason="no /dev/net/tun"),
]
DATA = os.urandom(10 * MIB)


def missing(*programs: str) -> pytest.MarkDecorator:
    absent = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


NIGHT_S, MORNING_S = (time.mktime((2026, 11, 27, hour, 0, 0, 0, 0, -1)) for hour in (23, 6))


class Clock:
    """Wall clock of a station, and its pauses, a hundred times as short."""

    utc_s = MORNING_S

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 100)


async def seen(look: Callable[[], bool], remotes: Remotes) -> None:
    limit_s = time.monotonic() + 30.0
    while not look():
        assert time.monotonic() < limit_s, remotes.states
        await asyncio.sleep(0.02)


async def two_nights(remotes: Remotes, store: Store, clock: Clock, there: Path) -> float:
    """Mirror with a morning in the middle of the copy; return the seconds of both nights."""
    remotes.open(store, asyncio.to_thread)
    running = asyncio.create_task(remotes.run())
    try:
        (state,) = remotes.states
        await seen(lambda: state.waits_until == "22:00" and state.waiting == 1, remotes)
        assert not list(there.iterdir())
        clock.utc_s, began_s = NIGHT_S, time.monotonic()
        await seen(lambda: state.bytes > len(DATA) // 4, remotes)
        clock.utc_s = MORNING_S
        await seen(lambda: state.waits_until == "22:00" and state.state == "ok", remotes)
        took_s = time.monotonic() - began_s
        assert (state.sent, state.waiting) == (0, 1)
        moved = state.bytes
        clock.utc_s, began_s = NIGHT_S, time.monotonic()
        await seen(lambda: state.complete == 1, remotes)
        assert state.bytes - len(DATA) < moved / 2, "the second night did not go on"
        assert (state.sent, state.waiting, state.waits_until) == (1, 0, "")
        return took_s + time.monotonic() - began_s
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@missing("openvpn")
async def test_session_reaches_the_second_office_over_openvpn_in_two_nights(
    lan: Lan, rdma_tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tunnel.written("openvpn", lan, tmp_path)
    site = tunnel.address(made, "site")
    root, there = tmp_path / "store", tmp_path / "office"
    for folder in (there, tmp_path / "sshd"):
        folder.mkdir()
    store = new_store(root)
    put(store, data=DATA)
    monkeypatch.setenv("PATH", f"{rdma_tools}:{os.environ['PATH']}")
    with tunnel.openvpn(made, lan):
        assert tunnel.reaches(site)
        sshd = Sshd(tmp_path / "sshd", site, lan.enter)
        try:
            config = tmp_path / "station.toml"
            config.write_text(
                f'[replicas]\nsecond = "site:{there}"\nrate = "2M"\nwindow = "22:00-06:00"\n'
                f'options = ["--ssh", "{sshd.command}", "--remote-path", "{rdma_tools}"]\n'
            )
            replicas = settings.load(config).replicas
            target = replicas.second
            remote = Rdcp(target, root, replicas.options_of(target))
            clock = Clock()
            remotes = Remotes(
                [remote],
                2,
                ReplicaLog(Folder(root)),
                clock.sleep,
                utc_s=lambda: clock.utc_s,
                windows=replicas.windows,
            )
            took_s = await two_nights(remotes, store, clock, there)
        finally:
            sshd.close()
        # The data went over the tunnel, and nothing but the tunnel over the cable.
        text = subprocess.check_output(["ip", "-s", "-o", "link", "show", "dev", made.name[7:]])
        sent = int(re.findall(rb"TX:.*?\\\s+(\d+)", text)[0])
    assert sent > len(DATA)
    assert took_s > len(DATA) / (2 * MIB) * 0.9
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=there / SESSION, check=True)


@missing("openvpn")
def test_openvpn_refuses_a_peer_with_another_key(lan: Lan, tmp_path: Path) -> None:
    made = tunnel.written("openvpn", lan, tmp_path)
    other = tunnel.written("openvpn", lan, tmp_path / "other")
    config = tunnel.config_of(made, "station")
    ours, theirs = config.read_text(), tunnel.config_of(other, "station").read_text()
    shared = re.compile(r"<tls-crypt>.*</tls-crypt>", re.S)
    # The right tls-crypt and pin of the site, but a certificate that the site does not know.
    stolen = shared.sub(shared.findall(ours)[0], theirs)
    pin = re.compile(r"<peer-fingerprint>.*</peer-fingerprint>", re.S)
    config.write_text(pin.sub(pin.findall(ours)[0], stolen))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tunnel, "UP_S", 3.0)
        with pytest.raises(AssertionError), tunnel.openvpn(made, lan):
            pass
    assert "certificate hash verification failed" in (made / "site.log").read_text()


@missing("wg-quick", "wireguard-go")
def test_wireguard_connects_station_site_and_phone(tmp_path: Path) -> None:
    with Lan() as to_station, Lan() as to_phone:
        # The site is this host: the phone dials the address that the station dials.
        endpoint = to_station.near
        via = ["ip", "route", "add", endpoint, "via", to_phone.near]
        subprocess.run([*to_phone.enter, *via], check=True)
        made = tunnel.written("wireguard", to_station, tmp_path, "--phone", endpoint=endpoint)
        ends = {"site": tunnel.HERE, "station": to_station.enter, "phone": to_phone.enter}
        with tunnel.wireguard(made, **ends):
            assert tunnel.reaches(tunnel.address(made, "site"), to_station.enter)
            assert tunnel.reaches(tunnel.address(made, "station"), to_phone.enter)
            assert tunnel.reaches(tunnel.address(made, "phone"), to_station.enter)
            show = subprocess.check_output(
                [*to_station.enter, "ip", "link", "show", made.name[7:]], text=True
            )
            assert "mtu 1420" in show


@missing("wg-quick", "wireguard-go")
def test_wireguard_follows_a_site_to_its_new_address(lan: Lan, tmp_path: Path) -> None:
    made = tunnel.written("wireguard", lan, tmp_path, endpoint="site.test")
    config, names = tunnel.config_of(made, "station"), made / "hosts"
    text = config.read_text()
    assert "sleep 30" in text and "-lt 150" in text
    config.write_text(text.replace("sleep 30", "sleep 0.2").replace("-lt 150", "-lt 1"))
    names.write_text(f"{lan.far} site.test\n")
    with tunnel.wireguard(made, site=lan.enter, station=tunnel.HERE):
        site = tunnel.address(made, "site")
        assert tunnel.reaches(site)
        lan.roam()
        names.write_text(f"{lan.far} site.test\n")
        assert tunnel.reaches(site)
    hook = ["pgrep", "-f", f"wg show {made.name[7:]} latest"]
    limit_s = time.monotonic() + 20.0
    while subprocess.run(hook, capture_output=True).returncode == 0:
        assert time.monotonic() < limit_s, "it goes on without the tunnel"
        time.sleep(0.1)


@missing("wg-quick", "openvpn")
def test_configuration_is_accepted_by_the_programs(lan: Lan, tmp_path: Path) -> None:
    made = tunnel.written("wireguard", lan, tmp_path, "--phone")
    for end in ("site", "station", "phone"):
        config = str(tunnel.config_of(made, end))
        strip = subprocess.run(["wg-quick", "strip", config], capture_output=True, text=True)
        assert strip.returncode == 0 and "PrivateKey" in strip.stdout, strip.stderr
        assert strip.stderr == ""  # it warns if others may read the file
    made = tunnel.written("openvpn", lan, tmp_path / "other")
    for end in ("site", "station"):
        argv = ["openvpn", "--config", str(tunnel.config_of(made, end)), "--show-ciphers"]
        assert subprocess.run(argv, capture_output=True).returncode == 0

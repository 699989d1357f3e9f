"""Units of fpvsites, and the timer that `fpvstation snapshots setup` writes, under systemd."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.vm.image import Recipe, long_marks

from tests.vm_units.car import TRIXIE, Car, booted

STATION = Recipe(Path(__file__).parent, "trixie", TRIXIE)
pytestmark = long_marks(STATION)
STORE = "/srv/disk/drives"
SITES = """\
ip netns add client && ip link add lan type veth peer name wifi netns client &&
ip address add 10.53.0.1/24 dev lan && ip link set lan up && mkdir -p /etc/fpvsites/groups &&
printf 'lan = "lan"\\nupstream = ["10.0.2.3"]\\n' >/etc/fpvsites/fpvsites.toml &&
printf 'clients = ["02:00:00:00:53:01"]\\nsites = ["allowed.org"]\\n' \
    >/etc/fpvsites/groups/kids.toml
"""
DISK = f"""\
truncate -s 400M /disk.img && mkfs.btrfs -q /disk.img && mkdir /srv/disk &&
mount -o loop,noatime /disk.img /srv/disk && btrfs subvolume create {STORE} &&
chown fpvstation: {STORE} && echo STORE={STORE} >>/etc/default/fpvstation &&
systemctl stop fpvstation &&
timeout 120 runuser -u fpvstation -- env HOME=/var/lib/fpvstation sh -c '
    fpvstation run --store {STORE} --store-changed &
    until [ -e {STORE}/.fpvstation.json ]; do sleep 1; done; kill $!; wait' &&
systemctl start fpvstation && systemctl is-active fpvstation
"""
PAGE = """\
python3 -c "import ssl, urllib.request as u
print(u.urlopen('https://localhost:8201/', context=ssl._create_unverified_context()).read())"
"""
RULES = "nft list table inet fpvsites"
LISTED = f"fpvstation snapshots list --store {STORE}"


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Car]:
    """A VM with both packages; no car runs on it."""
    with booted(tmp_path_factory, STATION, steady=False) as made:
        packages = ("fpvcar", "python3-fpvcar", "fpvstation", "fpvsites")
        made.check(f"dpkg -i {' '.join(f'/share/{name}_*.deb' for name in packages)}")
        yield made


def wait_until(station: Car, condition: str) -> None:
    station.check(f"for n in $(seq 120); do {condition} && exit; sleep 1; done; exit 1")


def test_sites_rules_outlive_each_kill_and_stop(station: Car) -> None:
    station.check(SITES)
    wait_until(station, "systemctl is-active --quiet fpvsites")
    assert station.check("fpvsites apply") == "kids: sites\n"
    rules = station.check(RULES)
    assert "02:00:00:00:53:01" in rules
    user = "runuser -u fpvsites -- env FPVSITES_PASSWORD='secret sites'"
    station.check(f"{user} fpvsites passwd && systemctl start fpvsites-page")
    assert "<title>" in station.check(PAGE)
    for end in ("kill -s KILL fpvsites-page", "kill -s KILL fpvsites", "stop fpvsites"):
        assert station.check(f"systemctl {end}; {RULES}") == rules
        station.check("systemctl start fpvsites fpvsites-page")
        wait_until(station, "fpvsites status >/dev/null && pgrep -x dnsmasq >/dev/null")
    wait_until(station, f"{PAGE} >/dev/null 2>&1")
    assert station.check("fpvsites off") == "off: all clients reach all sites\n"
    assert station.vm.run(RULES).returncode != 0


def test_snapshot_timer_keeps_each_hour_with_a_change(station: Car) -> None:
    station.check(DISK)
    said = station.check(f"fpvstation snapshots setup --store {STORE}")
    station.check(said.partition("start the timer: ")[2])
    assert "fpvstation-snapshots.timer" in station.check("systemctl list-timers --no-pager")
    station.check("systemctl start fpvstation-snapshots.service")
    count = len(station.check(LISTED).splitlines())
    assert count >= 1
    station.check(f"echo new >{STORE}/new && sync && date -s '1 hour'")
    wait_until(station, f"[ $({LISTED} | wc -l) -gt {count} ]")
    newest = station.check(LISTED).splitlines()[-1].split()[-1]
    assert station.check(f"cat {newest}/new") == "new\n"


def test_units_log_no_refusal_and_no_traceback(station: Car) -> None:
    said = station.check("journalctl --output=cat -u 'fpvsites*' -u 'fpvstation*'")
    wrong = ("ermission denied", "Operation not permitted", "Traceback")
    assert [line for line in said.splitlines() if any(word in line for word in wrong)] == []

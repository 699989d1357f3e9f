"""A car without a known network opens its own, and joins another one from there."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.vm.image import Recipe, long_marks

from tests.vm_units.car import LONG_S, TRIXIE, Car, booted

WIFI = Recipe(Path(__file__).parent, "trixie", TRIXIE)
pytestmark = long_marks(WIFI)
HERE = "/share/tests/vm_wifi"
HOME_KEY = "home sweet home"
NO_CAMERA = """\
sed -i 's/^source = .*/source = "none"/' /etc/fpvcar/car.toml
printf '[gate]\\nblind = "ignore"\\n' >>/etc/fpvcar/car.toml"""
OPENS_S = 120
"""The car searches for 30 s; NetworkManager takes some more time."""
LOOK_S = 10


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Car]:
    """A car without a camera, because these tests show no pictures."""
    with booted(tmp_path_factory, WIFI) as made:
        made.check(f"sh {HERE}/street.sh")
        made.install()
        made.check(NO_CAMERA)
        made.check("systemctl restart fpvcar")
        yield made


def shown(car: Car, words: str) -> str:
    """Wait until `fpvcar network show` prints these words; return its output."""
    return car.check(
        f"for n in $(seq 0 {LOOK_S} {OPENS_S}); do fpvcar network show --key >/tmp/shown;"
        f" grep -qF {shlex.quote(words)} /tmp/shown && break; sleep {LOOK_S}; done;"
        f" cat /tmp/shown; grep -qF {shlex.quote(words)} /tmp/shown"
    )


def phone(car: Car, *words: str) -> str:
    """Run phone.py in the phone's namespace; return its output."""
    return car.check(f"ip netns exec phone python3 {HERE}/phone.py {shlex.join(words)}")


def joined(car: Car, key: str) -> dict[str, Any]:
    """Send the car into Home with the owner's code, from the phone; return its state."""
    codes = json.loads(car.check("cat /var/lib/fpvcar/codes.json"))
    return dict(json.loads(phone(car, "join", codes["grown_up"], key)))


def test_car_without_known_network_opens_its_own(car: Car) -> None:
    said = shown(car, "The car has a network of its own, Elbow.")
    found = re.search(r"Elbow, key (\S+)", said)
    assert found, said
    heard = car.check("ip netns exec phone iw dev wlan2 scan")
    assert {"SSID: Elbow", "SSID: Home"} <= {line.strip() for line in heard.split("\n")}
    car.check(f"sh {HERE}/phone.sh Elbow {found.group(1)}")
    assert "10.42.0." in car.check("ip netns exec phone ip address show wlan2")


def test_joined_phone_gets_the_wifi_page(car: Car) -> None:
    assert "<title>fpvcar: Wi-Fi</title>" in phone(car, "page")


def test_phone_without_internet_is_led_to_the_page(car: Car) -> None:
    """Each system opens the answer by itself. Only this network has the redirect."""
    assert set(phone(car, "probe").splitlines()) == {"302 http://10.42.0.1:8080/"}
    elsewhere = "ss -Hlnt sport = :80"
    assert [line.split()[3] for line in car.check(elsewhere).splitlines()] == ["10.42.0.1:80"]


def test_wrong_key_is_reported_in_own_network(car: Car) -> None:
    said = joined(car, "not the right key")
    assert (said["phase"], said["ssid"]) == ("own", "Home")
    assert said["reason"].startswith("wrong key")


def test_right_key_joins_the_network(car: Car) -> None:
    assert joined(car, HOME_KEY) == {"phase": "gone"}
    shown(car, "The car is in the network Home.")
    address = car.check("cut -d' ' -f3 /run/router.leases").strip()
    pages = f"http://{address}:8080/network"
    ask = f"import urllib.request; urllib.request.urlopen({pages!r}, timeout=9)"
    car.check(f"ip netns exec router python3 -c {shlex.quote(ask)}")


def test_car_reopens_own_network_when_joined_network_goes(car: Car) -> None:
    car.check("kill $(cat /run/hostapd.pid)")
    shown(car, "The car has a network of its own, Elbow.")


def test_network_change_needs_the_service_user(car: Car) -> None:
    """polkit grants the right to the service's user and to no other user of the car."""
    add = "nmcli connection add type wifi ssid Other con-name other"
    refused = car.vm.run(f"runuser -u fpvcar -- {add}", LONG_S)
    assert refused.returncode and "nsufficient privileges" in refused.stderr
    said = car.check("journalctl --boot --output=cat --unit=fpvcar-network")
    assert [line for line in said.splitlines() if "ermi" in line] == []

"""Pages in the car's own network, and host names that another computer has."""

import pytest

from fpvcar.http.addresses import taken
from fpvcar.wifi.radio import in_own_network


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("10.42.0.17", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("192.168.1.5", False),
        ("10.42.1.17", False),
        ("fe80::1%eth0", False),
        ("", False),
    ],
)
def test_page_over_ethernet_is_not_in_the_own_network(address: str, own: bool) -> None:
    assert in_own_network(address) is own


@pytest.mark.parametrize(
    ("name", "by_another"),
    [
        ("rusty-2.local", True),
        ("Rusty-17.local", True),
        ("raspberrypi.local", False),
        ("rusty-old.local", False),
        ("rusty2.local", False),
    ],
)
def test_numbered_name_is_taken_and_other_name_is_not(name: str, by_another: bool) -> None:
    assert taken("rusty.local", name) is by_another

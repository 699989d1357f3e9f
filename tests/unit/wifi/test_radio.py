"""Pages in the car's own network."""

import pytest

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

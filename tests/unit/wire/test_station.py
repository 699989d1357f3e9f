"""MACs in the form of headers."""

from fpvcar.wire import station

KEY, NONCE = bytes(32), "0" * 32
STRANGE = b"\xff".decode(errors="surrogateescape")


def test_macs_are_stable_across_versions() -> None:
    """A change would make cars and stations of two versions reject each other."""
    path = "/api/station/segments"
    assert station.request_mac(KEY, NONCE, "GET", path) == (
        "42230fce3b062cee6eaae65b726eaa85494981d966c8cdc3e2bcd4665d40aaac"
    )
    assert station.answer_mac(KEY, NONCE, b"{}") == (
        "3d8cd192eded229cf6dd4e8c20cc5e6a7d2f93411d92894e41a8c6255bb38c44"
    )


def test_strange_characters_in_mac_or_path_raise_no_fault() -> None:
    mac = station.answer_mac(KEY, NONCE, b"{}")
    assert station.macs_equal(mac, mac)
    for other in ("", mac[1:], "\u00e4", STRANGE):
        assert not station.macs_equal(other, mac)
    signed = station.request_mac(KEY, NONCE, "GET", f"/{STRANGE}")
    assert signed != station.request_mac(KEY, NONCE, "GET", "/")


def test_ordered_nonce_holds_its_number() -> None:
    nonce = station.ordered_nonce(1_795_000_000_000_000, "0123456789a")
    assert nonce == f"{1_795_000_000_000_000:021x}0123456789a" and len(nonce) == 32
    assert station.NONCE_FORM.fullmatch(nonce), "an older car takes it, too"
    assert station.nonce_number(nonce) == 1_795_000_000_000_000
    most = station.ordered_nonce(station.NUMBER_MOST, "f" * 11)
    assert station.nonce_number(most) == station.NUMBER_MOST
    assert station.nonce_number("0" * 7 + "1" + "f" * 24) is None
    assert station.nonce_number("0" * 31) is None

"""MACs as they come in headers."""

from fpvcar.wire import station

STRANGE = b"\xff".decode(errors="surrogateescape")


def test_any_byte_may_be_in_a_request_and_is_no_fault() -> None:
    mac = station.answer_mac(bytes(32), "0" * 32, b"{}")
    assert station.same(mac, mac)
    for other in ("", mac[1:], "\u00e4", STRANGE):
        assert not station.same(other, mac)
    signed = station.request_mac(bytes(32), "0" * 32, "GET", f"/{STRANGE}")
    assert signed != station.request_mac(bytes(32), "0" * 32, "GET", "/")

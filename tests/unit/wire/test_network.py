"""Messages between `run` and the network service: accepted and refused."""

from collections.abc import Callable

import pytest

from fpvcar.runtime.texts import Text
from fpvcar.wire.errors import WireError
from fpvcar.wire.network import (
    Join,
    Network,
    NetworkState,
    OwnNetwork,
    PagesOpen,
    Scan,
    Wish,
    encode,
    nmcli_fields,
    parse_state,
    parse_wish,
)


@pytest.mark.parametrize("wish", [Join("Home", "12345678"), Join("C"), Scan(), PagesOpen(True)])
def test_wish_survives_encoding(wish: Wish) -> None:
    line = encode(wish)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert parse_wish(line) == wish


def test_state_survives_encoding() -> None:
    state = NetworkState(
        "own",
        OwnNetwork("Rusty", "12345678", ("10", "01")),
        "Home",
        Text("wifi_key", "{name}: wrong key", name="Home"),
        (Network("Home", 80, "key"),),
        3.0,
        "rusty.local",
    )
    assert parse_state(encode(state)) == state


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"kind":"fly"}',
        b'{"kind":"join"}',
        b'{"kind":"used","used":1}',
        b'{"kind":"join","ssid":""}',
        b'{"kind":"join","ssid":"a","key":"1234567"}',
        b'{"kind":"join","ssid":"a","key":"1234567\\n8"}',
        b'{"kind":"join","ssid":"a","key":"12345678\\n"}',
        b'{"kind":"join","ssid":"a","more":1}',
        b'{"kind":"join","ssid":"\\u0000"}',
        b'{"kind":"join","ssid":"a\\nb"}',
        b'{"kind":"join","ssid":"a\\u2028b"}',
        b'{"kind":"join","ssid":"\\ud83d"}',
    ],
)
def test_unknown_wish_is_refused(line: bytes) -> None:
    with pytest.raises(WireError, match="message refused"):
        parse_wish(line)


def test_unknown_state_is_refused() -> None:
    with pytest.raises(WireError, match="message refused"):
        parse_state(b'{"phase":"flying","own":{"ssid":"a","key":"b"}}')


@pytest.mark.parametrize("parse", [parse_wish, parse_state])
def test_invalid_utf8_and_deep_nesting_are_refused(parse: Callable[[bytes], object]) -> None:
    for line in (b'{"kind":"\xff"}', b'{"x":' + b"[" * 5000):
        with pytest.raises(WireError):
            parse(line)


def test_terse_line_is_split_at_unescaped_colons() -> None:
    assert nmcli_fields(r" :My\: net:77:WPA1 WPA2") == [" ", "My: net", "77", "WPA1 WPA2"]
    assert nmcli_fields(r"a\\b::") == ["a\\b", "", ""]
    assert nmcli_fields("") == [""]

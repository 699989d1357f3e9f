"""Frames that are acted on where they were read, and those that are handed on."""

import asyncio
import struct

import pytest

from fpvcar.server.shortcut import (
    AT_ONCE,
    CLOSE,
    CUT_MOST,
    LONGEST,
    PING,
    TEXT,
    Shortcut,
)

MASK = bytes((0x11, 0xFF, 0x00, 0x80))
BINARY, BEGUN = 0x82, 0x01


def frame(payload: bytes, kind: int = TEXT, mask: bytes = MASK) -> bytes:
    """As a browser sends it."""
    size = len(payload)
    if size < 126:
        head = struct.pack(">BB", kind, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", kind, 0x80 | 126, size)
    else:
        head = struct.pack(">BBQ", kind, 0x80 | 127, size)
    masked = (byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return head + mask + bytes(masked)


class Behind(asyncio.Protocol):
    """aiohttp's protocol, which notes what reaches it."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.got.append(data)


class Rig:
    """A shortcut whose owner takes what does not begin with "no"."""

    def __init__(self) -> None:
        self.behind, self.taken = Behind(), list[str]()
        self.shortcut = Shortcut(self.behind, self._take)

    def _take(self, text: str) -> bool:
        if text.startswith("no"):
            return False
        self.taken.append(text)
        return True

    def send(self, data: bytes) -> None:
        self.shortcut.data_received(data)


@pytest.mark.parametrize("size", [0, 1, 3, 125, 126, 127, 128, LONGEST])
def test_a_text_is_acted_on_at_once(size: int) -> None:
    rig = Rig()
    rig.send(frame(b"x" * size))
    assert rig.taken == ["x" * size] and not rig.behind.got


def test_it_may_come_byte_by_byte() -> None:
    rig, long = Rig(), "grüß " * 40
    for byte in frame(b"a") + frame(long.encode()) + frame(b"b", PING):
        rig.send(bytes((byte,)))
    assert rig.taken == ["a", long]
    assert rig.behind.got == [frame(b"b", PING)]


def test_what_is_declined_goes_on_and_what_follows_waits_for_it() -> None:
    rig = Rig()
    rig.send(frame(b"no") + frame(b"a"))
    rig.send(frame(b"b"))
    assert rig.behind.got == [frame(b"no"), frame(b"a"), frame(b"b")]
    for _ in range(3):
        rig.shortcut.heard()
    rig.send(frame(b"c"))
    assert rig.taken == ["c"]


def test_a_text_from_before_it_is_none_of_those_that_were_handed_on() -> None:
    rig = Rig()
    rig.shortcut.heard()
    rig.send(frame(b"no") + frame(b"a"))
    assert rig.behind.got == [frame(b"no"), frame(b"a")] and not rig.taken


def test_control_frames_are_nobodys_turn() -> None:
    rig = Rig()
    rig.send(frame(b"", PING) + frame(b"a") + frame(b"", CLOSE))
    assert rig.taken == ["a"]
    assert rig.behind.got == [frame(b"", PING), frame(b"", CLOSE)]


def test_of_many_at_once_most_take_the_long_way_and_the_next_ones_do_not() -> None:
    rig, one = Rig(), frame(b"a")
    rig.send(one * CUT_MOST)
    handed_on = CUT_MOST - AT_ONCE
    assert len(rig.taken) == AT_ONCE and rig.behind.got == [one] * handed_on
    rig.send(frame(b"b"))
    assert rig.behind.got == [one] * handed_on + [frame(b"b")], "these are first"
    for _ in range(handed_on + 1):
        rig.shortcut.heard()
    rig.send(frame(b"c"))
    assert rig.taken[AT_ONCE:] == ["c"]


def test_a_flood_takes_the_long_way_from_then_on() -> None:
    rig, one = Rig(), frame(b"", PING)
    rig.send(one * (CUT_MOST + 3))
    assert rig.behind.got == [one] * CUT_MOST + [one * 3]
    rig.send(frame(b"a"))
    assert rig.behind.got[-1] == frame(b"a") and not rig.taken


@pytest.mark.parametrize(
    "odd",
    [
        frame(b"x", BINARY),
        frame(b"x", BEGUN),
        frame(b"x", TEXT | 0x40),
        frame(b"x" * (LONGEST + 1)),
        frame(b"x" * (1 << 16)),
        b"\x81\x01x",
        b"\x81\x7f" + bytes(8),
    ],
)
def test_from_an_odd_frame_on_everything_is_handed_on(odd: bytes) -> None:
    rig = Rig()
    rig.send(frame(b"a") + odd + frame(b"b"))
    rig.send(frame(b"c")[:3])
    assert rig.taken == ["a"]
    assert rig.behind.got == [odd + frame(b"b"), frame(b"c")[:3]]


def test_what_is_no_utf8_is_handed_on() -> None:
    rig = Rig()
    rig.send(frame(b"\xff\xfe"))
    assert not rig.taken and rig.behind.got == [frame(b"\xff\xfe")]


def test_the_rest_of_the_protocol_is_theirs() -> None:
    gone: list[Exception | None] = []

    class Ended(Behind):
        def connection_lost(self, exc: Exception | None) -> None:
            gone.append(exc)

        def eof_received(self) -> bool:
            return True

    shortcut, fault = Shortcut(Ended(), lambda text: True), OSError()
    assert shortcut.eof_received() is True
    shortcut.connection_lost(fault)
    assert gone == [fault]

"""Frames handled directly at the read, and those passed on."""

import asyncio
import struct

import pytest

from fpvcar.http.fast_path import FastPath

TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
CONTROL_MOST, LONGEST, AT_ONCE, CUT_MOST, HEADS_MOST = 125, 4096, 4, 64, 256
"""Bytes of a control frame and of a text; frames of one read."""
MASK = bytes((0x11, 0xFF, 0x00, 0x80))
BINARY, BEGUN = 0x82, 0x01


def frame(payload: bytes, kind: int = TEXT, mask: bytes = MASK) -> bytes:
    """Return a frame in the form of a browser."""
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
    """Stand-in for aiohttp's protocol that records its input."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.got.append(data)


class Rig:
    """FastPath whose owner takes all texts that do not begin with "no"."""

    def __init__(self) -> None:
        self.behind, self.taken = Behind(), list[str]()
        self.refused: list[str] = []
        self.shortcut = FastPath(self.behind, self._take, self.refused.append, lambda: None)

    def _take(self, text: str) -> bool:
        if text.startswith("no"):
            return False
        self.taken.append(text)
        return True

    def send(self, data: bytes) -> None:
        self.shortcut.data_received(data)


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize("size", [0, 1, 3, 125, 126, 127, 128, LONGEST])
def test_text_is_acted_on_at_once(size: int, rig: Rig) -> None:
    rig.send(frame(b"x" * size))
    assert rig.taken == ["x" * size] and not rig.behind.got


def test_frames_may_come_byte_by_byte() -> None:
    rig, long = Rig(), "grüß " * 40
    for byte in frame(b"a") + frame(long.encode()) + frame(b"b", PING):
        rig.send(bytes((byte,)))
    assert rig.taken == ["a", long]
    assert rig.behind.got == [frame(b"b", PING)]


def test_declined_text_is_handed_on_and_later_texts_wait(rig: Rig) -> None:
    rig.send(frame(b"no") + frame(b"a"))
    rig.send(frame(b"b"))
    assert rig.behind.got == [frame(b"no"), frame(b"a"), frame(b"b")]
    for _ in range(2):
        rig.shortcut.acknowledge()
    rig.send(frame(b"c"))
    assert rig.behind.got[3:] == [frame(b"c")] and not rig.taken
    for _ in range(2):
        rig.shortcut.acknowledge()
    rig.send(frame(b"d"))
    assert rig.taken == ["d"]


def test_text_from_before_the_fast_path_is_not_counted(rig: Rig) -> None:
    rig.shortcut.acknowledge()
    rig.send(frame(b"no") + frame(b"a"))
    assert rig.behind.got == [frame(b"no"), frame(b"a")] and not rig.taken


def test_control_frames_do_not_delay_texts(rig: Rig) -> None:
    rig.send(frame(b"", PING) + frame(b"a") + frame(b"", PONG) + frame(b"b"))
    assert rig.taken == ["a", "b"]
    assert rig.behind.got == [frame(b"", PING), frame(b"", PONG)]


ODD = frame(b"x", BEGUN)
"""Frame after which only heads are checked."""
LONG_PING = frame(b"x" * (CONTROL_MOST + 1), PING)


@pytest.mark.parametrize("before", [b"", ODD])
@pytest.mark.parametrize("by_byte", [False, True])
def test_frames_behind_a_close_are_not_read(before: bytes, by_byte: bool) -> None:
    rig, close = Rig(), frame(b"\x03\xe8bye", CLOSE)
    data = before + close + frame(b"a")
    for at in range(len(data)) if by_byte else ():
        rig.send(data[at : at + 1])
    if not by_byte:
        rig.send(data)
    rig.send(frame(b"b"))
    assert not rig.taken and not rig.refused
    assert b"".join(rig.behind.got) == before + close


@pytest.mark.parametrize("before", [b"", ODD, frame(b"x" * 70_000)])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"\x81\x01a", "frame without a mask"),
        (b"\x81\x7f" + bytes(8), "frame without a mask"),
        (LONG_PING, "control frame of more than 125 bytes"),
        (frame(b"x" * 126, CLOSE), "control frame of more than 125 bytes"),
    ],
)
@pytest.mark.parametrize("pieces", [1, 2, 999])
def test_frames_behind_a_refused_frame_are_not_read(
    before: bytes, bad: bytes, reason: str, pieces: int, rig: Rig
) -> None:
    data = frame(b"a") + before + bad + frame(b"b")
    size = -(-len(data) // pieces)
    for at in range(0, len(data), size):
        rig.send(data[at : at + size])
    rig.send(frame(b"c"))
    assert rig.taken == ["a"] and rig.refused == [reason]
    assert b"".join(rig.behind.got) == before


@pytest.mark.parametrize("before", [b"", ODD])
def test_close_is_handed_on_without_a_frame_behind_it(before: bytes) -> None:
    rig, close = Rig(), frame(b"\x03\xe8bye", CLOSE)
    rig.send(before + close)
    assert b"".join(rig.behind.got) == before + close


@pytest.mark.parametrize(
    "head", [frame(b"xy", BINARY)[:2], frame(b"x" * 126, BINARY)[:4], frame(b"xy")[:2]]
)
def test_complete_head_behind_an_odd_frame_is_handed_on_at_once(head: bytes, rig: Rig) -> None:
    rig.send(ODD + head)
    assert b"".join(rig.behind.got) == ODD + head


def test_head_without_a_mask_is_refused_at_once(rig: Rig) -> None:
    rig.send(ODD + b"\x81\x01")
    assert rig.refused == ["frame without a mask"]


def test_head_of_an_odd_frame_is_handed_on_at_once() -> None:
    rig, odd = Rig(), frame(b"xy", BINARY)
    rig.send(odd[:2])
    assert rig.behind.got == [odd[:2]]


@pytest.mark.parametrize("cut", range(1, 8))
def test_text_cut_by_a_read_is_acted_on_when_it_is_whole(cut: int) -> None:
    rig, text = Rig(), frame(b"x" * 300)
    rig.send(frame(b"a") + text[:cut])
    assert rig.taken == ["a"] and not rig.behind.got
    rig.send(text[cut:])
    assert rig.taken == ["a", "x" * 300] and not rig.behind.got


def test_longest_control_frame_is_handed_on() -> None:
    rig, longest = Rig(), frame(b"x" * CONTROL_MOST, PING)
    rig.send(longest + ODD + longest + frame(b"a"))
    assert b"".join(rig.behind.got) == longest + ODD + longest + frame(b"a")
    assert not rig.refused


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_heads_are_found_behind_frames_of_any_length(size: int) -> None:
    data = ODD + frame(b"x" * size, BINARY) + b"\x81\x01a"
    for piece in (1, 2, 3, 5, 4096, len(data)) if size < 1000 else (4096, len(data)):
        rig = Rig()
        for at in range(0, len(data), piece):
            rig.send(data[at : at + piece])
        assert b"".join(rig.behind.got) == data[:-3]
        assert rig.refused == ["frame without a mask"]


def test_read_of_too_many_tiny_frames_is_refused() -> None:
    rig, tiny = Rig(), frame(b"", PING)
    rig.send(ODD + tiny * (HEADS_MOST - 1))
    rig.send(tiny * HEADS_MOST)
    assert not rig.refused
    handed_on = len(rig.behind.got)
    rig.send(tiny * (HEADS_MOST + 3))
    assert rig.refused == ["more than 256 frames at once"]
    assert rig.behind.got[handed_on:] == [tiny * HEADS_MOST]


def test_texts_beyond_the_limit_are_handed_on_then_fast_again() -> None:
    rig, one = Rig(), frame(b"a")
    rig.send(one * CUT_MOST)
    handed_on = CUT_MOST - AT_ONCE
    assert len(rig.taken) == AT_ONCE and rig.behind.got == [one] * handed_on
    rig.send(frame(b"b"))
    assert rig.behind.got == [one] * handed_on + [frame(b"b")], "these are first"
    for _ in range(handed_on + 1):
        rig.shortcut.acknowledge()
    rig.send(frame(b"c"))
    assert rig.taken[AT_ONCE:] == ["c"]


def test_flood_ends_the_fast_path_for_good() -> None:
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
    ],
)
def test_odd_frame_and_all_after_it_are_handed_on(odd: bytes, rig: Rig) -> None:
    rig.send(frame(b"a") + odd + frame(b"b"))
    rig.send(frame(b"c")[:3])
    assert rig.taken == ["a"]
    assert rig.behind.got == [odd + frame(b"b"), frame(b"c")[:3]]


def test_invalid_utf8_is_handed_on(rig: Rig) -> None:
    rig.send(frame(b"\xff\xfe"))
    assert not rig.taken and rig.behind.got == [frame(b"\xff\xfe")]


def test_other_protocol_calls_are_handed_on() -> None:
    calls: list[object] = []

    class Ended(Behind):
        def connection_lost(self, exc: Exception | None) -> None:
            calls.append(exc)

        def pause_writing(self) -> None:
            calls.append("pause")

        def resume_writing(self) -> None:
            calls.append("resume")

        def eof_received(self) -> bool:
            return True

    rig, fault = Rig(), OSError()
    shortcut = FastPath(Ended(), rig.shortcut._take, rig.refused.append, lambda: None)
    assert shortcut.eof_received() is True
    shortcut.pause_writing()
    shortcut.resume_writing()
    shortcut.connection_lost(fault)
    assert calls == ["pause", "resume", fault]


def test_paced_is_called_for_a_peer_that_sends_too_fast() -> None:
    calls: list[str] = []
    shortcut = FastPath(Behind(), bool, calls.append, lambda: calls.append("paced"))
    shortcut.paced()
    assert calls == ["paced"]

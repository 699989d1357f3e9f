"""Sender of units to a viewer: by one connection or two, each of which may be full."""

import asyncio
import contextlib
import socket
import struct
import time
from typing import cast

import pytest
from testkit.hub import FakeCamera

from fpvcar.seat import video_socket
from fpvcar.seat.video_link import SEND_BUFFER_FAR_BYTES, Link, LinkState, ViewerConnection
from fpvcar.seat.video_socket import Sender
from fpvcar.video import bitrate
from fpvcar.video.bitrate import LinkMeter, LinkReport
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.packet_loss import LossMeter
from fpvcar.video.stream import Stream


class OpenLink:
    """Link with room whose last unit is never quite acknowledged; it can be full or gone."""

    closing = False

    def __init__(self, room: bool = True) -> None:
        self.written, self.acked, self.unsent, self.rtt_s, self.queue_s = 0, 0, 0, 0.001, 0.0
        self.units: list[bytes] = []
        self.room, self.gone, self.aborted, self.enlarged = room, False, False, 0

    def read(self) -> LinkState:
        if self.gone:
            raise OSError("gone")
        unacked = self.written - self.acked
        return LinkState(self.acked, unacked, self.unsent, self.rtt_s, self.queue_s)

    def enlarge(self) -> None:
        self.enlarged += 1

    def packets(self) -> tuple[int, int]:
        return 0, 0

    def empty(self, taken: int) -> bool:
        return self.room

    def write(self, taken: int, framed: bytes) -> None:
        self.written += len(framed)
        self.units.append(framed[-1:])

    def abort(self) -> None:
        self.aborted = True


def test_retransmissions_reported_as_duplicates_are_no_losses() -> None:
    """include/uapi/linux/tcp.h: 50 retransmissions of 1000 segments, 46 of them duplicates."""
    info = bytearray(248)
    for at, value in ((100, 50), (156, 1000), (216, 46)):
        struct.pack_into("=I", info, at, value)
    link = Link(cast(asyncio.Transport, FixedTransport(bytes(info))))
    assert link.packets() == (1000, 4)


@pytest.mark.parametrize(("rtt_s", "unsent", "room"), [(0.02, 100, True), (0.1, 100, False)])
def test_only_a_far_link_with_unsent_bytes_lacks_room(
    rtt_s: float, unsent: int, room: bool
) -> None:
    link = OpenLink()
    connection = ViewerConnection(cast(Link, link), 0.0)
    link.rtt_s, link.unsent = rtt_s, unsent
    connection.update(1.0)
    assert connection.room is room
    link.unsent = 0
    connection.update(1.1)
    assert connection.room
    assert bool(link.enlarged) is (rtt_s == 0.1)


def test_send_buffer_of_a_far_link_is_enlarged_once() -> None:
    transport = FixedTransport(bytes(248))
    link = Link(cast(asyncio.Transport, transport))
    before = len(transport.options)
    link.enlarge()
    link.enlarge()
    far = (socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_FAR_BYTES)
    assert transport.options[before:] == [far]


def test_unsent_bytes_are_those_of_the_kernel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as peer, server.accept()[0] as near:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            near.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while near.send(bytes(65536)):  # until the peer's window and our buffer are full
                    pass
            state = Link(cast(asyncio.Transport, RealTransport(near))).read()
            assert 0 < state.unsent <= state.unacked


class RealTransport:
    """Transport of a real socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def get_extra_info(self, _: str) -> socket.socket:
        return self._socket

    def set_write_buffer_limits(self, **_: int) -> None:
        """Accept any limit."""


class FixedTransport:
    """Transport and socket whose TCP_INFO is fixed."""

    def __init__(self, info: bytes) -> None:
        self._info = info
        self.options: list[tuple[int, ...]] = []

    def get_extra_info(self, _: str) -> "FixedTransport":
        return self

    def fileno(self) -> int:
        return -1

    def setsockopt(self, *option: int) -> None:
        self.options.append(option)

    def set_write_buffer_limits(self, **_: int) -> None:
        """Accept any limit."""

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        return self._info[:size]


async def test_link_is_polled_between_units_only_at_low_bitrate() -> None:
    """At the full bitrate a sent unit needs no second look."""
    stream = Stream(FakeCamera())
    viewer = stream.add_viewer(lambda: True)
    link, told = OpenLink(), list[float | None]()
    sender = Sender(cast(Link, link), viewer, stream, told.append)
    stream.publish(AccessUnit(True, 0, b"key"))
    assert viewer.frames == 1 and sender._timer is None
    stream.bitrate.wanted = 1_000_000
    stream.publish(AccessUnit(False, 1, b"unit"))
    assert viewer.frames == 2 and sender._timer is not None, "may it have more?"
    assert told == [None], "once a second, and nothing is known yet"
    sender.close()
    assert not link.aborted, "nothing is wrong with it"


class Copied:
    """Sender at the wheel with a second connection."""

    def __init__(self, first_room: bool = True, room: bool = True) -> None:
        self.stream = Stream(FakeCamera())
        self.viewer = self.stream.add_viewer(lambda: True)
        self.first, self.copies = OpenLink(first_room), OpenLink(room)
        self.reports: list[LinkReport] = []
        report = self.reports.append
        self.stream.report = lambda viewer, link: report(link)  # type: ignore[method-assign]
        self.sender = Sender(cast(Link, self.first), self.viewer, self.stream, lambda _: None)
        self.sender.copy_to(cast(Link, self.copies))

    def publish(self, count: int = 1) -> None:
        for _ in range(count):
            self.stream.publish(AccessUnit(True, 0, b"key"))

    def units(self, letters: str) -> None:
        """Publish units that end with these letters; "K" is a key frame."""
        for letter in letters:
            self.stream.publish(AccessUnit(letter == "K", 0, letter.encode()))

    @property
    def sent(self) -> tuple[str, str]:
        """Return the last letters of the units sent by the first, by the second."""
        first, second = (b"".join(one.units) for one in (self.first, self.copies))
        return first.decode(), second.decode()

    @property
    def went(self) -> tuple[bool, bool]:
        """Return whether units were sent by the first, by the second."""
        return self.first.written > 0, self.copies.written > 0


async def test_unit_goes_by_all_connections_with_room() -> None:
    for rooms in ((True, True), (True, False), (False, True), (False, False)):
        copied = Copied(*rooms)
        copied.publish()
        assert copied.went == rooms and copied.viewer.waiting == (rooms == (False,) * 2)
        copied.sender.close()
        assert copied.copies.aborted and not copied.first.aborted


async def test_sender_repeats_stalled_units_on_the_other_connection() -> None:
    copied = Copied()
    copied.units("K")
    copied.copies.room = False
    copied.units("a")
    copied.first.room = False  # the connection stalls with "a"
    copied.copies.room = True
    copied.units("b")
    assert copied.sent == ("Ka", "Ka"), '"b" is of no use without "a"'
    copied.sender.look()
    assert copied.sent == ("Ka", "Kab")
    copied.first.room = True
    copied.sender.look()
    assert copied.sent == ("Kab", "Kab"), "it has not arrived by the other one yet"
    copied.sender.close()


async def test_sender_does_not_repeat_units_that_arrived() -> None:
    copied = Copied()
    copied.copies.room = False
    copied.units("Kab")
    copied.first.acked = copied.first.written
    copied.copies.room = True
    copied.units("c")
    assert copied.sent == ("Kabc", "c")
    copied.copies.room = False
    copied.units("dK")
    copied.copies.room = True
    copied.sender.look()
    assert copied.sent == ("KabcdK", "cK"), "a key frame needs no older unit"
    copied.sender.close()


async def test_sender_polls_while_a_connection_lacks_a_unit() -> None:
    copied = Copied(room=False)
    copied.units("K")
    assert copied.sender._timer is not None
    copied.first.acked = copied.first.written
    copied.sender.look()
    assert copied.sender._timer is None
    copied.sender.close()


async def test_second_connection_failure_does_not_end_the_viewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone, closing, dead = Copied(), Copied(), Copied()
    gone.copies.gone = closing.copies.closing = True
    dead.copies.written = 1
    for copied in (gone, closing):
        copied.publish(2)
    monkeypatch.setattr(video_socket, "NO_PROGRESS_S", 0.05)
    start_s = time.monotonic()
    while not dead.copies.aborted:
        assert time.monotonic() - start_s < 5.0
        last = LinkState(dead.first.written, 0, 0, 0.001, 0.0)
        dead.first.read = lambda last=last: last  # type: ignore[method-assign, misc]
        dead.publish()
        await asyncio.sleep(0.01)
    for copied in (gone, closing, dead):
        assert copied.viewer.frames > 0 and not copied.first.aborted
        assert copied.sender._copies is None
        copied.sender.close()


async def test_newer_second_connection_ends_the_older() -> None:
    copied, newer = Copied(), OpenLink()
    copied.sender.copy_to(cast(Link, newer))
    copied.sender.copy_no_more(cast(Link, copied.copies))  # its end is reported late
    copied.publish()
    assert copied.copies.aborted and newer.written and not copied.copies.written
    copied.sender.copy_no_more(cast(Link, newer))
    copied.publish()
    assert copied.sender._copies is None


async def test_units_go_once_while_a_queue_is_full_and_for_a_while_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Doubled units would fill the queue more: these losses are due to lack of room."""
    monkeypatch.setattr(video_socket, "REPORT_S", 0.0)
    monkeypatch.setattr(LinkMeter, "settled", lambda *_: True)
    monkeypatch.setattr(LossMeter, "recent", 0.1)
    copied = Copied()
    copied.first.queue_s = copied.copies.queue_s = video_socket.QUEUED_S
    copied.publish()
    copied.first.queue_s = 0.0
    copied.publish()
    assert copied.went == (True, False) and {one.divisor for one in copied.reports} == {1}
    copied.sender._queued_s -= video_socket.ALONE_S
    copied.publish()
    assert copied.went == (True, True) and copied.reports[-1].divisor == 2
    copied.sender.close()


async def test_longer_round_trip_on_one_connection_is_no_queue() -> None:
    """The minimum is of a time when the way was shorter: the phone has walked away."""
    copied = Copied()
    copied.first.queue_s = video_socket.QUEUED_S
    copied.publish()
    assert copied.went == (True, True)
    copied.sender.close()


@pytest.mark.parametrize(("recent", "copies"), [(0.02, 2), (0.0, 1)])
async def test_doubled_units_are_reported_only_while_there_is_loss(
    monkeypatch: pytest.MonkeyPatch, recent: float, copies: int
) -> None:
    """After a narrow link is wide again, units may be as large as before."""
    monkeypatch.setattr(video_socket, "REPORT_S", 0.0)
    monkeypatch.setattr(LinkMeter, "settled", lambda *_: True)
    monkeypatch.setattr(LossMeter, "recent", recent)
    copied = Copied()
    copied.publish()
    copied.sender.copy_no_more(cast(Link, copied.copies))
    copied.publish()
    assert [copied.reports[0].divisor, copied.reports[-1].divisor] == [copies, 1]
    copied.sender.close()


class Pair:
    """Senders of the large picture and of the small one, of one page."""

    def __init__(self, drives: bool) -> None:
        self.streams = [Stream(FakeCamera(), 2_000_000, small_divisor=4) for _ in range(2)]
        self.links = [OpenLink(), OpenLink()]
        self.senders: list[Sender] = []
        for stream, link, large in zip(
            self.streams, self.links, (lambda: None, lambda: self.senders[0]), strict=True
        ):
            viewer = stream.add_viewer(lambda: drives)
            sender = Sender(cast(Link, link), viewer, stream, lambda _: None, large)
            self.senders.append(sender)

    def publish(self) -> list[int]:
        """Publish a key frame of each camera; return the number of units sent by each."""
        for stream in self.streams:
            stream.publish(AccessUnit(True, 0, b"key"))
        return [len(link.units) for link in self.links]

    def close(self) -> None:
        for sender in self.senders:
            sender.close()


async def test_small_picture_pauses_while_the_large_one_lacks_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bitrate, "YIELD_S", 1.0)
    pair = Pair(drives=False)
    assert pair.publish() == [1, 1]
    pair.links[0].room = False
    pair.publish()
    await asyncio.sleep(2 * video_socket.STRAINED_S)
    before = len(pair.links[1].units)
    assert pair.publish() == [1, before], "the link belongs to the large picture"
    pair.links[0].room = True
    pair.senders[0].look()
    large = len(pair.links[0].units)
    assert large == 2 and pair.publish() == [3, before], "for a while"
    await asyncio.sleep(1.1)
    assert pair.publish()[1] > before
    pair.close()


async def test_small_picture_pauses_while_the_drivers_bitrate_is_lowered() -> None:
    pair = Pair(drives=True)
    assert pair.publish() == [1, 1]
    pair.streams[0].bitrate.lowered = True
    assert pair.publish() == [2, 1]
    pair.close()


async def test_small_picture_never_delays_the_large_one() -> None:
    pair = Pair(drives=True)
    pair.links[1].room = False
    pair.publish()
    await asyncio.sleep(2 * video_socket.STRAINED_S)
    assert pair.publish()[0] == 2
    pair.close()


async def test_small_picture_has_a_quarter_of_the_bitrate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinkMeter, "settled", lambda self, now_s: True)
    monkeypatch.setattr(video_socket, "REPORT_S", 0.0)
    pair = Pair(drives=True)
    pair.publish()
    assert [stream.bitrate.wanted for stream in pair.streams] == [2_000_000, 500_000]
    pair.close()

"""Hostile peers: garbage, halves, oversize, silence, readers that never read."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testkit.pins.pigpiod import Emulator, emulator, make_core

from fpvbench.pigpiod.protocol import EXTENSION_MAX, REQUEST, Cmd, Parser, Request, Wait

LIMIT_S = 10.0
U32 = st.integers(0, 2**32 - 1)
SMALL = st.integers(0, 64)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with emulator(tmp_path_factory.mktemp("hostile")) as started:
        yield started


def connect(running: Emulator) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=LIMIT_S)


def request(cmd: int, p1: int = 0, p2: int = 0, ext: bytes = b"") -> bytes:
    return REQUEST.pack(cmd, p1, p2, len(ext)) + ext


def receive(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := peer.recv(size - len(data))):
        data += part
    return data


def still_answers(running: Emulator) -> bool:
    with closing(connect(running)) as peer:
        peer.sendall(request(Cmd.PIGPV))
        return receive(peer, 16) == struct.pack("<IIIi", Cmd.PIGPV, 0, 0, 79)


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=40))
def test_parser_result_is_independent_of_the_pieces(data: bytes, cuts: list[int]) -> None:
    whole, pieces = Parser(), Parser()
    results: list[list[Request | str]] = []
    parts, rest = [], data
    for cut in cuts:
        parts.append(rest[:cut])
        rest = rest[cut:]
    for parser, feeds in ((whole, [data]), (pieces, [*parts, rest])):
        seen: list[Request | str] = []
        try:
            for feed in feeds:
                parser.feed(feed)
                seen += parser.requests()
        except ValueError:
            seen.append("closed")
        results.append(seen)
    assert ("closed" in results[0]) == ("closed" in results[1])
    if "closed" not in results[0]:
        assert results[0] == results[1]


@given(st.lists(st.tuples(U32, U32, U32, st.binary(max_size=50)), max_size=5))
def test_requests_come_back_whole(wanted: list[tuple[int, int, int, bytes]]) -> None:
    parser = Parser()
    seen: list[Request] = []
    for entry in wanted:
        for byte in request(*entry):
            parser.feed(bytes([byte]))
            seen += parser.requests()
    assert seen == [Request(*entry) for entry in wanted]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(Cmd)) | U32,
            SMALL | U32,
            SMALL | U32,
            st.binary(max_size=40),
            st.integers(0, 3000),
        ),
        max_size=40,
    )
)
def test_random_commands_never_break_the_daemon(
    tmp_path: Path, commands: list[tuple[int, int, int, bytes, int]]
) -> None:
    core = make_core(tmp_path)
    core.reader(0xFFFFFFFF)
    for cmd, p1, p2, ext, pause_us in commands:
        outcome = core.start(cmd, p1, p2, ext)
        if isinstance(outcome, Wait):
            outcome = outcome.finish(outcome.until_us)
        assert isinstance(outcome, int | bytes | Wait)
        core.run(pause_us)
    for gpio in (0, 1, *range(28, 54)):
        assert core.soc.pin[gpio].mode == 0  # never permitted


@settings(max_examples=200, deadline=None)
@given(st.text("tagjmpzinrcdlvp0123456789 -x", max_size=200))
def test_random_script_text_never_breaks_the_daemon(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    core = make_core(tmp_path_factory.getbasetemp())
    script = core(Cmd.PROC, 0, 0, text.encode())
    core.run(1000)
    if script == 0:
        core(Cmd.PROCR, script)
        core.run(20_000)
    assert core(Cmd.PIGPV) == 79


def test_requests_sent_byte_by_byte_are_answered(running: Emulator) -> None:
    with closing(connect(running)) as peer:
        for byte in request(Cmd.PROC, 0, 0, b"halt") + request(Cmd.WRITE, 17, 1):
            peer.sendall(bytes([byte]))
        replies = receive(peer, 32)
        assert struct.unpack("<IIIi", replies[16:]) == (Cmd.WRITE, 17, 1, 0)


def test_thousand_requests_at_once_are_answered_in_order(running: Emulator) -> None:
    with closing(connect(running)) as peer:
        peer.sendall(b"".join(request(Cmd.READ, gpio) for gpio in range(1000)))
        replies = receive(peer, 16_000)
        echoed = [entry[1] for entry in struct.iter_unpack("<IIIi", replies)]
        assert echoed == list(range(1000))


@pytest.mark.parametrize("size", [EXTENSION_MAX, 2**32 - 1])
def test_oversize_closes_the_connection(running: Emulator, size: int) -> None:
    with closing(connect(running)) as peer:
        peer.sendall(request(Cmd.PIGPV) + REQUEST.pack(Cmd.PROC, 0, 0, size))
        assert len(receive(peer, 16)) == 16
        assert peer.recv(16) == b""
    assert still_answers(running)


def test_longest_extension_is_read(running: Emulator) -> None:
    with closing(connect(running)) as peer:
        text = b"halt".ljust(EXTENSION_MAX - 1)
        peer.sendall(request(Cmd.PROC, 0, 0, text) + request(9999, 0, 0, text))
        assert struct.unpack("<IIIi", receive(peer, 32)[16:])[3] == -88


def test_request_cut_in_the_middle_harms_no_other_client(running: Emulator) -> None:
    whole = request(Cmd.PROC, 0, 0, b"frob")
    for cut in range(len(whole)):
        with closing(connect(running)) as peer:
            peer.sendall(whole[:cut])
    assert still_answers(running)


def test_client_gone_in_mid_delay_harms_no_other_client(running: Emulator) -> None:
    for _ in range(3):
        with closing(connect(running)) as peer:
            peer.sendall(request(Cmd.MILS, 20) + request(Cmd.WRITE, 5, 1))
    time.sleep(0.1)
    assert still_answers(running)


def test_client_that_never_reads_stays_within_memory(running: Emulator) -> None:
    with closing(connect(running)) as peer:
        peer.setblocking(False)
        flood = request(Cmd.BR1) * 4096
        sent, end_s = 0, time.monotonic() + 5
        quiet_s = time.monotonic()
        while time.monotonic() < end_s and time.monotonic() - quiet_s < 0.5:
            try:
                sent += peer.send(flood)
                quiet_s = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        assert still_answers(running)
    assert resident_kb(running) < 100_000


def test_slow_reader_loses_reports_and_stalls_no_client(running: Emulator) -> None:
    with closing(socket.socket()) as slow, closing(connect(running)) as peer:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(LIMIT_S)
        slow.connect(("127.0.0.1", running.port))
        slow.sendall(request(Cmd.NOIB))
        handle = struct.unpack("<IIIi", receive(slow, 16))[3]
        peer.sendall(request(Cmd.NB, handle, 1 << 17))
        assert struct.unpack("<IIIi", receive(peer, 16))[3] == 0
        toggles = request(Cmd.WRITE, 17, 0) + request(Cmd.WRITE, 17, 1)
        for _ in range(300):
            peer.sendall(toggles * 100)
            assert len(receive(peer, 3200)) == 3200
        assert still_answers(running)
        assert resident_kb(running) < 100_000
        reports = receive(slow, 12 * 100)  # whole reports, from the beginning
        sequences = [r[0] for r in struct.iter_unpack("<HHII", reports)]
        assert sequences == list(range(100))
    assert still_answers(running)


def resident_kb(running: Emulator) -> int:
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


def test_garbage_on_the_socket_harms_no_other_client(running: Emulator) -> None:
    for seed in range(20):
        with closing(connect(running)) as peer:
            peer.sendall(bytes((seed * 37 + n * 101) % 256 for n in range(5000)))
            peer.shutdown(socket.SHUT_WR)
            try:
                while peer.recv(4096):
                    pass
            except ConnectionResetError:
                continue
    assert still_answers(running)


def test_delay_blocks_only_its_own_connection(running: Emulator) -> None:
    with closing(connect(running)) as sleeper, closing(connect(running)) as peer:
        sleeper.sendall(request(Cmd.MILS, 2_000) + request(Cmd.TICK))
        for _ in range(20):
            peer.sendall(request(Cmd.WRITE, 17, 1))
            assert len(receive(peer, 16)) == 16
        peer.sendall(request(Cmd.TICK))
        before = struct.unpack("<IIII", receive(peer, 16))[3]
        after = struct.unpack("<IIII", receive(sleeper, 32)[16:])[3]
        assert 0 < (after - before) & 0xFFFFFFFF < 2**31


def test_flood_leaves_other_clients_their_turn(running: Emulator) -> None:
    with closing(connect(running)) as flooder, closing(connect(running)) as peer:
        ticks = request(Cmd.TICK)
        flooder.sendall(ticks * 3000)
        peer.sendall(ticks)
        assert len(receive(peer, 16)) == 16  # before the flood's replies are read
        replies = receive(flooder, 3000 * 16)
        seen = [entry[3] for entry in struct.iter_unpack("<IIII", replies)]
        assert len(seen) == 3000 and seen == sorted(seen)
